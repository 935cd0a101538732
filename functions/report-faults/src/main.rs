//! Works on the dead-letter queue of the parse queue, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use backend::Backend;
use config::Config;
use report_faults::{FUNCTION, ReportFaults};
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = report_faults(&backend);
    lambda::serve_sqs(async |batch, _| function.handle(batch).await).await.map_err(anyhow::Error::from_boxed)
}

fn report_faults(backend: &Backend) -> ReportFaults {
    ReportFaults { queue: Arc::clone(&backend.queue), reporter: backend.reporter(FUNCTION) }
}
