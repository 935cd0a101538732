//! The database's address from Secrets Manager, so that it stands neither in a function's configuration nor in a
//! template.

use crate::config::Secret;
use aws_sdk_secretsmanager::Client;
use aws_sdk_secretsmanager::error::DisplayErrorContext;
use aws_types::SdkConfig;
use serde::Deserialize;

/// The environment variable that names the secret.
pub(crate) const SETTING: &str = "MONGODB_URI_SECRET_ARN";
/// The environment variable that says which version of it is read.
pub(crate) const VERSION: &str = "MONGODB_URI_SECRET_VERSION";

/// Why there is no address. None shows what the secret holds.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    /// Secrets Manager does not give it out.
    #[error("the secret in MONGODB_URI_SECRET_ARN cannot be read: {0}")]
    Unreadable(String),
    /// It holds something else.
    #[error("the secret in MONGODB_URI_SECRET_ARN must be text: a JSON object with the address in \"uri\"")]
    Form,
}

/// What the secret holds.
#[derive(Deserialize)]
struct Content {
    uri: String,
}

/// Reads a version of the secret once; the current one if none is said.
///
/// # Errors
/// When it cannot be read, or holds something else.
pub(crate) async fn read(sdk: &SdkConfig, arn: &str, version: Option<&str>) -> Result<Secret, SecretError> {
    let request = Client::new(sdk).get_secret_value().secret_id(arn);
    let answer = request.set_version_id(version.map(str::to_owned)).send().await;
    let answer = answer.map_err(|error| SecretError::Unreadable(DisplayErrorContext(error).to_string()))?;
    let text = answer.secret_string().ok_or(SecretError::Form)?;
    // The reason is left out: it could quote the text.
    let content: Content = serde_json::from_str(text).map_err(|_| SecretError::Form)?;
    Ok(Secret::new(content.uri))
}
