//! Every sample batch of the control queue, fed to the library and to the built binary.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use events::{ExpectedResult, Installation, check_log, event, failures};
use functions::dispatch_outbox::FUNCTION;
use imports::queues::CONTROL;
use jiff::SignedDuration;
use lambda::ScheduledWork;
use lambda_host::Outcome;
use messages::{Depth, StoreError};
use saga::Upkeep;
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

/// Work in the background that counts its steps.
#[derive(Default)]
struct CountedUpkeep(AtomicUsize);

#[async_trait]
impl Upkeep for CountedUpkeep {
    async fn step(&self) -> Result<bool, StoreError> {
        Ok(self.0.fetch_add(1, Ordering::Relaxed) == 0)
    }
}

/// An outbox that cannot be read would otherwise stop the index of search words.
#[tokio::test]
async fn failed_sweep_does_not_stop_upkeep() {
    let installation = Installation::new();
    let engine = installation.backend().ports.engine;
    let database = rusqlite::Connection::open(installation.store.dir().join("search-import.sqlite")).unwrap();
    database.execute("ALTER TABLE outbox RENAME TO elsewhere", []).unwrap();
    let upkeep = Arc::new(CountedUpkeep::default());
    let work = ScheduledWork::of(&engine, &functions::SYSTEM, &FUNCTION).unwrap();
    let work = work.with_upkeep(Some(upkeep.clone()));
    let deadline = engine.host.now() + SignedDuration::from_mins(5);
    assert!(work.run(&engine, deadline).await.is_err());
    assert_eq!(upkeep.0.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn binary_survives_a_foreign_event() {
    let installation = Installation::new();
    let mut function = installation.start(env!("CARGO_BIN_EXE_dispatch-outbox")).await;
    assert!(matches!(function.invoke(&event("s3-put")).await.unwrap(), Outcome::Failure(_)));
    assert_eq!(function.invoke(&event("schedule")).await.unwrap(), Outcome::Answer("null".into()));
}
