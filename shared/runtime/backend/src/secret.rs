//! The address of the database from Secrets Manager, so that neither a function's configuration nor a template contains
//! it.

use crate::config::Secret;
use aws::Resource;
use aws_sdk_secretsmanager::Client;
use aws_types::SdkConfig;
use serde::Deserialize;

/// Failure to read the address. No error contains the content of the secret.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Secrets Manager denied or failed the request.
    #[error("the secret in MONGODB_URI_SECRET_ARN cannot be read: {0}")]
    Unreadable(String),
    /// The content does not have the expected form.
    #[error("the secret in MONGODB_URI_SECRET_ARN must be text: a JSON object with the address in \"uri\"")]
    Form,
}

/// Content of the secret.
#[derive(Deserialize)]
struct Content {
    uri: String,
}

/// Reads the secret in this version, by default the current one.
///
/// # Errors
/// Returns an error if the secret cannot be read or does not have the expected form.
pub(crate) async fn read(sdk: &SdkConfig, arn: &str, version: Option<&str>) -> Result<Secret, SecretError> {
    let request = Client::new(sdk).get_secret_value().secret_id(arn);
    let answer = request.set_version_id(version.map(str::to_owned)).send().await;
    let resource =
        Resource { kind: "secret", name: arn.to_owned(), setting: "MONGODB_URI_SECRET_ARN".to_owned() };
    let answer = answer
        .map_err(|error| SecretError::Unreadable(aws::failed("the request", &resource, &error).chain()))?;
    let text = answer.secret_string().ok_or(SecretError::Form)?;
    // Omit the reason, because it could quote the secret.
    let content: Content = serde_json::from_str(text).map_err(|_| SecretError::Form)?;
    Ok(Secret::new(content.uri))
}
