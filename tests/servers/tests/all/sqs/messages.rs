//! The contract suite, and tests specific to SQS.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use aws::queues::Queues;
use aws_sdk_sqs::Client;
use backend::SystemHost;
use imports::queues;
use messages::{Disposition, Outgoing, Queue, ReceiveMessages, SendMessages};

use super::{QUEUES, adapter, outgoing, with_queues};
use servers::TestResult;
use servers::mongo::eventually;

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn queues() -> TestResult {
    with_queues(|client, urls| async move {
        let sqs = adapter(client, urls);
        let ports = contracts::queues::Ports {
            send: &sqs,
            receive: &sqs,
            inspect: &sqs,
            host: &SystemHost,
            queues: &QUEUES,
            queue: queues::SAGA,
            other: queues::CONTROL,
            // SQS is fair because of the message group that the adapter sets; ministack delivers in the order of
            // sending.
            fair: false,
        };
        contracts::queues::all(&ports).await
    })
    .await
}

#[tokio::test]
async fn messages_exceeding_batch_size_all_arrive() -> TestResult {
    with_queues(|client, urls| async move {
        let sqs = adapter(client, urls);
        // Three of them exceed the size of a batch, and twenty-five exceed its count.
        let large = |n| outgoing(n, format!("{n}:{}", "x".repeat(400_000)));
        let mut messages: Vec<Outgoing> = (0..3).map(large).collect();
        messages.extend((3..25).map(|n| outgoing(n, n.to_string())));
        for result in sqs.send(&messages).await {
            result?;
        }
        let mut bodies = BTreeSet::new();
        for _ in 0..messages.len() {
            let received = sqs.receive(&queues::SAGA, 10, LONG).await?;
            bodies.extend(received.into_iter().map(|message| message.delivery.body));
        }
        assert_eq!(bodies, messages.into_iter().map(|message| message.body).collect());
        Ok(())
    })
    .await
}

/// Returns the attributes of the only message in a queue.
async fn attributes(
    client: &Client,
    urls: &Queues,
    queue: &Queue,
) -> Result<BTreeMap<String, String>, Box<dyn std::error::Error + Send + Sync>> {
    let request = client.receive_message().queue_url(urls.url(queue).unwrap()).visibility_timeout(0);
    let message = request.message_attribute_names("All").send().await?.messages.unwrap_or_default().remove(0);
    let attributes = message.message_attributes.unwrap_or_default().into_iter();
    Ok(attributes.map(|(name, value)| (name, value.string_value.unwrap_or_default())).collect())
}

#[tokio::test]
async fn message_attributes_have_type_trace_and_reason() -> TestResult {
    with_queues(|client, urls| async move {
        let sqs = adapter(client.clone(), urls.clone());
        let body = r#"{"type": "search-import.X.v1", "traceparent": "00-1-2-01"}"#;
        sqs.send(&[outgoing(1, body)]).await.into_iter().collect::<Result<(), _>>()?;
        let envelope = [("type", "search-import.X.v1"), ("traceparent", "00-1-2-01")];
        let mut expected: BTreeMap<String, String> =
            envelope.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(attributes(&client, &urls, &queues::SAGA).await?, expected);
        let received = sqs.receive(&queues::SAGA, 1, LONG).await?.remove(0);
        let rejected = Disposition::DeadLetter { reason: "no such\u{0} project".to_owned() };
        sqs.answer(&queues::SAGA, &received.receipt, &rejected).await?;
        expected.insert("dead_letter_reason".to_owned(), "no such project".to_owned());
        assert_eq!(attributes(&client, &urls, &queues::SAGA_DEAD).await?, expected);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn messages_of_last_queue_stay() -> TestResult {
    with_queues(|client, urls| async move {
        let dead = urls.url(&queues::SAGA_DEAD).unwrap().to_owned();
        client.send_message().queue_url(&dead).message_body("junk").send().await?;
        let sqs = adapter(client, urls);
        let received = sqs.receive(&queues::SAGA_DEAD, 1, Duration::from_secs(1)).await?.remove(0);
        let rejected = Disposition::DeadLetter { reason: "junk".to_owned() };
        sqs.answer(&queues::SAGA_DEAD, &received.receipt, &rejected).await?;
        eventually("it is there again", Duration::from_secs(20), async || {
            Ok(sqs.receive(&queues::SAGA_DEAD, 1, LONG).await?.len() == 1)
        })
        .await
    })
    .await
}

/// The longest retry of SQS, and a longer one.
#[tokio::test]
async fn retry_delay_is_limited_by_sqs() -> TestResult {
    with_queues(|client, urls| async move {
        let sqs = adapter(client, urls);
        for hours in [11, 12, 48] {
            sqs.send(&[outgoing(1, "x")]).await.into_iter().collect::<Result<(), _>>()?;
            let received = sqs.receive(&queues::SAGA, 1, LONG).await?.remove(0);
            let after = Duration::from_secs(hours * 3_600);
            sqs.answer(
                &queues::SAGA,
                &received.receipt,
                &Disposition::Retry { after, reason: String::new() },
            )
            .await?;
            assert!(sqs.receive(&queues::SAGA, 1, LONG).await?.is_empty(), "{hours} hours");
        }
        Ok(())
    })
    .await
}
