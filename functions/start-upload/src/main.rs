//! Answers the HTTP API, as a Lambda function.

use std::sync::Arc;

use config::Config;
use lambda_http::http::header::CONTENT_TYPE;
use lambda_http::{Error, Request, Response, service_fn};
use start_upload::StartUpload;
use start_upload::http::respond;
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend = adapters::open(Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions)).await?;
    let function = &StartUpload::over(&backend)?;
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
