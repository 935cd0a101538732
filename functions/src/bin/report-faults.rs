//! The Lambda function for the dead-letter queue of the parse queue, which also collects dead letters on schedule.

use backend::services::LinkedServices;
use functions::report_faults::FUNCTION;

static LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    functions::run(&FUNCTION, &LINKED, None).await.map_err(anyhow::Error::from_boxed)
}
