//! A new project outside of the workspace: its tests, its simulation, its template, and its functions on Lambda and on a
//! substitute for AWS.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aws_sdk_sqs::Client;
use lambda_host::{Function, Outcome};
use serde_json::{Value, json};
use servers::amazon::{Service, config};

use crate::program::Program;

/// The name of the project. No program of the workspace has this name.
const NAME: &str = "fresh-shop";
/// Shortens the deadline of a job to a millisecond if the variable is set.
const DUE_AT_ONCE: &str = "DUE_AT_ONCE";

/// A project in a temporary folder.
struct Project {
    program: Program,
    folder: PathBuf,
}

impl Project {
    fn new() -> Self {
        let program = Program::new();
        let folder = program.folder().join(NAME);
        let run = program.run(&["new", NAME, "--path", folder.to_str().unwrap(), "--store", "dynamodb"]);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        let project = Self { program, folder };
        project.reuse_artifacts();
        project.make_deadline_variable();
        project
    }

    /// Compiles dependencies as the workspace does, so that artifacts in its target folder can be used.
    fn reuse_artifacts(&self) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        fs::copy(root.join("Cargo.lock"), self.folder.join("Cargo.lock")).unwrap();
        let workspace = fs::read_to_string(root.join("Cargo.toml")).unwrap();
        let profiles = &workspace[workspace.find("[profile.dev]").unwrap()..];
        let manifest = self.folder.join("Cargo.toml");
        let own = fs::read_to_string(&manifest).unwrap();
        let same_build = root.join("infra/same-build").canonicalize().unwrap();
        let same_build =
            format!("[dependencies.same-build]\npath = {same_build:?}\nfeatures = [\"project\"]\n");
        fs::write(&manifest, format!("{own}\n{same_build}\n{profiles}")).unwrap();
    }

    /// Selects the database that the functions contain the adapters of.
    fn link(&self, store: &str) {
        let manifest = self.folder.join("Cargo.toml");
        let text = fs::read_to_string(&manifest).unwrap();
        assert!(text.contains("onceward/env-"), "{text}");
        let others = ["dynamodb", "mongodb"].into_iter().filter(|other| *other != store);
        let linked = others.fold(text, |text, other| {
            text.replace(&format!("onceward/env-{other}"), &format!("onceward/env-{store}"))
        });
        fs::write(&manifest, linked).unwrap();
    }

    fn make_deadline_variable(&self) {
        let path = self.folder.join("src/lib.rs");
        let text = fs::read_to_string(&path).unwrap();
        let deadline = format!(
            "if std::env::var_os(\"{DUE_AT_ONCE}\").is_some() {{ SignedDuration::from_millis(1) }} else {{ DEADLINE }}"
        );
        assert!(text.contains("saturating_add(DEADLINE)"));
        fs::write(&path, text.replace("saturating_add(DEADLINE)", &format!("saturating_add({deadline})")))
            .unwrap();
    }

    /// Runs the tests and the simulation, and builds all programs.
    fn test(&self) {
        let output = Command::new(env!("CARGO"))
            .args(["test", "--offline", "--features", "simulation,tools"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", target())
            .output()
            .unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{stdout}\n{stderr}");
        for test in ["invariants_hold_under_faults", "job_runs_once_despite_duplicates"] {
            assert!(stdout.contains(&format!("{test} ... ok")), "{stdout}");
        }
    }

    fn tools(&self, args: &[&str]) -> String {
        let output =
            Command::new(target().join("debug/tools")).args(args).envs(local_servers()).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
        stdout
    }

    /// Deploys the project with its template to the substitute for AWS, and uses it.
    fn deploy(&self, template: &Path) {
        let output = Command::new("python3")
            .args(["infra/tools.py", "run", "sam", "--", "python", "infra/project.py"])
            .args([template, &target().join("debug/lambda")])
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
            .env_remove("MONGODB_URI")
            .output()
            .unwrap();
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{stdout}\n{stderr}");
        assert!(stdout.contains("a project was deployed and used"), "{stdout}");
    }
}

/// The target folder of the workspace.
fn target() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_dev")).ancestors().nth(2).unwrap().to_owned()
}

/// The variables for servers on this machine.
fn local_servers() -> Vec<(String, String)> {
    let endpoints = [Service::DynamoDb, Service::Sqs].map(|service| (service.variable(), service.address()));
    let account =
        [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "test"), ("AWS_SECRET_ACCESS_KEY", "test")];
    let account = account.map(|(name, value)| (name, value.to_owned()));
    endpoints.into_iter().chain(account).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The functions of the project, each under a Runtime API of its own, and their queues.
struct Deployment {
    functions: BTreeMap<&'static str, Function>,
    settings: BTreeMap<String, String>,
    sqs: Client,
}

impl Deployment {
    async fn start(project: &Project, store: &str) -> Self {
        let name = servers::unique("shop");
        let printed = project.tools(&["provision", "--name", &name, "--store", store]);
        let settings = printed.lines().filter_map(|line| line.strip_prefix("export ")?.split_once('='));
        let settings: BTreeMap<String, String> =
            settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut functions = BTreeMap::new();
        for function in ["jobs", "worker", "dispatch-outbox", "http"] {
            let mut command = tokio::process::Command::new(target().join("debug/lambda"));
            command
                .envs(local_servers())
                .envs(&settings)
                .env("_HANDLER", function)
                .env("MONGODB_DATABASE", &name)
                .env(DUE_AT_ONCE, "1");
            if store == "dynamodb" {
                command.env_remove("MONGODB_URI");
            }
            functions.insert(function, Function::start(command).await.unwrap());
        }
        Self { functions, settings, sqs: Client::new(&config(Service::Sqs).await) }
    }

    async fn invoke(&mut self, function: &str, event: &Value) -> Value {
        let outcome = self.functions.get_mut(function).unwrap().invoke(event).await.unwrap();
        let Outcome::Answer(answer) = outcome else { panic!("{function}: {outcome:?}") };
        serde_json::from_slice(&answer).unwrap()
    }

    async fn request(&mut self, method: &str, path: &str, body: Option<&str>) -> (u64, Value) {
        let http = json!({
            "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "127.0.0.1", "userAgent": "test"
        });
        let context = json!({ "http": http, "requestId": "1", "stage": "$default", "timeEpoch": 0 });
        let event = json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": "",
            "headers": { "content-type": "application/json" }, "requestContext": context, "body": body,
            "isBase64Encoded": false
        });
        let response = self.invoke("http", &event).await;
        let body = response["body"].as_str().unwrap_or_default();
        (response["statusCode"].as_u64().unwrap(), serde_json::from_str(body).unwrap_or_default())
    }

    /// Delivers the messages of a queue to its function, and returns their number.
    async fn deliver(&mut self, queue: &str, function: &str) -> usize {
        let url = self.settings[&format!("FRESH_SHOP_{queue}_QUEUE_URL")].clone();
        let received =
            self.sqs.receive_message().queue_url(&url).max_number_of_messages(10).wait_time_seconds(1);
        let messages = received.send().await.unwrap().messages.unwrap_or_default();
        if messages.is_empty() {
            return 0;
        }
        let record = |message: &aws_sdk_sqs::types::Message| {
            json!({
                "messageId": message.message_id, "receiptHandle": message.receipt_handle, "body": message.body,
                "attributes": { "ApproximateReceiveCount": "1" }, "messageAttributes": {},
                "eventSource": "aws:sqs", "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:queue"
            })
        };
        let records: Vec<Value> = messages.iter().map(record).collect();
        let response = self.invoke(function, &json!({ "Records": records })).await;
        assert_eq!(response["batchItemFailures"], json!([]), "{function}");
        for message in &messages {
            let deleted =
                self.sqs.delete_message().queue_url(&url).set_receipt_handle(message.receipt_handle.clone());
            deleted.send().await.unwrap();
        }
        messages.len()
    }

    /// Delivers messages of these queues until they are empty.
    async fn deliver_all(&mut self, queues: &[(&str, &str)]) {
        loop {
            let mut delivered = 0;
            for (queue, function) in queues {
                delivered += self.deliver(queue, function).await;
            }
            if delivered == 0 {
                return;
            }
        }
    }
}

const SESSIONS: (&str, &str) = ("CONTROL", "dispatch-outbox");
const EVENTS: (&str, &str) = ("SAGA", "jobs");
const COMMANDS: (&str, &str) = ("WORK", "worker");

/// Completes a job, and lets the timer of another one fire.
async fn run_jobs(mut deployed: Deployment) {
    assert_eq!(deployed.request("POST", "/jobs/first", Some(r#""hello""#)).await.0, 202);
    deployed.deliver_all(&[SESSIONS, EVENTS, COMMANDS]).await;
    let (status, job) = deployed.request("GET", "/jobs/first", None).await;
    assert_eq!((status, &job["state"], &job["output"]), (200, &json!("finished"), &json!("HELLO")));

    // The worker does not respond, and the schedule sends the event of the timer.
    assert_eq!(deployed.request("POST", "/jobs/late", Some(r#""hello""#)).await.0, 202);
    deployed.deliver_all(&[SESSIONS, EVENTS]).await;
    let schedule = json!({ "source": "aws.events", "detail-type": "Scheduled Event", "detail": {} });
    deployed.invoke("dispatch-outbox", &schedule).await;
    deployed.deliver_all(&[EVENTS]).await;
    let (status, job) = deployed.request("GET", "/jobs/late", None).await;
    assert_eq!((status, &job["state"]), (200, &json!("expired")), "{job}");
    deployed.deliver_all(&[COMMANDS, EVENTS]).await;
    assert_eq!(deployed.request("GET", "/jobs/late", None).await.1["state"], "expired");
}

/// Builds the project, which takes minutes.
mod deep {
    use super::*;

    #[tokio::test]
    async fn project_passes_its_tests_and_runs_on_lambda() {
        let project = Project::new();
        for store in ["dynamodb", "mongodb"] {
            project.link(store);
            project.test();
            let text = project.tools(&["template", "--store", store]);
            let template = project.program.file("template.yaml", text.as_bytes());
            let checked = project.tools(&["template", "--check", template.to_str().unwrap()]);
            assert!(checked.contains("nothing is wrong"), "{checked}");
            run_jobs(Deployment::start(&project, store).await).await;
            if store == "dynamodb" {
                project.deploy(&template);
            }
        }
    }
}
