//! A single message: hidden, delayed, redelivered.

use std::time::Duration;

use messages::Disposition;

use super::{LONG, Ports, VISIBILITY, retry};
use crate::CheckResult;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    message_arrives_unchanged_in_its_queue(ports).await?;
    acknowledged_message_is_not_redelivered(ports).await?;
    received_message_is_hidden_and_redelivered(ports).await?;
    delayed_message_is_invisible_until_due(ports).await?;
    an_outdated_receipt_answers_nothing(ports).await?;
    retried_message_is_redelivered_after_delay(ports).await
}

/// The message arrives in no other queue.
pub async fn message_arrives_unchanged_in_its_queue(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.sent().await?;
    assert!(ports.is_empty(&ports.other).await?, "it is in another queue");
    let received = ports.one(&ports.queue, LONG).await?;
    assert_eq!(received.delivery.body, sent.body);
    assert_eq!(received.delivery.receive_count, 1);
    assert!(!received.delivery.record_id.is_empty(), "an empty id fails a whole batch");
    ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// This holds even after its visibility timeout. Acknowledging it again succeeds.
pub async fn acknowledged_message_is_not_redelivered(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    ports.sent().await?;
    let received = ports.one(&ports.queue, VISIBILITY).await?;
    for _ in 0..2 {
        ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
    }
    ports.host.sleep(VISIBILITY * 2).await;
    assert!(ports.is_empty(&ports.queue).await?);
    Ok(())
}

/// A message is redelivered after its visibility timeout, with the receive count incremented.
pub async fn received_message_is_hidden_and_redelivered(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let first = ports.one(&ports.queue, VISIBILITY).await?;
    assert!(ports.is_empty(&ports.queue).await?, "it is hidden");
    ports.host.sleep(VISIBILITY).await;
    let second = ports.one(&ports.queue, LONG).await?;
    assert_eq!((second.delivery.body, second.delivery.receive_count), (sent.body, 2));
    assert_eq!(second.delivery.record_id, first.delivery.record_id);
    assert_ne!(second.receipt, first.receipt);
    ports.answer(&ports.queue, &second.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// The delay is counted from the time of sending.
pub async fn delayed_message_is_invisible_until_due(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let message = ports.outgoing(VISIBILITY)?;
    ports.send(std::slice::from_ref(&message)).await?;
    assert!(ports.is_empty(&ports.queue).await?, "it is held back");
    ports.host.sleep(VISIBILITY).await;
    let received = ports.one(&ports.queue, LONG).await?;
    assert_eq!((received.delivery.body, received.delivery.receive_count), (message.body, 1));
    ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// An expired receipt does not affect the current receiver.
pub async fn an_outdated_receipt_answers_nothing(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    ports.sent().await?;
    let slow = ports.one(&ports.queue, VISIBILITY).await?;
    ports.host.sleep(VISIBILITY).await;
    let current = ports.one(&ports.queue, LONG).await?;
    let rejected = Disposition::DeadLetter { reason: "late".to_owned() };
    for disposition in [Disposition::Acknowledge, retry(Duration::ZERO), rejected] {
        ports.answer(&ports.queue, &slow.receipt, disposition).await?;
        assert!(ports.is_empty(&ports.queue).await?, "it is hidden as before");
        assert!(ports.is_empty(&ports.dead_letters()?).await?, "it was not moved");
    }
    ports.answer(&ports.queue, &current.receipt, retry(Duration::ZERO)).await?;
    let again = ports.one(&ports.queue, LONG).await?;
    assert_eq!(again.delivery.receive_count, 3, "it was not deleted");
    ports.answer(&ports.queue, &again.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// The delay may be shorter or longer than the visibility timeout.
pub async fn retried_message_is_redelivered_after_delay(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let first = ports.one(&ports.queue, LONG).await?;
    ports.answer(&ports.queue, &first.receipt, retry(VISIBILITY)).await?;
    assert!(ports.is_empty(&ports.queue).await?, "it is held back");
    ports.host.sleep(VISIBILITY).await;
    let second = ports.one(&ports.queue, LONG).await?;
    assert_eq!((&second.delivery.body, second.delivery.receive_count), (&sent.body, 2));
    ports.answer(&ports.queue, &second.receipt, retry(Duration::ZERO)).await?;
    let third = ports.one(&ports.queue, LONG).await?;
    assert_eq!(third.delivery.receive_count, 3);
    ports.answer(&ports.queue, &third.receipt, Disposition::Acknowledge).await?;
    Ok(())
}
