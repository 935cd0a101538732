//! The Lambda function for the saga queue.

use backend::services::LinkedServices;
use functions::run_saga::FUNCTION;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = backend::for_function(&FUNCTION, &LINKED, observer).await?;
    lambda::serve(&backend, &FUNCTION).await.map_err(anyhow::Error::from_boxed)
}
