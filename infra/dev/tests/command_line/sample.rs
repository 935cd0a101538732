//! `sample` on the embedded backend. The tests of the functions and `make test-local-lambda` check their responses.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Program, Run};

fn program() -> Program {
    let program = Program::new();
    let data = program.folder().join("data").display().to_string();
    program.setting("SEARCH_IMPORT_BACKEND", "embedded").setting("SEARCH_IMPORT_DATA_DIR", &data)
}

fn sample(program: &Program, name: &str, more: &[&str]) -> (Run, PathBuf) {
    let event = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/events/{name}.json"));
    let prepared = program.folder().join("event.json");
    let args = ["sample", event.to_str().unwrap(), "--prepared", prepared.to_str().unwrap()];
    (program.run(&[&args[..], more].concat()), prepared)
}

fn prepare(program: &Program, name: &str) -> Value {
    let (run, prepared) = sample(program, name, &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.starts_with("expected: "), "{}", run.stderr);
    serde_json::from_slice(&std::fs::read(prepared).unwrap()).unwrap()
}

#[test]
fn sample_creates_new_search_and_stores_its_file() {
    let program = program();
    let key = |event: &Value| event["Records"][0]["s3"]["object"]["key"].as_str().unwrap().to_owned();
    let [first, second] = [(); 2].map(|()| key(&prepare(&program, "s3-versioned")));
    assert_ne!(first, second);
    let stored = std::fs::read_dir(program.folder().join("data/objects")).unwrap().count();
    assert_eq!(stored, 2);
}

#[test]
fn sample_names_version_of_versioned_bucket() {
    let event = prepare(&program(), "s3-versioned");
    assert_eq!(event["Records"][0]["s3"]["object"].get("versionId"), None);
}

#[test]
fn response_is_compared_with_expectation() {
    let program = program();
    let event = prepare(&program, "sqs-saga-mixed");
    let id = |place: usize| event["Records"][place]["messageId"].as_str().unwrap().to_owned();
    for (places, code) in [(vec![1, 3], 0), (vec![1], 1), (vec![], 1)] {
        let failures: Vec<Value> =
            places.iter().map(|place| serde_json::json!({ "itemIdentifier": id(*place) })).collect();
        let answer = serde_json::json!({ "batchItemFailures": failures }).to_string();
        let answer = program.file("answer.json", answer.as_bytes());
        let (run, _) = sample(&program, "sqs-saga-mixed", &["--answer", answer.to_str().unwrap()]);
        assert_eq!(run.code, Some(code), "{places:?}: {}", run.stderr);
    }
}

#[test]
fn expected_response_depends_on_claim() {
    let program = program();
    assert!(sample(&program, "http-own-project", &[]).0.stderr.contains("status 404"));
    let program = program.setting("SEARCH_IMPORT_PROJECTS_CLAIM", "projects");
    assert!(sample(&program, "http-own-project", &[]).0.stderr.contains("status 200"));
}
