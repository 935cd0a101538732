//! Every sample request of the HTTP API, fed to the library and to the built binary.

use events::{Installation, check_log, event};
use functions::start_upload::{StartUpload, http};
use lambda_host::Outcome;
use lambda_http::lambda_runtime::Context;
use lambda_http::{Adapter, LambdaEvent, Service};
use serde_json::Value;

/// The requests, each with the status of the answer.
const REQUESTS: [(&str, u64); 5] = [
    ("http-bad-manifest", 422),
    ("http-create-search", 201),
    ("http-hostile-path", 400),
    ("http-list-searches", 200),
    ("http-unknown-search", 404),
];

#[test]
fn every_sample_request_is_here() {
    assert_eq!(REQUESTS.map(|(name, _)| name).to_vec(), events::all("http-"));
}

#[tokio::test]
async fn the_library_answers_every_request() {
    for (name, status) in REQUESTS {
        let installation = Installation::new();
        let function = StartUpload::over(&installation.backend().ports).unwrap();
        let mut service = Adapter::from(http::router(function));
        let request = serde_json::from_value(event(name)).unwrap();
        let answer = service.call(LambdaEvent::new(request, Context::default())).await.unwrap();
        check(name, status, &serde_json::to_value(answer).unwrap());
    }
}

#[tokio::test]
async fn the_binary_answers_every_request() {
    for (name, status) in REQUESTS {
        let installation = Installation::new();
        let mut function = installation.start(env!("CARGO_BIN_EXE_start-upload")).await;
        let Outcome::Answer(answer) = function.invoke(&event(name)).await.unwrap() else { panic!("{name}") };
        check(name, status, &serde_json::from_slice(&answer).unwrap());
        check_log(&function.stop().await);
    }
}

fn check(name: &str, status: u64, answer: &Value) {
    assert_eq!(answer["statusCode"], status, "{name}: {answer}");
    let body: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    match status {
        201 => assert_eq!(body["files"][0]["name"], "psycinfo.ris", "{name}"),
        200 => assert_eq!(body["searches"], Value::Array(Vec::new()), "{name}"),
        _ => assert_eq!(body["status"], status, "{name}"),
    }
}
