//! Uploading a file with a presigned form, as a browser does.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use imports::PresignedPost;
use messages::Host;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Client, StatusCode};
use tokio::fs::File;

/// The timeout for connecting. The upload itself has no time limit while it makes progress.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout for progress.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// The delays before retries of a failed upload. The form can be used again, and S3 replaces the object.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// The minimum length of a secret field. Shorter fields of a form are well-known words.
const MIN_SECRET: usize = 16;
/// The maximum length of a response in an error.
const MAX_RESPONSE: usize = 500;

/// The error of one attempt.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("reading the file failed")]
    Read(#[source] std::io::Error),
    #[error("sending the file failed")]
    Send(#[source] reqwest::Error),
    #[error("the upload was rejected with {status}: {response}")]
    Refused { status: StatusCode, response: String },
}

impl Failure {
    fn is_retryable(&self) -> bool {
        match self {
            Self::Read(_) => false,
            Self::Send(error) => !error.is_builder(),
            Self::Refused { status, .. } => {
                status.is_server_error() || *status == StatusCode::TOO_MANY_REQUESTS
            }
        }
    }
}

/// Uploads a file, streaming it from the disk.
pub(crate) async fn post(host: &dyn Host, form: &PresignedPost, path: &Path) -> anyhow::Result<()> {
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).build()?;
    let mut delays = RETRY_DELAYS.into_iter();
    loop {
        let failure = match try_once(&client, form, path).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match delays.next().filter(|_| failure.is_retryable()) {
            Some(delay) => host.sleep(delay).await,
            None => return Err(failure).with_context(|| format!("{}: uploading failed", path.display())),
        }
    }
}

async fn try_once(client: &Client, form: &PresignedPost, path: &Path) -> Result<(), Failure> {
    let file = File::open(path).await.map_err(Failure::Read)?;
    let length = file.metadata().await.map_err(Failure::Read)?.len();
    let fields =
        form.fields.iter().fold(Form::new(), |all, (name, value)| all.text(name.clone(), value.clone()));
    // S3 requires the length in advance, and ignores fields after the file.
    let body = fields.part("file", Part::stream_with_length(Body::from(file), length).file_name("file"));
    let response = client.post(&form.url).multipart(body).send().await.map_err(Failure::Send)?;
    let status = response.status();
    if status.is_success() {
        return Ok(());
    }
    let response = without_secrets(response.text().await.unwrap_or_default(), form);
    Err(Failure::Refused { status, response: response.chars().take(MAX_RESPONSE).collect() })
}

/// Hides the fields of a form in a response. S3 quotes rejected fields, such as a key that the policy does not allow,
/// and the fields grant permission to upload.
fn without_secrets(response: String, form: &PresignedPost) -> String {
    let secrets = form.fields.values().filter(|value| value.len() >= MIN_SECRET);
    secrets.fold(response, |response, value| response.replace(value.as_str(), "(hidden)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejection_hides_the_forms_fields() {
        let key = "uploads/00000000-0000-0000-0000-000000000001/a.ris";
        let fields = [("key", key), ("x-amz-algorithm", "AWS4")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let form = PresignedPost { url: String::new(), fields, expires_at: jiff::Timestamp::MAX };
        let shown = without_secrets(format!("AWS4: [\"eq\", \"$key\", \"{key}\"] failed"), &form);
        assert_eq!(shown, "AWS4: [\"eq\", \"$key\", \"(hidden)\"] failed");
    }
}
