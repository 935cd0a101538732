//! Sample requests of the HTTP API, fed to the library and to the built binary.

use events::{ExpectedResult, Installation, check_log, event};
use http_api::{self as api, authorizer};
use lambda_host::Outcome;
use lambda_http::lambda_runtime::Context;
use lambda_http::{Adapter, LambdaEvent, Service};
use serde_json::Value;
use service::SearchService;

/// Returns the requests, each with the claim that is read and the expected status.
fn requests() -> impl Iterator<Item = (&'static str, Option<&'static str>, u64)> {
    let statuses = |name| match ExpectedResult::of(name) {
        Some(ExpectedResult::Status(statuses)) => {
            statuses.iter().map(move |(claim, status)| (name, *claim, *status))
        }
        other => panic!("{name}: {other:?}"),
    };
    ExpectedResult::names("http-").flat_map(statuses)
}

#[tokio::test]
async fn library_answers_every_request() {
    for (name, claim, status) in requests() {
        let installation = Installation::new();
        let function = SearchService::over(&installation.backend().ports, &functions::SYSTEM).unwrap();
        check(name, status, &ask(function, claim, event(name)).await);
    }
}

/// Returns the library's response to an event.
pub(crate) async fn ask(function: SearchService, claim: Option<&'static str>, event: Value) -> Value {
    let router = api::router_for(function, api::BodyMode::Buffered, move |request| {
        authorizer::caller(claim, "searches:operate", request)
    });
    let request = serde_json::from_value(event).unwrap();
    let answer = Adapter::from(router).call(LambdaEvent::new(request, Context::default())).await.unwrap();
    serde_json::to_value(answer).unwrap()
}

#[tokio::test]
async fn binary_answers_every_request() {
    for (name, claim, status) in requests() {
        let installation = Installation::new();
        let setting: Vec<_> =
            claim.map(|claim| ("SEARCH_IMPORT_PROJECTS_CLAIM", claim)).into_iter().collect();
        let mut function = installation.start_with(env!("CARGO_BIN_EXE_start-upload"), &setting).await;
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
        200 => assert_eq!(body["items"], Value::Array(Vec::new()), "{name}"),
        _ => assert_eq!(body["status"], status, "{name}"),
    }
}

/// With the hash of the page's key, the function refuses requests that bypass the page. Callers that may invoke the
/// function itself send no id of an API.
#[tokio::test]
async fn requests_without_the_page_key_are_refused() {
    const KEY: &str = "key of the page";
    // Printed by `printf 'key of the page' | sha256sum`.
    const SHA256: &str = "f150c21c6271eaed7df1c50015f88ca7576141cfbe3eef7c8ac9e78e50847da1";
    let installation = Installation::new();
    let settings = [("SEARCH_IMPORT_PAGE_KEY_SHA256", SHA256)];
    let mut function = installation.start_with(env!("CARGO_BIN_EXE_start-upload"), &settings).await;
    let mut event = event("http-own-project");
    event["requestContext"]["authorizer"] = Value::Null;
    let mut requests = Vec::new();
    for (key, status) in [(None, 403), (Some(""), 403), (Some("another"), 403), (Some(KEY), 200)] {
        let mut request = event.clone();
        if let Some(key) = key {
            request["headers"]["x-page-key"] = key.into();
        }
        requests.push((request, status));
    }
    event["requestContext"].as_object_mut().unwrap().remove("apiId");
    requests.push((event, 200));
    for (request, status) in requests {
        let Outcome::Answer(answer) = function.invoke(&request).await.unwrap() else { panic!("{request}") };
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(answer["statusCode"], status, "{request}: {answer}");
    }
    check_log(&function.stop().await);
}
