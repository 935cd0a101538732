//! Tests of the tools of orders, run as a program.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

use backend::{Config, SystemHost};
use embedded::{Settings, Store};
use messages::{Delivery, ReceiveMessages};
use orders::shop::{Shop, partition};
use orders::{QUEUES, SYSTEM, WAREHOUSE};
use outbox::session::CONTROL;
use saga::{Engine, SAGA};
use serde_json::{Value, json};

fn run(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orders-tools"));
    for endpoint in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"] {
        command.env_remove(endpoint);
    }
    command.args(args).output().unwrap()
}

fn error(args: &[&str]) -> String {
    let output = run(args);
    assert_eq!(output.status.code(), Some(1));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn functions_are_simulated() {
    let output = run(&["simulate", "--schedules", "20"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("optimistic mode: 20 schedules from seed 0 on"), "{text}");
}

#[test]
fn diagram_shows_functions_and_their_queues() {
    let text = String::from_utf8(run(&["diagram"]).stdout).unwrap();
    for line in [
        "queue_warehouse --> function_warehouse",
        "function_warehouse --> queue_saga",
        "queue_saga -.-> queue_saga_dead",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn provisioning_requires_local_endpoints() {
    let error = error(&["provision"]);
    assert!(error.contains("AWS_ENDPOINT_URL_DYNAMODB is not set"), "{error}");
}

#[test]
fn pump_without_queues_names_missing_setting() {
    let error = error(&["pump"]);
    assert!(error.contains("ORDERS_SAGA_QUEUE_URL is not set"), "{error}");
}

#[test]
fn generated_templates_pass_their_checks() {
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let path = folder.path().join("template.yaml");
        std::fs::write(&path, text).unwrap();
        let output = run(&["template", "--check", path.to_str().unwrap()]);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    for store in ["mongodb", "dynamodb"] {
        let text = String::from_utf8(run(&["template", "--store", store]).stdout).unwrap();
        assert_eq!(text.contains("ORDERS_STORE_TABLE"), store == "dynamodb");
        let (passes, findings) = check(&text);
        assert!(passes && findings.contains("nothing is wrong"), "{findings}");
        let (passes, findings) = check(&text.replacen("Type: Schedule", "Type: Api", 1));
        assert!(!passes && findings.contains("no schedule starts it"), "{findings}");
    }
}

/// Returns the engine of a data directory.
fn open(dir: &Path) -> (Arc<Store>, Engine) {
    let host = Arc::new(SystemHost);
    let store = Arc::new(Store::open(dir, host.clone(), Settings::of(SYSTEM.name, &QUEUES)).unwrap());
    let config = Config::of(SYSTEM.name);
    let engine = backend::engine::embedded(&SYSTEM, &store, host, store.clone(), config).ports;
    (store, engine)
}

/// Delivers all visible messages.
async fn work(dir: &Path) {
    let (store, engine) = open(dir);
    let mut is_busy = true;
    while is_busy {
        is_busy = false;
        for queue in [CONTROL, SAGA, WAREHOUSE] {
            let function = SYSTEM.behind(&queue).unwrap();
            let consumer = function.build.unwrap()(&engine).unwrap();
            for received in store.receive(&queue, 10, Duration::from_secs(60)).await.unwrap() {
                is_busy = true;
                let batch: [Delivery; 1] = [received.delivery];
                let answer = consumer.consume(&batch, None).await.remove(0);
                store.answer(&queue, &received.receipt, &answer).await.unwrap();
            }
        }
    }
}

/// The operator's commands on a data directory.
struct Operator(tempfile::TempDir);

impl Operator {
    /// Returns a data directory with orders that wait for their payment.
    async fn with_orders(numbers: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (_, engine) = open(dir.path());
        let shop = Shop::over(&engine).unwrap();
        shop.restock(numbers.len() as u64).await.unwrap();
        for number in numbers {
            shop.place(number, 100).await.unwrap();
        }
        work(dir.path()).await;
        Self(dir)
    }

    fn output(&self, args: &[&str]) -> Output {
        let dir = self.0.path().to_str().unwrap();
        run(&[&["operate", "--data-dir", dir], args].concat())
    }

    fn text(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.text(&[args, &["--json"]].concat())).unwrap()
    }

    fn error(&self, args: &[&str]) -> String {
        let output = self.output(args);
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }
}

#[tokio::test]
async fn operator_pauses_pays_and_resumes_order() {
    let operator = Operator::with_orders(&["A-1"]).await;
    let order = &partition("A-1").to_string();
    assert_eq!(operator.json(&["list"])["partition"], **order);
    let text = operator.text(&["pause", order, "--reason", "wrong price"]);
    assert!(text.contains("was paused; its messages wait"), "{text}");
    assert_eq!(operator.json(&["pause", order])["changed"], false);
    let details = operator.json(&["show", order]);
    assert_eq!(
        (&details["state"]["state"], &details["paused"]["why"]),
        (&"placed".into(), &"wrong price".into())
    );

    let sent = || operator.text(&["send", order, "Paid", r#"{"cents": 100}"#, "--id", "1"]);
    assert!(sent().contains("Paid was sent as message"));
    assert!(sent().contains("Paid was sent before"));
    let text = operator.text(&["resume", order]);
    assert!(text.contains("was resumed"), "{text}");
    work(operator.0.path()).await;
    let text = operator.text(&["show", order]);
    for part in ["\"state\":\"shipped\"", "ended at", "paused by", "sent by", "resumed by"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let error = operator.error(&["pause", order]);
    assert!(error.contains("has ended, so it needs no action"), "{error}");
    assert_eq!(operator.text(&["audit"]).lines().count(), 3);
}

#[tokio::test]
async fn operator_terminates_order_with_reason() {
    let operator = Operator::with_orders(&["A-1", "A-2"]).await;
    let order = &partition("A-1").to_string();
    let text = operator.text(&["terminate", order, "--reason", "a test order"]);
    assert!(text.contains("was terminated"), "{text}");
    let details = operator.json(&["show", order]);
    assert_eq!(details["terminated"]["why"], "a test order");
    let text = operator.text(&["outbox", "list"]);
    assert!(text.contains("view, due") && text.contains(&format!("of instance {order}")), "{text}");
    let error = operator.error(&["send", order, "Paid", r#"{"cents": 100}"#]);
    assert!(error.contains("has ended"), "{error}");
}

#[tokio::test]
async fn operator_lists_orders_by_fields() {
    let operator = Operator::with_orders(&["A-1", "A-2", "A-3"]).await;
    let found = operator.json(&["list", "--where", "number=A-2", "--where", "state=placed"]);
    assert_eq!(found["partition"], *partition("A-2").to_string());
    for (args, said) in [
        (
            &["list", "--limit", "2"][..],
            "2 instances have not ended\n--limit 2 was reached, and there are more",
        ),
        (&["list", "--where", "number=A-4"], "0 instances have not ended"),
        (&["list", "--ended"], "0 instances have ended"),
    ] {
        let text = operator.text(args);
        assert!(text.ends_with(&format!("{said}\n")), "{text}");
    }
    let output = operator.output(&["list", "--where", "number"]);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && error.contains("write FIELD=VALUE"), "{error}");
}

#[tokio::test]
async fn operator_retries_failure_of_order() {
    let operator = Operator::with_orders(&["A-1"]).await;
    let order = &partition("A-1").to_string();
    operator.text(&["send", order, "Paid", r#"{"cents": 1}"#, "--id", "1"]);
    work(operator.0.path()).await;
    let text = operator.text(&["failures", "retry", "--instance", order, "--dry-run"]);
    assert!(text.contains("1 failure of Paid: paid too little"), "{text}");
    let failure = operator.json(&["failures", "list"]);
    assert_eq!(failure["message"], "Paid");
    let text = operator.text(&["failures", "retry", "--instance", order]);
    assert!(text.contains("1 of 1 failure was retried"), "{text}");
    assert!(operator.error(&["failures", "retry"]).contains("nothing is selected"));

    work(operator.0.path()).await;
    let groups = operator.text(&["failures", "retry", "--all", "--dry-run"]);
    assert!(groups.contains("paid too little"), "{groups}");
    let id = operator.json(&["failures", "list"])["id"].as_str().unwrap().to_owned();
    let text = operator.text(&["failures", "archive", &id, "--reason", "the customer paid again"]);
    assert!(text.contains("1 failure archived"), "{text}");
    assert!(operator.text(&["failures", "list"]).contains("0 failures are open"));
    assert_eq!(operator.json(&["failures", "list", "--state", "archived"])["id"], json!(id));
    let refused = operator.output(&["failures", "groups", "--state", "lost"]);
    assert!(String::from_utf8(refused.stderr).unwrap().contains("the states are open, retrying"));
}

#[tokio::test]
async fn refused_commands_name_next_step() {
    let operator = Operator::with_orders(&["A-1"]).await;
    let unknown = partition("none").to_string();
    let order = &partition("A-1").to_string();
    for (args, part) in [
        (&["show", &unknown][..], "list` lists those that have not ended"),
        (&["pause", &unknown], "list` lists those that have not ended"),
        (&["send", &unknown, "Paid", r#"{"cents": 1}"#], "--new begins one with this id"),
        (&["send", order, "Paid", "cents"], "the data is not JSON"),
        (&["send", order, "Payed"], "the events are Placed, Paid"),
        (&["outbox", "requeue", "x"], "outbox list --exhausted` lists them"),
        (&["failures", "show", &unknown], "failures list` lists the open failures"),
    ] {
        let error = operator.error(args);
        assert!(error.contains(part) && error.lines().count() == 1, "{args:?}: {error}");
    }
    let text = operator.text(&["events"]);
    assert!(text.contains("Paid (queue saga, version 1)"), "{text}");
    let report: Value = serde_json::from_slice(&operator.output(&["health", "--json"]).stdout).unwrap();
    assert!(report["ok"] == true && report["unfinished"] == 1, "{report}");
    let empty = tempfile::tempdir().unwrap();
    let error = error(&["operate", "list", "--data-dir", empty.path().to_str().unwrap()]);
    assert!(error.contains("name the folder of the running system with --data-dir"), "{error}");
}
