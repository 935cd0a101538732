//! The Lambda function for the parse queue.

use backend::services::LinkedServices;
use functions::parse_references::FUNCTION;
use mimalloc::MiMalloc;

/// A quarter of the time of reading is spent in the allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

static LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    functions::run(&FUNCTION, &LINKED, None).await.map_err(anyhow::Error::from_boxed)
}
