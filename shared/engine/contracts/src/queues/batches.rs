//! Batches of messages.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use messages::queue::MAX_BATCH;
use messages::{Disposition, Outgoing, Queue};

use super::{LONG, Ports, VISIBILITY};
use crate::CheckResult;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    receive_is_limited_by_request_and_queue(ports).await?;
    batch_has_one_result_per_message(ports).await?;
    failed_message_does_not_block_others(ports).await?;
    duplicates_are_both_delivered(ports).await
}

/// A batch does not contain a message twice.
pub async fn receive_is_limited_by_request_and_queue(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let mut messages = Vec::new();
    for _ in 0..MAX_BATCH + 5 {
        messages.push(ports.outgoing(Duration::ZERO)?);
    }
    // A batch of any size is sent.
    ports.send(&messages).await?;
    let mut received = ports.receive.receive(&ports.queue, 3, LONG).await?;
    assert!(received.len() <= 3);
    let more = ports.receive.receive(&ports.queue, 100, LONG).await?;
    assert!(more.len() <= MAX_BATCH);
    received.extend(more);
    received.extend(ports.receive(&ports.queue, messages.len() - received.len(), LONG).await?);
    let mut bodies: Vec<_> = received.iter().map(|message| &message.delivery.body).collect();
    let mut expected: Vec<_> = messages.iter().map(|message| &message.body).collect();
    bodies.sort_unstable();
    expected.sort_unstable();
    assert_eq!(bodies, expected);
    let ids: BTreeSet<_> = received.iter().map(|message| &message.delivery.record_id).collect();
    assert_eq!(ids.len(), received.len(), "two records have one id");
    for message in &received {
        ports.answer(&ports.queue, &message.receipt, Disposition::Acknowledge).await?;
    }
    Ok(())
}

/// The results are in the order of the messages, regardless of their queues. An empty batch has no results.
pub async fn batch_has_one_result_per_message(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    assert!(ports.send.send(&[]).await.is_empty());
    let (one, other) = (ports.outgoing(Duration::ZERO)?, ports.outgoing(Duration::ZERO)?);
    let other = Outgoing { queue: ports.other.clone(), ..other };
    ports.send(&[one.clone(), other.clone()]).await?;
    for (queue, body) in [(&ports.queue, one.body), (&ports.other, other.body)] {
        let received = ports.one(queue, LONG).await?;
        assert_eq!(received.delivery.body, body);
        ports.answer(queue, &received.receipt, Disposition::Acknowledge).await?;
    }
    Ok(())
}

/// A message to an unknown queue fails for good, and its result is at its place.
pub async fn failed_message_does_not_block_others(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let (one, unknown) = (ports.outgoing(Duration::ZERO)?, ports.outgoing(Duration::ZERO)?);
    let unknown = Outgoing { queue: Queue::named("unknown-queue"), ..unknown };
    let results = ports.send.send(&[unknown, one.clone()]).await;
    let failed: Vec<_> = results.iter().map(|sent| sent.as_ref().is_err_and(|e| !e.is_retryable())).collect();
    assert_eq!(failed, [true, false], "{results:?}");
    let received = ports.one(&ports.queue, LONG).await?;
    assert_eq!(received.delivery.body, one.body);
    ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// The queue does not distinguish messages by their ids; acknowledging one copy leaves the other.
pub async fn duplicates_are_both_delivered(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let message = ports.outgoing(Duration::ZERO)?;
    ports.send(std::slice::from_ref(&message)).await?;
    ports.send(std::slice::from_ref(&message)).await?;
    let received = ports.receive(&ports.queue, 2, VISIBILITY).await?;
    let mut copies: BTreeMap<&str, &str> = BTreeMap::new();
    for copy in &received {
        copies.insert(&copy.delivery.record_id, &copy.delivery.body);
    }
    assert_eq!(copies.into_values().collect::<Vec<_>>(), [&message.body, &message.body]);
    let first = received.first().ok_or("two copies")?;
    ports.answer(&ports.queue, &first.receipt, Disposition::Acknowledge).await?;
    ports.host.sleep(VISIBILITY).await;
    let other = ports.one(&ports.queue, LONG).await?;
    assert_eq!(other.delivery.body, message.body);
    ports.answer(&ports.queue, &other.receipt, Disposition::Acknowledge).await?;
    Ok(())
}
