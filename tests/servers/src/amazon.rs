//! DynamoDB, SQS and S3.

use aws_config::{BehaviorVersion, ConfigLoader, Region, SdkConfig};
use aws_credential_types::Credentials;

/// A service that a test requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Service {
    /// Tables.
    DynamoDb,
    /// Queues.
    Sqs,
    /// Files.
    S3,
}

impl Service {
    /// Returns the environment variable with the service's endpoint.
    pub fn variable(self) -> &'static str {
        match self {
            Self::DynamoDb => "AWS_ENDPOINT_URL_DYNAMODB",
            Self::Sqs => "AWS_ENDPOINT_URL_SQS",
            Self::S3 => "AWS_ENDPOINT_URL_S3",
        }
    }

    /// Returns the address of the service.
    ///
    /// # Panics
    /// Panics if no endpoint is set. Skipping the test silently or running it on the real AWS would be worse.
    pub fn address(self) -> String {
        let address = |name| std::env::var(name).ok().filter(|address| !address.is_empty());
        match address(self.variable()).or_else(|| address("AWS_ENDPOINT_URL")) {
            Some(address) => address,
            None => panic!(
                "{} is not set: run `make test`, or `make services` and then eval \"$(infra/services.py env)\"",
                self.variable()
            ),
        }
    }
}

/// Returns the configuration of the programs for an available service.
pub async fn config(service: Service) -> SdkConfig {
    config_at(&service.address()).await
}

/// Works like [`config`], for a server at an address, such as one with injected faults.
pub async fn config_at(address: &str) -> SdkConfig {
    aws::limited(loader(address)).load().await
}

/// Works like [`config_at`], with other credentials.
pub async fn config_as(address: &str, access_key_id: &str, session_token: Option<String>) -> SdkConfig {
    let credentials = Credentials::new(access_key_id, "a-secret-key", session_token, None, "test");
    aws::limited(loader(address).credentials_provider(credentials)).load().await
}

fn loader(address: &str) -> ConfigLoader {
    let region = std::env::var("AWS_REGION").unwrap_or_else(|_| "us-east-1".to_owned());
    let credentials = Credentials::new("test", "test", None, None, "test");
    aws_config::defaults(BehaviorVersion::latest())
        .endpoint_url(address)
        .region(Region::new(region))
        .credentials_provider(credentials)
}
