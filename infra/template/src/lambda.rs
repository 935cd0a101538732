//! All functions on AWS Lambda. The handler of a Lambda function is its name in the table.

use std::sync::Arc;

use anyhow::Context;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use onceward::env::engine::for_function;
use onceward::lambda::{SettleVia, serve};
use onceward::messages::DecisionSink;
use onceward::telemetry;
use {{crate_name}}::http::{Api, router};
use {{crate_name}}::service::Echo;
use {{crate_name}}::{HTTP, Ports, SYSTEM};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let name = std::env::var("_HANDLER").context("reading the name of the function from _HANDLER")?;
    let function = SYSTEM.function(&name).with_context(|| format!("the table has no function {name}"))?;
    let observer = telemetry::for_function(SYSTEM.name)?;
    let engine = for_function(&SYSTEM, function.name, observer).await?.ports;
    let ports = Ports { engine, service: Arc::new(Echo) };
    let served = if function.name == HTTP.name {
        let routes = router(Api::new(&ports.engine)?);
        lambda_http::run(routes.layer(from_fn_with_state(ports.engine.observer, flush))).await
    } else {
        serve(&ports, &SYSTEM, function, SettleVia::Queue).await
    };
    served.map_err(anyhow::Error::from_boxed)
}

/// Writes the metrics of a request before Lambda freezes the process.
async fn flush(State(observer): State<Arc<dyn DecisionSink>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    observer.flush().await;
    response
}
