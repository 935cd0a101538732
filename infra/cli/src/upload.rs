//! Uploading a file with a form, as a browser does it.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use imports::PresignedPost;
use messages::Host;
use reqwest::multipart::{Form, Part};
use reqwest::{Body, Client, StatusCode};
use tokio::fs::File;

/// How long connecting may take. The upload itself has no limit as long as it makes progress.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long nothing may move.
const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait before a failed upload is tried again. The form allows that: S3 replaces the object.
const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(5)];
/// Shorter fields of a form are words that everybody knows.
const SHORTEST_SECRET: usize = 16;
/// How much of a refusal is shown.
const MAX_ANSWER: usize = 500;

/// Why one try failed.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("reading the file failed")]
    Read(#[source] std::io::Error),
    #[error("sending the file failed")]
    Send(#[source] reqwest::Error),
    #[error("the upload was refused with {status}: {answer}")]
    Refused { status: StatusCode, answer: String },
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

/// Sends a file, streaming it from the disk.
pub(crate) async fn post(host: &dyn Host, form: &PresignedPost, path: &Path) -> anyhow::Result<()> {
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).build()?;
    let mut waits = WAITS.into_iter();
    loop {
        let failure = match try_once(&client, form, path).await {
            Ok(()) => return Ok(()),
            Err(failure) => failure,
        };
        match waits.next().filter(|_| failure.is_retryable()) {
            Some(wait) => host.sleep(wait).await,
            None => return Err(failure).with_context(|| format!("{}: uploading failed", path.display())),
        }
    }
}

async fn try_once(client: &Client, form: &PresignedPost, path: &Path) -> Result<(), Failure> {
    let file = File::open(path).await.map_err(Failure::Read)?;
    let length = file.metadata().await.map_err(Failure::Read)?.len();
    let fields =
        form.fields.iter().fold(Form::new(), |all, (name, value)| all.text(name.clone(), value.clone()));
    // S3 wants to know the length beforehand, and ignores fields after the file.
    let body = fields.part("file", Part::stream_with_length(Body::from(file), length).file_name("file"));
    let answer = client.post(&form.url).multipart(body).send().await.map_err(Failure::Send)?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let answer = without_fields(answer.text().await.unwrap_or_default(), form);
    Err(Failure::Refused { status, answer: answer.chars().take(MAX_ANSWER).collect() })
}

/// S3 repeats what it refuses, such as a key that the policy does not allow, and fields of a form are permissions.
fn without_fields(answer: String, form: &PresignedPost) -> String {
    let secrets = form.fields.values().filter(|value| value.len() >= SHORTEST_SECRET);
    secrets.fold(answer, |answer, value| answer.replace(value.as_str(), "(hidden)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_does_not_show_what_is_in_the_form() {
        let key = "uploads/00000000-0000-0000-0000-000000000001/a.ris";
        let fields = [("key", key), ("x-amz-algorithm", "AWS4")];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let form = PresignedPost { url: String::new(), fields, expires_at: jiff::Timestamp::MAX };
        let shown = without_fields(format!("AWS4: [\"eq\", \"$key\", \"{key}\"] failed"), &form);
        assert_eq!(shown, "AWS4: [\"eq\", \"$key\", \"(hidden)\"] failed");
    }
}
