//! Sample events for functions under a Lambda emulator.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use backend::{Backend, BackendKind, Config, SystemHost};
use embedded::Store;
use events::{EventError, ExpectedResult, Place, Surroundings};
use imports::PresignedPost;
use local::output;
use reqwest::multipart::{Form, Part};
use serde_json::Value;
use telemetry::LogDecisions;

use crate::args;

/// Prepares the event, or compares the response to it with the expected one.
pub(crate) async fn run(args: &args::Sample) -> anyhow::Result<bool> {
    let config = Config::from_env()?;
    let claim = config.search.projects_claim.clone();
    let at = Surroundings { claim: claim.as_deref(), sqs: config.backend == BackendKind::Aws };
    let name = args.event.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
    let expected = ExpectedResult::of(name);
    if let Some(answer) = &args.answer {
        return check(expected, &read_json(&args.prepared)?, &read_json(answer)?, at);
    }
    let sample = events::with_new_ids(&read(&args.event)?, rand::random());
    let sample = serde_json::from_str(&sample).with_context(|| args.event.display().to_string())?;
    let prepared = prepare(config, sample).await.map_err(anyhow::Error::from_boxed)?;
    fs::write(&args.prepared, prepared.to_string()).with_context(|| args.prepared.display().to_string())?;
    if let Some(expected) = expected {
        output::remark(&format!("expected: {}", expected.told(at)));
    }
    Ok(true)
}

async fn prepare(config: Config, event: Value) -> Result<Value, EventError> {
    let (host, observer) = (Arc::new(SystemHost), Arc::new(LogDecisions));
    match config.backend {
        BackendKind::Embedded => {
            let settings = backend::store_settings(&config);
            let store = Arc::new(Store::open(&config.data_dir, host.clone(), settings)?);
            let Backend { ports, .. } = backend::embedded(&store, host, observer, config);
            let upload = async |form: &PresignedPost, file| events::upload(&store, form, file).await;
            Place { ports: &ports, bucket: embedded::BUCKET, upload }.admit(event).await
        }
        BackendKind::Aws => {
            let bucket = config.services.upload_bucket.clone().unwrap_or_default();
            let Backend { ports, .. } = backend::open(config, host, observer).await?;
            Place { ports: &ports, bucket: &bucket, upload: post }.admit(event).await
        }
    }
}

/// Uploads a file like a browser.
async fn post(form: &PresignedPost, file: &'static [u8]) -> Result<(), EventError> {
    let fields =
        form.fields.iter().fold(Form::new(), |all, (name, value)| all.text(name.clone(), value.clone()));
    let fields = fields.part("file", Part::bytes(file).file_name("file"));
    reqwest::Client::new().post(&form.url).multipart(fields).send().await?.error_for_status()?;
    Ok(())
}

fn check(
    expected: Option<&ExpectedResult>,
    event: &Value,
    answer: &Value,
    at: Surroundings<'_>,
) -> anyhow::Result<bool> {
    let Some(expected) = expected else { return Ok(true) };
    if !expected.is_answered_by(event, answer, at) {
        bail!("the response differs from the expectation: {}", expected.told(at));
    }
    output::remark("as expected");
    Ok(true)
}

fn read(path: &Path) -> anyhow::Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

fn read_json(path: &Path) -> anyhow::Result<Value> {
    serde_json::from_str(&read(path)?).with_context(|| path.display().to_string())
}
