//! Dead-lettered messages.

use std::time::Duration;

use messages::Disposition;

use super::{LONG, Ports, VISIBILITY, retry};
use crate::CheckResult;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    rejected_message_is_dead_lettered_unchanged(ports).await?;
    message_is_dead_lettered_after_receive_limit(ports).await
}

/// The message leaves its queue immediately, and the reason is delivered with it.
pub async fn rejected_message_is_dead_lettered_unchanged(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.sent().await?;
    let received = ports.one(&ports.queue, VISIBILITY).await?;
    let rejected = Disposition::DeadLetter { reason: "wrong in itself".to_owned() };
    ports.answer(&ports.queue, &received.receipt, rejected).await?;
    let dead = ports.one(&ports.dead_letters()?, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    assert_eq!(dead.delivery.reason.as_deref(), Some("wrong in itself"));
    ports.host.sleep(VISIBILITY).await;
    assert!(ports.is_empty(&ports.queue).await?);
    ports.answer(&ports.dead_letters()?, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}

/// The message is delivered exactly as often as the queue allows.
pub async fn message_is_dead_lettered_after_receive_limit(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.sent().await?;
    for count in 1..=ports.receive_limit()? {
        let received = ports.one(&ports.queue, LONG).await?;
        assert_eq!(received.delivery.receive_count, count);
        ports.answer(&ports.queue, &received.receipt, retry(Duration::ZERO)).await?;
    }
    assert!(ports.receive(&ports.queue, 1, LONG).await?.is_empty(), "it was delivered too often");
    let dead = ports.one(&ports.dead_letters()?, LONG).await?;
    assert_eq!(dead.delivery.body, sent.body);
    ports.answer(&ports.dead_letters()?, &dead.receipt, Disposition::Acknowledge).await?;
    Ok(())
}
