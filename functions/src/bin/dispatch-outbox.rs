//! The Lambda function for the control queue, which also sweeps on schedule.

use aws_lambda_events::sqs::SqsBatchResponse;
use backend::Backend;
use backend::services::LinkedServices;
use functions::dispatch_outbox::{self, FUNCTION};
use imports::queues::CONTROL;
use lambda::Trigger;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use messages::store::chain;
use outbox::DispatchOutbox;
use serde_json::Value;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = &backend::for_function(&FUNCTION, &LINKED, observer).await?;
    let function = &dispatch_outbox::over(&backend.ports)?;
    let handle = move |event: LambdaEvent<Value>| invoke(backend, function, event);
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(
    backend: &Backend,
    function: &DispatchOutbox,
    event: LambdaEvent<Value>,
) -> Result<Option<SqsBatchResponse>, Error> {
    match Trigger::read(event.payload).map_err(|error| chain(&error))? {
        Trigger::Queue(event) => Ok(Some(lambda::answer(backend, &CONTROL, function, event, None).await)),
        Trigger::Schedule => {
            let deadline = lambda::deadline(&event.context, backend.ports.engine.host.now());
            let swept = match function.sweep(Some(deadline)).await {
                Ok(swept) if swept.to_the_end => backend.ports.engine.sweeps()?.note().await,
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            backend.ports.engine.observer.flush().await;
            swept.map_err(|error| error.chain())?;
            Ok(None)
        }
    }
}
