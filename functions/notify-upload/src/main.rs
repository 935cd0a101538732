//! Takes notifications of stored objects from S3, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use backend::Backend;
use config::Config;
use contracts::store::chain;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use notify_upload::{FUNCTION, Notification, NotifyUpload};
use serde_json::Value;
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = &notify_upload(&backend);
    let handle = |event: LambdaEvent<Value>| async move { invoke(function, &event.payload).await };
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(function: &NotifyUpload, event: &Value) -> Result<(), Error> {
    let notifications = Notification::read_all(event).map_err(|error| chain(&error))?;
    Ok(function.handle(&notifications).await.map_err(|error| chain(&error))?)
}

fn notify_upload(backend: &Backend) -> NotifyUpload {
    NotifyUpload {
        objects: backend.store.clone(),
        queue: Arc::clone(&backend.queue),
        reporter: backend.reporter(FUNCTION),
        key_prefix: backend.config.key_prefix.clone(),
    }
}
