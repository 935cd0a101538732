//! Every sample batch of the control queue, fed to the library and to the built binary.

use events::{ExpectedResult, Installation, check_log, event, failures};
use functions::dispatch_outbox::FUNCTION;
use imports::queues::CONTROL;
use lambda_host::Outcome;
use messages::Depth;
use serde_json::Value;

use crate::answer;

/// The batches; their session is not stored yet.
const BATCHES: &str = "sqs-control";

fn check(name: &str, response: &Value) {
    let Some(ExpectedResult::Batch { failing, .. }) = ExpectedResult::of(name) else { panic!("{name}") };
    assert_eq!(failures(&event(name), response), *failing, "{name}");
}

/// Returns the number of messages in the control queue: each check that finds no session schedules another one.
async fn waiting(installation: &Installation) -> u64 {
    installation.store.count_messages().await.unwrap().get(&CONTROL).map_or(0, Depth::total)
}

#[tokio::test]
async fn library_answers_each_record() {
    for name in ExpectedResult::names(BATCHES) {
        let installation = Installation::admitting(&event(name)).await;
        let response = answer(&FUNCTION, &installation.backend(), event(name)).await;
        check(name, &response);
        assert_eq!(waiting(&installation).await, 1, "{name}");
    }
}

#[tokio::test]
async fn binary_answers_each_record() {
    for name in ExpectedResult::names(BATCHES) {
        let installation = Installation::admitting(&event(name)).await;
        let mut function = installation.start(env!("CARGO_BIN_EXE_dispatch-outbox")).await;
        let Outcome::Answer(answer) = function.invoke(&event(name)).await.unwrap() else { panic!("{name}") };
        let response: Value = serde_json::from_slice(&answer).unwrap();
        check(name, &response);
        assert_eq!(waiting(&installation).await, 1, "{name}");
        check_log(&function.stop().await);
    }
}

#[tokio::test]
async fn binary_sweeps_on_schedule() {
    let installation = Installation::new();
    let mut function = installation.start(env!("CARGO_BIN_EXE_dispatch-outbox")).await;
    assert_eq!(function.invoke(&event("schedule")).await.unwrap(), Outcome::Answer("null".into()));
}

#[tokio::test]
async fn binary_survives_a_foreign_event() {
    let installation = Installation::new();
    let mut function = installation.start(env!("CARGO_BIN_EXE_dispatch-outbox")).await;
    assert!(matches!(function.invoke(&event("s3-put")).await.unwrap(), Outcome::Failure(_)));
    assert_eq!(function.invoke(&event("schedule")).await.unwrap(), Outcome::Answer("null".into()));
}
