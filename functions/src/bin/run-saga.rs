//! The Lambda function for the saga queue.

use backend::services::LinkedServices;
use functions::run_saga::FUNCTION;

static LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    functions::run(&FUNCTION, &LINKED, None).await.map_err(anyhow::Error::from_boxed)
}
