//! Works on the control queue, and sweeps on schedule, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsBatchResponse;
use backend::Backend;
use config::Config;
use contracts::store::chain;
use dispatch_outbox::{DispatchOutbox, FUNCTION};
use lambda::Trigger;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use serde_json::Value;
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = &dispatch_outbox(&backend);
    let handle = move |event: LambdaEvent<Value>| invoke(function, event.payload);
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(function: &DispatchOutbox, event: Value) -> Result<Option<SqsBatchResponse>, Error> {
    match Trigger::read(event).map_err(|error| chain(&error))? {
        Trigger::Queue(event) => {
            Ok(Some(lambda::answer(event, async |batch| function.handle(batch).await).await))
        }
        Trigger::Schedule => {
            function.sweep().await.map_err(|error| error.chain())?;
            Ok(None)
        }
    }
}

fn dispatch_outbox(backend: &Backend) -> DispatchOutbox {
    DispatchOutbox {
        sessions: backend.store.clone(),
        session_outbox: backend.session_outbox(),
        saga_outbox: backend.saga_outbox(),
        queue: Arc::clone(&backend.queue),
        dispatcher: backend.dispatcher(FUNCTION),
        reporter: backend.reporter(FUNCTION),
    }
}
