//! The external service.

use onceward::async_trait;

/// The reason why the service did not answer.
#[derive(Debug, thiserror::Error)]
#[error("the service is unavailable")]
pub struct Unavailable;

/// Carries out jobs. The service ignores a request whose idempotency key it knows.
#[async_trait]
pub trait ExternalService: Send + Sync {
    /// Carries out a job, and returns its output.
    ///
    /// # Errors
    /// Returns an error if the service is unavailable. The job may have been carried out.
    async fn carry_out(&self, idempotency_key: &str, input: &str) -> Result<String, Unavailable>;
}

/// A placeholder for the real client.
pub struct Echo;

#[async_trait]
impl ExternalService for Echo {
    async fn carry_out(&self, _: &str, input: &str) -> Result<String, Unavailable> {
        Ok(input.to_uppercase())
    }
}
