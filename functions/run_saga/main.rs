//! Works on the saga queue, as a Lambda function.

use std::sync::Arc;

use config::Config;
use functions::run_saga::{RunSaga, USES};
use outbox::Queue;
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), observer).await?;
    let function = RunSaga::over(&backend)?;
    let handle = async |batch: &[_], deadline| function.handle(batch, Some(deadline)).await;
    lambda::serve_sqs(&backend, Queue::Saga, handle).await.map_err(anyhow::Error::from_boxed)
}
