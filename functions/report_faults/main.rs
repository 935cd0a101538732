//! Works on the dead-letter queue of the parse queue, as a Lambda function.

use std::sync::Arc;

use config::Config;
use functions::report_faults::{ReportFaults, USES};
use outbox::Queue;
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), observer).await?;
    let function = ReportFaults::over(&backend);
    let handle = async |batch: &[_], _| function.handle(batch).await;
    lambda::serve_sqs(&backend, Queue::ParseDead, handle).await.map_err(anyhow::Error::from_boxed)
}
