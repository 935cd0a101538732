//! The Lambda function for the dead-letter queue of the parse queue, which also collects dead letters on schedule.

use aws_lambda_events::sqs::SqsBatchResponse;
use backend::Backend;
use backend::services::LinkedServices;
use functions::report_faults::{self, FUNCTION};
use imports::queues::PARSE_DEAD;
use lambda::Trigger;
use lambda_runtime::{Error, LambdaEvent, service_fn};
use messages::Consumer;
use messages::store::chain;
use saga::{Failures, Missing};
use serde_json::Value;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function()?;
    let backend = &backend::for_function(&FUNCTION, &LINKED, observer).await?;
    let failures = &report_faults::over(&backend.ports)?;
    let consumer: Option<Result<_, Missing>> = FUNCTION.build.map(|build| build(&backend.ports));
    let consumer = &*consumer.transpose()?.ok_or_else(|| anyhow::anyhow!("no consumer for {PARSE_DEAD}"))?;
    let handle = move |event: LambdaEvent<Value>| invoke(backend, consumer, failures, event);
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

async fn invoke(
    backend: &Backend,
    consumer: &dyn Consumer,
    failures: &Failures,
    event: LambdaEvent<Value>,
) -> Result<Option<SqsBatchResponse>, Error> {
    match Trigger::read(event.payload).map_err(|error| chain(&error))? {
        Trigger::Queue(event) => Ok(Some(lambda::answer(backend, &PARSE_DEAD, consumer, event, None).await)),
        Trigger::Schedule => {
            let deadline = lambda::deadline(&event.context, backend.ports.engine.host.now());
            let worked = failures.run(Some(deadline)).await;
            backend.ports.engine.observer.flush().await;
            worked.map_err(|error| error.chain())?;
            Ok(None)
        }
    }
}
