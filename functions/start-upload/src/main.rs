//! Answers the HTTP API, as a Lambda function.

use std::sync::Arc;

use config::Config;
use start_upload::{StartUpload, USES, http};
use telemetry::{Audience, LogDecisions};
use worker::SystemHost;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    telemetry::start(Audience::Machine);
    let backend =
        adapters::open_for(&USES, Config::from_env()?, Arc::new(SystemHost), Arc::new(LogDecisions)).await?;
    let router = http::router(StartUpload::over(&backend)?);
    lambda_http::run(router).await.map_err(anyhow::Error::from_boxed)
}
