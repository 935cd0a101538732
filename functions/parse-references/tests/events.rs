//! Every sample batch of the parse queue, fed to the library and to the built binary.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use events::{Installation, check_log, event, failures};
use outbox::Queue;
use parse_references::ParseReferences;
use runtime_api::Outcome;
use serde_json::Value;

/// The batches, each with the records that fail and the messages that are sent.
const BATCHES: [(&str, &[usize], &[&str]); 3] = [
    ("sqs-parse-good", &[], &["ReferenceFileParsingCompleted"]),
    ("sqs-parse-hostile", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], &[]),
    ("sqs-parse-mixed", &[1, 2], &["ReferenceFileParsingCompleted"]),
];

async fn installation(name: &str) -> Installation {
    let installation = Installation::new();
    installation.admit(&event(name)).await;
    installation
}

async fn sent(installation: &Installation) -> Vec<&'static str> {
    installation.sent(Queue::Saga).await.iter().map(|message| message.body.name()).collect()
}

#[test]
fn every_sample_batch_is_here() {
    assert_eq!(BATCHES.map(|(name, ..)| name).to_vec(), events::all("sqs-parse"));
}

#[tokio::test]
async fn the_library_answers_every_record_by_itself() {
    for (name, failing, sends) in BATCHES {
        let installation = installation(name).await;
        let backend = installation.backend();
        let function = ParseReferences::over(&backend).unwrap();
        let batch = serde_json::from_value(event(name)).unwrap();
        let handle = async |batch: &[_]| function.handle(batch).await;
        let response = lambda::answer(&backend, Queue::Parse, batch, handle).await;
        let response = serde_json::to_value(response).unwrap();
        assert_eq!(failures(&event(name), &response), failing, "{name}");
        assert_eq!(sent(&installation).await, sends, "{name}");
    }
}

#[tokio::test]
async fn the_binary_answers_every_record_by_itself() {
    for (name, failing, sends) in BATCHES {
        let installation = installation(name).await;
        let mut function = installation.start(env!("CARGO_BIN_EXE_parse-references")).await;
        let Outcome::Answer(answer) = function.invoke(&event(name)).await.unwrap() else { panic!("{name}") };
        let response: Value = serde_json::from_slice(&answer).unwrap();
        assert_eq!(failures(&event(name), &response), failing, "{name}");
        assert_eq!(sent(&installation).await, sends, "{name}");
        check_log(&function.stop().await);
    }
}
