//! The depths of queues.

use std::time::Duration;

use messages::{Depth, Disposition, Message, Presence, StoreError};

use super::{LONG, Ports};
use crate::CheckResult;

/// The number of times that a count is requested again: counts of a real queue are approximate.
const MAX_POLLS: usize = 100;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    messages_are_counted_by_state(ports).await?;
    message_is_located(ports).await
}

/// Visible messages, messages in flight, and delayed messages. The reported age belongs to an existing message.
pub async fn messages_are_counted_by_state(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    until(ports, Depth::default()).await?;
    let mut messages = vec![ports.outgoing(Duration::ZERO)?, ports.outgoing(Duration::ZERO)?];
    messages.push(ports.outgoing(LONG)?);
    ports.send(&messages).await?;
    until(ports, Depth { visible: 2, delayed: 1, ..Depth::default() }).await?;
    let held = ports.one(&ports.queue, LONG).await?;
    until(ports, Depth { visible: 1, in_flight: 1, delayed: 1, ..Depth::default() }).await?;
    ports.answer(&ports.queue, &held.receipt, Disposition::Acknowledge).await?;
    until(ports, Depth { visible: 1, delayed: 1, ..Depth::default() }).await?;
    for spec in ports.queues {
        assert!(
            ports.inspect.depths().await.contains_key(&spec.queue),
            "queue {} is not counted",
            spec.queue
        );
    }
    Ok(())
}

/// A service may be unable to report the presence of a message.
pub async fn message_is_located(ports: &Ports<'_>) -> CheckResult {
    ports.drain().await?;
    let sent = ports.outgoing(Duration::ZERO)?;
    let id = Message::decode(&sent.body)?.id;
    let is = async |expected: Presence| {
        let found = ports.inspect.locate(&ports.queue, id).await?;
        assert!(found.is_none_or(|found| found == expected), "{found:?} instead of {expected:?}");
        Ok::<_, StoreError>(())
    };
    is(Presence::Absent).await?;
    ports.send(std::slice::from_ref(&sent)).await?;
    is(Presence::Waiting).await?;
    let received = ports.one(&ports.queue, LONG).await?;
    is(Presence::Received).await?;
    ports.answer(&ports.queue, &received.receipt, Disposition::Acknowledge).await?;
    is(Presence::Absent).await?;
    Ok(())
}

async fn until(ports: &Ports<'_>, expected: Depth) -> CheckResult {
    let mut found = Depth::default();
    for _ in 0..MAX_POLLS {
        let counted = ports.inspect.depths().await.remove(&ports.queue);
        found = counted.ok_or_else(|| format!("queue {} is not counted", ports.queue))??;
        assert!(found.total() > 0 || found.oldest.is_none(), "nothing has an age");
        if (Depth { oldest: None, ..found }) == expected {
            return Ok(());
        }
    }
    Err(format!("{found:?} instead of {expected:?}").into())
}
