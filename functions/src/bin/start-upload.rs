//! The Lambda function of the HTTP API.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use backend::services::LinkedServices;
use functions::start_upload::FUNCTION;
use http_api::{self as api, BodyMode, PageKey, authorizer};
use messages::DecisionSink;
use service::SearchService;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function(imports::SYSTEM)?;
    let backend = backend::for_function(&FUNCTION, &LINKED, observer).await?;
    let function = SearchService::over(&backend.ports, &functions::SYSTEM)?;
    let settings = backend.config.search;
    let (claim, scope) = (settings.projects_claim, settings.operator_scope);
    let router = api::router_for(function, BodyMode::Buffered, move |request| {
        authorizer::caller(claim.as_deref(), &scope, request)
    });
    let router = match settings.page_key_sha256 {
        Some(hash) => PageKey::with_sha256(hash).required_by(router),
        None => router,
    };
    let router = router.layer(from_fn_with_state(backend.ports.engine.observer, flush));
    lambda_http::run(router).await.map_err(anyhow::Error::from_boxed)
}

async fn flush(State(observer): State<Arc<dyn DecisionSink>>, request: Request, next: Next) -> Response {
    let answer = next.run(request).await;
    observer.flush().await;
    answer
}
