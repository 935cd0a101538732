//! Sample events of every function's event sources, fed to the library and to the built binaries.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

mod dispatch_outbox;
mod frames;
mod notification;
mod notify_upload;
mod openapi;
mod parse_references;
mod queries;
mod report_faults;
mod run_saga;
mod start_upload;
mod tenancy;

use backend::Backend;
use imports::Ports;
use lambda::{SettleVia, Worker};
use serde_json::Value;

/// Returns the response of a function's library to a batch of its queue.
async fn answer(function: &saga::Function<Ports>, backend: &Backend, batch: Value) -> Value {
    let consumer = function.build.unwrap()(&backend.ports).unwrap();
    let queue = function.source.queue().unwrap();
    let batch = serde_json::from_value(batch).unwrap();
    let settling = SettleVia::with_queues(backend.has_event_sources());
    let worker = Worker { engine: &backend.ports.engine, queue, consumer: &*consumer, settling };
    serde_json::to_value(worker.answer(batch, None).await).unwrap()
}

#[test]
fn table_has_no_faults() {
    assert_eq!(functions::SYSTEM.check(), Ok(()));
}

#[test]
fn every_sample_event_has_expectation() {
    assert_eq!(events::ExpectedResult::names("").collect::<Vec<_>>(), events::all(""));
}
