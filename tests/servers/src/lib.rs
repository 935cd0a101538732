//! Where the real servers are that the tests run on.
//!
//! `make test` starts them for the tests, `make services` for longer; `infra/services.py env` prints the variables
//! that lead to them.

pub mod amazon;
pub mod mongo;
pub mod net;

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

/// How a test ends that its own assertions did not end before.
pub type Tested = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Runs a test, and cleans up after it however it ends.
///
/// # Errors
/// When the test ends with one.
pub async fn cleaned_up(test: impl Future<Output = Tested>, clean: impl Future<Output = ()>) -> Tested {
    let outcome = AssertUnwindSafe(test).catch_unwind().await;
    clean.await;
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// A name that no other test has.
pub fn unique(name: &str) -> String {
    format!("{name}-{}", uuid::Uuid::new_v4().simple())
}
