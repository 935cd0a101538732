//! Tests of the tools of orders, run as a program.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::process::{Command, Output};

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
fn generated_template_passes_its_checks() {
    let text = String::from_utf8(run(&["template"]).stdout).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let check = |text: &str| {
        let path = folder.path().join("template.yaml");
        std::fs::write(&path, text).unwrap();
        let output = run(&["template", "--check", path.to_str().unwrap()]);
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    let (passes, findings) = check(&text);
    assert!(passes && findings.contains("nothing is wrong"), "{findings}");
    let (passes, findings) = check(&text.replacen("Type: Schedule", "Type: Api", 1));
    assert!(!passes && findings.contains("no schedule starts it"), "{findings}");
}
