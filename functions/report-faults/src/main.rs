//! Works on the dead-letter queue of the parse queue, as a Lambda function.

use std::sync::Arc;

use config::Config;
use outbox::Queue;
use report_faults::{ReportFaults, USES};
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend =
        adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions)).await?;
    let function = ReportFaults::over(&backend);
    let handle = async |batch: &[_], _| function.handle(batch).await;
    lambda::serve_sqs(&backend, Queue::ParseDead, handle).await.map_err(anyhow::Error::from_boxed)
}
