//! The Lambda function for the parse queue.

use backend::services::LinkedServices;
use functions::SYSTEM;
use functions::parse_references::FUNCTION;
use lambda::Settling;
use mimalloc::MiMalloc;

/// A quarter of the time of reading is spent in the allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function(imports::SYSTEM)?;
    let backend = backend::for_function(&FUNCTION, &LINKED, observer).await?;
    let settling = Settling::with_queues(backend.has_event_sources());
    lambda::serve(&backend.ports, &SYSTEM, &FUNCTION, settling).await.map_err(anyhow::Error::from_boxed)
}
