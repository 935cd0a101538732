//! Works on the parse queue, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use backend::Backend;
use config::Config;
use dedup::ProcessedFilter;
use parse_references::{FUNCTION, ParseReferences};
use references::Limits;
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = parse_references(&backend);
    lambda::serve_sqs(async |batch, _| function.handle(batch).await).await.map_err(anyhow::Error::from_boxed)
}

fn parse_references(backend: &Backend) -> ParseReferences {
    let filter = ProcessedFilter::new(FUNCTION, backend.store.clone(), Arc::clone(&backend.host));
    ParseReferences {
        objects: backend.store.clone(),
        studies: backend.store.clone(),
        progress: backend.store.clone(),
        queue: Arc::clone(&backend.queue),
        filter: Arc::new(filter),
        reporter: backend.reporter(FUNCTION),
        limits: Limits {
            max_file_bytes: backend.config.max_file_bytes,
            max_record_bytes: backend.config.max_record_bytes,
        },
    }
}
