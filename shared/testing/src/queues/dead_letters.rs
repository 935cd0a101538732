//! Messages that are given up.

use std::time::Duration;

use contracts::Disposition;
use outbox::Queue;

use super::{LONG, Ports, QUEUE, VISIBILITY, retry};
use crate::Checked;

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    a_rejected_message_moves_to_the_dead_letters_unchanged(ports).await?;
    a_message_received_too_often_moves_to_the_dead_letters(ports).await
}

/// At once, and out of the queue it was in.
///
/// # Errors
/// When a port fails.
pub async fn a_rejected_message_moves_to_the_dead_letters_unchanged(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let received = ports.one(QUEUE, VISIBILITY).await?;
    let rejected = Disposition::DeadLetter { reason: "wrong in itself".to_owned() };
    ports.settle(QUEUE, &received.receipt, rejected).await?;
    let dead = ports.one(Queue::SagaDead, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    ports.host.sleep(VISIBILITY).await;
    assert!(ports.is_empty(QUEUE).await?);
    ports.settle(Queue::SagaDead, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// Exactly as often as the queue allows it is delivered.
///
/// # Errors
/// When a port fails.
pub async fn a_message_received_too_often_moves_to_the_dead_letters(ports: &Ports<'_>) -> Checked {
    ports.drain().await?;
    let sent = ports.sent().await?;
    for count in 1..=ports.receive_limit {
        let received = ports.one(QUEUE, LONG).await?;
        assert_eq!(received.delivery.receive_count, count);
        ports.settle(QUEUE, &received.receipt, retry(Duration::ZERO)).await?;
    }
    assert!(ports.receive(QUEUE, 1, LONG).await?.is_empty(), "it was delivered too often");
    let dead = ports.one(Queue::SagaDead, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    ports.settle(Queue::SagaDead, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}
