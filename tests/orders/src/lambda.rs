//! The saga of orders, as a Lambda function.

use lambda::SettleVia;
use orders::{ORDERS_SAGA, SYSTEM};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function(SYSTEM.name)?;
    let backend = backend::engine::for_function(&SYSTEM, ORDERS_SAGA.name, observer).await?;
    lambda::serve(&backend.ports, &SYSTEM, &ORDERS_SAGA, SettleVia::Queue)
        .await
        .map_err(anyhow::Error::from_boxed)
}
