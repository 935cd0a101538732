//! All functions in one process, on SQLite, with the HTTP API on port 8080.

use std::path::Path;
use std::sync::Arc;

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner, stop};
use {{crate_name}}::http::{Api, router};
use {{crate_name}}::service::Echo;
use {{crate_name}}::{Ports, SYSTEM};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let with_service = |engine| Ports { engine, service: Arc::new(Echo) };
    let (dir, faults) = (Path::new("data"), FaultInjection::default());
    let runner = Runner::open_with(&SYSTEM, dir, Arc::new(SystemHost), faults, with_service).await?;
    let api = Api::new(runner.request_ports().as_ref())?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    let serve = async {
        let stop = async {
            stop::asked_to_stop().await;
            // A handler that hangs does not keep the process; its command is delivered again at the next start.
            stop::stop_in_time();
        };
        axum::serve(listener, router(api)).with_graceful_shutdown(stop).await
    };
    Ok(runner.run_until(serve).await??)
}
