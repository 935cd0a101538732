//! Answers the HTTP API, as a Lambda function.
//!
//! So far the only backend is the embedded one, in the folder that `SEARCH_IMPORT_DATA_DIR` names; the adapters for
//! AWS and MongoDB will take its place in the `backend` crate.

use std::sync::Arc;

use backend::Backend;
use config::Config;
use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::{Error, Request, Response, service_fn};
use outbox::session::Options;
use start_upload::http::respond;
use start_upload::{FUNCTION, Ports, Settings, StartUpload};
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = Backend::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions))?;
    let function = &start_upload(&backend);
    let handle = move |request: Request| answer(function, request);
    lambda_http::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn answer(function: &StartUpload, request: Request) -> Result<Response<String>, Error> {
    let (method, path) = (request.method().as_str(), request.uri().path());
    let response = respond(function, method, path, request.body()).await;
    Ok(Response::builder()
        .status(response.status)
        .header(CONTENT_TYPE, response.content_type)
        .body(response.body.to_string())?)
}

fn start_upload(backend: &Backend) -> StartUpload {
    StartUpload {
        ports: Ports {
            sessions: backend.store.clone(),
            outbox: backend.session_outbox(),
            queue: Arc::clone(&backend.queue),
            tokens: backend.tokens(),
            presign: backend.store.clone(),
            jobs: backend.store.clone(),
            dispatcher: backend.dispatcher(FUNCTION),
            reporter: backend.reporter(FUNCTION),
        },
        settings: Settings {
            key_prefix: backend.config.key_prefix.clone(),
            max_file_bytes: backend.config.max_file_bytes,
            upload_valid_for: backend.config.upload_valid_for,
            session: Options::default(),
        },
    }
}
