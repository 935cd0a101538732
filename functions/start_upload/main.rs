//! Answers the HTTP API, as a Lambda function.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use config::Config;
use contracts::Observe;
use functions::start_upload::{StartUpload, USES, http};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), observer).await?;
    let function = StartUpload::over(&backend)?;
    let router = http::router(function).layer(from_fn_with_state(backend.observer, flush));
    lambda_http::run(router).await.map_err(anyhow::Error::from_boxed)
}

async fn flush(State(observer): State<Arc<dyn Observe>>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    observer.flush().await;
    answer
}
