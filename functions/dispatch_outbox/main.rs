//! Works on the control queue, and sweeps on schedule, as a Lambda function.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsBatchResponse;
use backend::Backend;
use config::Config;
use contracts::store::chain;
use functions::dispatch_outbox::{DispatchOutbox, USES};
use lambda::Trigger;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use outbox::Queue;
use serde_json::Value;
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = &adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), observer).await?;
    let function = &DispatchOutbox::over(backend)?;
    let handle = move |event: LambdaEvent<Value>| invoke(backend, function, event.payload);
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(
    backend: &Backend,
    function: &DispatchOutbox,
    event: Value,
) -> Result<Option<SqsBatchResponse>, Error> {
    match Trigger::read(event).map_err(|error| chain(&error))? {
        Trigger::Queue(event) => {
            let handle = async |batch: &[_]| function.handle(batch).await;
            Ok(Some(lambda::answer(backend, Queue::Control, event, handle).await))
        }
        Trigger::Schedule => {
            let swept = function.sweep().await;
            backend.observer.flush().await;
            swept.map_err(|error| error.chain())?;
            Ok(None)
        }
    }
}
