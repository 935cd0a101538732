//! Every adapter of a real server against its contract suite, and faults of the servers themselves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

mod dynamo;
mod mongo;
mod net;
mod s3;
mod sqs;

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

/// How a test ends.
type Tested = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Runs a test, and cleans up after it however it ends.
async fn cleaned_up(test: impl Future<Output = Tested>, clean: impl Future<Output = ()>) -> Tested {
    let outcome = AssertUnwindSafe(test).catch_unwind().await;
    clean.await;
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A name that no other test has.
fn unique(name: &str) -> String {
    format!("{name}-{}", uuid::Uuid::new_v4().simple())
}
