//! Takes notifications of stored objects from S3, as a Lambda function.

use functions::notify_upload::{FUNCTION, Notification, NotifyUpload};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use messages::store::chain;
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = backend::for_function(&FUNCTION, observer).await?;
    let function = &NotifyUpload::over(&backend.ports);
    let handle = |event: LambdaEvent<Value>| async move { invoke(function, &event.payload).await };
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(function: &NotifyUpload, event: &Value) -> Result<(), Error> {
    let notifications = Notification::read_all(event).map_err(|error| chain(&error))?;
    let handled = function.handle(&notifications).await;
    function.reporter.observer.flush().await;
    Ok(handled.map_err(|error| chain(&error))?)
}
