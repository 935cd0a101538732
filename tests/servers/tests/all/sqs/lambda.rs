//! Outcomes that Lambda's partial batch response cannot express are reported to the queue directly.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws::queues::Queues;
use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use backend::config::{BackendKind, Config, Services};
use backend::{Backend, SystemHost};
use imports::queues;
use jiff::Timestamp;
use lambda::{SettleVia, Worker};
use messages::{Consumer, Delivery, Disposition, Queue, ReceiveMessages, SendMessages};
use servers::TestResult;

use super::{adapter, outgoing, with_queues};

/// Returns the backend on the queues of a test.
async fn backend(urls: &Queues) -> Result<Backend, backend::OpenError> {
    let urls = [queues::SAGA, queues::SAGA_DEAD]
        .map(|queue| (Queues::setting(imports::SYSTEM, &queue), urls.url(&queue).unwrap().to_owned()));
    let services = Services { queue_urls: urls.into(), ..Config::default().services };
    let config = Config { backend: BackendKind::Aws, services, ..Config::default() };
    backend::open(config, Arc::new(SystemHost), Arc::new(())).await
}

static QUEUE: Queue = queues::SAGA;

/// Returns the disposition named in the body of a message; a message without one is rejected.
struct Judge;

#[async_trait]
impl Consumer for Judge {
    async fn consume(&self, batch: &[Delivery], _: Option<Timestamp>) -> Vec<Disposition> {
        let judge = |delivery: &Delivery| match delivery.body.as_str() {
            "done" => Disposition::Acknowledge,
            "later" => Disposition::Retry { after: Duration::ZERO, reason: "busy".into() },
            _ => Disposition::DeadLetter { reason: "it is junk".into() },
        };
        batch.iter().map(judge).collect()
    }
}

/// Receives messages like Lambda's event source.
async fn event(client: &Client, url: &str) -> SqsEvent {
    let request = client.receive_message().queue_url(url).max_number_of_messages(10).visibility_timeout(600);
    let request = request.message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
    let received = request.send().await.unwrap().messages.unwrap_or_default();
    let mut event = SqsEvent::default();
    event.records = received.into_iter().map(record).collect();
    event
}

fn record(message: Message) -> SqsMessage {
    let attributes = message.attributes.unwrap_or_default();
    let mut record = SqsMessage::default();
    record.message_id = message.message_id;
    record.receipt_handle = message.receipt_handle;
    record.body = message.body;
    record.attributes =
        attributes.into_iter().map(|(name, value)| (name.as_str().to_owned(), value)).collect();
    record
}

#[tokio::test]
async fn record_is_redelivered_or_dead_lettered_as_decided() -> TestResult {
    with_queues(|client, urls| async move {
        let (backend, sqs) = (backend(&urls).await?, adapter(client.clone(), urls.clone()));
        for result in sqs.send(&[outgoing(1, "done"), outgoing(2, "later"), outgoing(3, "junk")]).await {
            result?;
        }
        let event = event(&client, urls.url(&queues::SAGA).unwrap()).await;
        assert_eq!(event.records.len(), 3);
        let later = event.records.iter().find(|record| record.body.as_deref() == Some("later")).unwrap();
        let later = later.message_id.clone().unwrap();
        let response = worker(&backend).answer(event, None).await;
        let failed: Vec<&str> =
            response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
        assert_eq!(failed, [later], "the junk is moved, so Lambda may delete it");
        // Long before the visibility timeout of ten minutes has expired.
        let again = sqs.receive(&queues::SAGA, 10, Duration::from_secs(600)).await?;
        let bodies: Vec<&str> = again.iter().map(|received| received.delivery.body.as_str()).collect();
        assert_eq!(bodies, ["later"]);
        let dead = sqs.receive(&queues::SAGA_DEAD, 10, Duration::from_secs(600)).await?;
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].delivery.body, "junk");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn without_queue_all_outcomes_are_in_response() -> TestResult {
    let backend = Backend { config: Config::default(), ..backend_without_queues().await? };
    let mut record = SqsMessage::default();
    record.message_id = Some("m".into());
    let mut event = SqsEvent::default();
    event.records = vec![record];
    let response = worker(&backend).answer(event, None).await;
    assert_eq!(response.batch_item_failures.len(), 1);
    Ok(())
}

fn worker(backend: &Backend) -> Worker<'_> {
    let settling = SettleVia::with_queues(backend.has_event_sources());
    Worker { engine: &backend.ports.engine, queue: &QUEUE, consumer: &Judge, settling }
}

async fn backend_without_queues() -> Result<Backend, backend::OpenError> {
    let config = Config { backend: BackendKind::Aws, ..Config::default() };
    backend::open(config, Arc::new(SystemHost), Arc::new(())).await
}
