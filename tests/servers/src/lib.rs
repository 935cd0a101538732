//! Access to the real servers that the tests use.
//!
//! `make test` starts them for the tests, and `make services` until they are stopped. `infra/services.py env` prints
//! the variables with their addresses.

pub mod amazon;
pub mod mongo;
pub mod net;

use std::panic::{AssertUnwindSafe, resume_unwind};

use futures::FutureExt;

/// The result of a test.
pub type TestResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;

/// Runs a test, and always cleans up after it.
pub async fn cleaned_up(
    test: impl Future<Output = TestResult>,
    clean: impl Future<Output = ()>,
) -> TestResult {
    let outcome = AssertUnwindSafe(test).catch_unwind().await;
    clean.await;
    outcome.unwrap_or_else(|panic| resume_unwind(panic))
}

/// Returns a unique name.
pub fn unique(name: &str) -> String {
    format!("{name}-{}", uuid::Uuid::new_v4().simple())
}
