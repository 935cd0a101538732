//! Works on the saga queue, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use backend::Backend;
use config::{Config, Mode};
use run_saga::{FUNCTION, RunSaga, Settings};
use telemetry::{Audience, LogDecisions};
use worker::{SystemHost, Worker};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = run_saga(&backend);
    lambda::serve_sqs(async |batch, deadline| function.handle(batch, Some(deadline)).await)
        .await
        .map_err(anyhow::Error::from_boxed)
}

fn run_saga(backend: &Backend) -> RunSaga {
    let ports = worker::Ports {
        read: backend.store.clone(),
        write: backend.store.clone(),
        ledger: backend.ledger(),
        dispatcher: backend.dispatcher(FUNCTION),
        host: Arc::clone(&backend.host),
    };
    let settings =
        worker::Settings { concurrency: backend.config.concurrency, ..worker::Settings::default() };
    RunSaga {
        worker: Worker::new(ports, settings),
        reporter: backend.reporter(FUNCTION),
        settings: Settings {
            admit_untokened: backend.config.admit_untokened || backend.config.mode == Mode::Optimistic,
        },
    }
}
