//! Takes notifications of stored objects from S3, as a Lambda function.

use std::sync::Arc;

use config::Config;
use contracts::store::chain;
use functions::notify_upload::{Notification, NotifyUpload, USES};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), observer).await?;
    let function = &NotifyUpload::over(&backend);
    let handle = |event: LambdaEvent<Value>| async move { invoke(function, &event.payload).await };
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(function: &NotifyUpload, event: &Value) -> Result<(), Error> {
    let notifications = Notification::read_all(event).map_err(|error| chain(&error))?;
    let handled = function.handle(&notifications).await;
    function.reporter.observer.flush().await;
    Ok(handled.map_err(|error| chain(&error))?)
}
