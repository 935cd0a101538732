//! The Lambda function for the control queue, which also sweeps and indexes words on schedule.

use backend::services::LinkedServices;
use functions::dispatch_outbox::{FUNCTION, upkeep};

static LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    functions::run(&FUNCTION, &LINKED, Some(upkeep)).await.map_err(anyhow::Error::from_boxed)
}
