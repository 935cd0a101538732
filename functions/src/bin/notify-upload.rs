//! The Lambda function for the queue of S3's notifications.

use aws_lambda_events::sqs::SqsBatchResponse;
use backend::Backend;
use backend::services::LinkedServices;
use functions::notify_upload::{FUNCTION, Notification, NotifyUpload};
use imports::queues::UPLOADS;
use lambda::{SettleVia, Trigger, Worker};
use lambda_runtime::{Error, LambdaEvent, service_fn};
use messages::store::chain;
use serde_json::Value;

const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let observer = telemetry::for_function(imports::SYSTEM)?;
    let backend = &backend::for_function(&FUNCTION, &LINKED, observer).await?;
    let function = &NotifyUpload::over(&backend.ports)?;
    let handle = move |event: LambdaEvent<Value>| invoke(backend, function, event);
    lambda_runtime::run(service_fn(handle)).await.map_err(anyhow::Error::from_boxed)
}

/// Handles a batch of its queue, or an event of S3 itself: S3 invoked the function of earlier versions directly, and
/// an operator may do the same.
async fn invoke(
    backend: &Backend,
    function: &NotifyUpload,
    event: LambdaEvent<Value>,
) -> Result<Option<SqsBatchResponse>, Error> {
    let refused = match Notification::read_all(&event.payload) {
        Ok(notifications) => {
            let handled = function.handle(&notifications).await;
            function.reporter.observer.flush().await;
            return Ok(handled.map(|()| None).map_err(|error| chain(&error))?);
        }
        Err(refused) => refused,
    };
    let Ok(Trigger::Queue(batch)) = Trigger::read(event.payload) else { return Err(chain(&refused).into()) };
    let deadline = lambda::deadline(&event.context, backend.ports.engine.host.now());
    let settling = SettleVia::with_queues(backend.has_event_sources());
    let worker = Worker { engine: &backend.ports.engine, queue: &UPLOADS, consumer: function, settling };
    Ok(Some(worker.answer(batch, Some(deadline)).await))
}
