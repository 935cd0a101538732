//! All queues in one table.
//!
//! A message is visible from `visible_at` on. Receiving it moves that moment into the future and counts; acknowledging
//! deletes it. A receipt is the message's number and its count, so the receipt of an earlier delivery fits nothing any
//! more. Partitions take turns ([`crate::fair_queueing`]), and each starts with the message that has been visible
//! longest.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::store::some_of;
use messages::{
    Delivery, Disposition, MessageId, Outgoing, PartitionKey, Queue, QueueSpec, ReceiveMessages,
    ReceivedMessage, SendError, SendMessages, StoreError,
};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use crate::Store;
use crate::fair_queueing::{self, Group, WaitingMessage};
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{later, nanos};

/// A message on its way into a queue.
pub(crate) struct QueuedMessage {
    pub(crate) queue: Queue,
    pub(crate) id: Option<MessageId>,
    pub(crate) partition: Option<PartitionKey>,
    pub(crate) body: String,
    pub(crate) sent_at: Timestamp,
    pub(crate) visible_at: Timestamp,
}

#[async_trait]
impl SendMessages for Store {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let doing = format!("sending message {}", some_of(messages.iter().map(|message| message.id)));
        let now = self.now();
        let is_known = |message: &Outgoing| QueueSpec::of(self.settings().queues, &message.queue).is_some();
        let known = messages.iter().filter(|message| is_known(message));
        let sending: Vec<QueuedMessage> = known.map(|message| sending(message, now)).collect();
        let work = move |db: &Connection| sending.iter().try_for_each(|message| insert(db, message));
        let sent = self.change(Call::QueueSend, doing.clone(), work).await;
        if sent.is_ok() {
            self.sends().notify();
        }
        let outcome = |message: &Outgoing| match &sent {
            _ if !is_known(message) => Err(SendError::UnknownQueue(message.queue.clone())),
            Ok(()) => Ok(()),
            Err(error) if error.is_retryable() => {
                Err(StoreError::unavailable(doing.clone(), error.chain()).into())
            }
            Err(error) => Err(StoreError::unusable(doing.clone(), error.chain()).into()),
        };
        messages.iter().map(outcome).collect()
    }
}

fn sending(message: &Outgoing, now: Timestamp) -> QueuedMessage {
    QueuedMessage {
        queue: message.queue.clone(),
        id: Some(message.id),
        partition: Some(message.partition),
        body: message.body.clone(),
        sent_at: now,
        visible_at: later(now, message.delay),
    }
}

/// Puts a message into its queue.
pub(crate) fn insert(db: &Connection, message: &QueuedMessage) -> Result<(), Fault> {
    let (queue, visible_at) = (message.queue.name(), nanos(message.visible_at));
    let partition = message.partition.map(|id| id.to_string());
    let group = Group { queue, partition: partition.as_deref() };
    let turn = fair_queueing::turn(db, group, visible_at, i64::MAX)?;
    db.prepare_cached(
        "INSERT INTO message (queue, message_id, search_id, body, sent_at, visible_at, turn)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute(params![
        queue,
        message.id.map(|id| id.to_string()),
        partition,
        message.body,
        nanos(message.sent_at),
        visible_at,
        turn,
    ])?;
    Ok(())
}

#[async_trait]
impl ReceiveMessages for Store {
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
        let doing = format!("receiving from queue {queue}");
        let (queue, now) = (self.known(queue, &doing)?, self.now());
        let request = Request { queue, max: max.min(MAX_BATCH), now, until: later(now, visibility) };
        self.change_in_passing(Call::QueueReceive, doing, move |db| receive(db, &request)).await
    }

    async fn answer(
        &self,
        queue: &Queue,
        receipt: &str,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        let doing = format!("answering for a message of queue {queue}");
        let queue = self.known(queue, &doing)?;
        let Some(held) = ReceiptClaim::parse(queue, receipt, self.now()) else {
            return Err(StoreError::unusable(doing, format!("\"{receipt}\" is not a receipt")));
        };
        let may_be_visible =
            matches!(disposition, Disposition::Retry { .. } | Disposition::DeadLetter { .. });
        let disposition = disposition.clone();
        self.change_in_passing(Call::QueueAnswer, doing, move |db| answer(db, &held, &disposition)).await?;
        if may_be_visible {
            self.sends().notify();
        }
        Ok(())
    }
}

impl Store {
    /// Returns the specification of a queue with a consumer.
    fn known(&self, queue: &Queue, doing: &str) -> Result<&'static QueueSpec, StoreError> {
        QueueSpec::of(self.settings().queues, queue)
            .ok_or_else(|| StoreError::unusable(doing, "there is no such queue"))
    }
}

struct Request {
    queue: &'static QueueSpec,
    max: usize,
    now: Timestamp,
    until: Timestamp,
}

fn receive(db: &Connection, request: &Request) -> Result<Vec<ReceivedMessage>, Fault> {
    let queue = request.queue.queue.name();
    fair_queueing::put_overdue_back(db, queue, request.now)?;
    loop {
        let groups = fair_queueing::next(db, queue, request.now, request.max)?;
        let mut received = Vec::new();
        for partition in &groups {
            if received.len() < request.max {
                serve(db, request, Group { queue, partition: partition.as_deref() }, &mut received)?;
            }
        }
        // If all messages found were dead-lettered, more may follow.
        if groups.is_empty() || !received.is_empty() {
            return Ok(received);
        }
    }
}

/// Takes the visible messages of a group, up to the capacity of the batch. All messages of a partition in one batch
/// share a claim, a load and a write, so a group's turn is a batch, and not a single message.
fn serve(
    db: &Connection,
    request: &Request,
    group: Group<'_>,
    received: &mut Vec<ReceivedMessage>,
) -> Result<(), Fault> {
    let room = request.max - received.len();
    let mut waiting = fair_queueing::waiting(db, group, room + 1)?;
    let visible = waiting.iter().take(room).take_while(|message| message.is_visible(request.now)).count();
    let left = waiting.split_off(visible);
    for message in waiting {
        match exhausted(request, &message) {
            Some(dead) => {
                let last = message.reason.map(|reason| format!("; at last: {reason}")).unwrap_or_default();
                let reason = format!("received {} times without success{last}", message.receive_count);
                move_to(db, message.seq, group.partition, dead, &reason, request.now)?;
            }
            None => received.push(take(db, request, message)?),
        }
    }
    left.first().map_or(Ok(()), |first| fair_queueing::pass(db, first, request.now))
}

/// Returns the dead-letter queue for a message that was received too often.
fn exhausted(request: &Request, message: &WaitingMessage) -> Option<&'static Queue> {
    let limit = request.queue.receive_limit?;
    request.queue.dead_letters.as_ref().filter(|_| message.receive_count >= limit)
}

fn take(db: &Connection, request: &Request, message: WaitingMessage) -> Result<ReceivedMessage, Fault> {
    let receive_count = message.receive_count.saturating_add(1);
    db.prepare_cached(
        "UPDATE message SET receive_count = ?2, held = 1, turn = NULL, visible_at = ?3 WHERE seq = ?1",
    )?
    .execute(params![message.seq, receive_count, nanos(request.until)])?;
    Ok(ReceivedMessage {
        receipt: format!("{}:{receive_count}", message.seq),
        delivery: Delivery {
            record_id: message.seq.to_string(),
            body: message.body,
            receive_count,
            reason: message.reason,
        },
    })
}

/// The claim that a receipt makes.
struct ReceiptClaim {
    queue: &'static QueueSpec,
    seq: i64,
    receive_count: u32,
    now: Timestamp,
}

impl ReceiptClaim {
    fn parse(queue: &'static QueueSpec, receipt: &str, now: Timestamp) -> Option<Self> {
        let (seq, count) = receipt.split_once(':')?;
        Some(Self { queue, seq: seq.parse().ok()?, receive_count: count.parse().ok()?, now })
    }
}

fn answer(db: &Connection, held: &ReceiptClaim, disposition: &Disposition) -> Result<(), Fault> {
    let Some(partition) = current(db, held)? else { return Ok(()) };
    match disposition {
        Disposition::Acknowledge => delete(db, held.seq),
        Disposition::Retry { after, reason } => {
            let group = Group { queue: held.queue.queue.name(), partition: partition.as_deref() };
            fair_queueing::requeue(db, held.seq, group, nanos(later(held.now, *after)), Some(reason))
        }
        Disposition::DeadLetter { reason } => match &held.queue.dead_letters {
            Some(dead) => move_to(db, held.seq, partition.as_deref(), dead, reason, held.now),
            // A queue without a dead-letter queue keeps the message.
            None => Ok(()),
        },
    }
}

/// The partition of the message that a receipt is for, if the receipt is still good.
fn current(db: &Connection, held: &ReceiptClaim) -> Result<Option<Option<String>>, Fault> {
    Ok(db
        .prepare_cached(
            "SELECT search_id FROM message
             WHERE seq = :seq AND queue = :queue AND receive_count = :count AND held = 1 AND visible_at > :now",
        )?
        .query_row(
            named_params! {
                ":seq": held.seq, ":queue": held.queue.queue.name(), ":count": held.receive_count,
                ":now": nanos(held.now),
            },
            |row| row.get(0),
        )
        .optional()?)
}

/// Deletes a message that has no turn.
fn delete(db: &Connection, seq: i64) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM message WHERE seq = ?1")?.execute([seq])?;
    Ok(())
}

/// Moves a message without a turn to another queue. It gets a new number, so that no receipt from before fits it.
fn move_to(
    db: &Connection,
    seq: i64,
    partition: Option<&str>,
    to: &Queue,
    reason: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    let turn = fair_queueing::turn(db, Group { queue: to.name(), partition }, nanos(now), i64::MAX)?;
    db.prepare_cached(
        "INSERT INTO message (queue, message_id, search_id, body, sent_at, visible_at, moved_at, reason, turn)
         SELECT ?2, message_id, search_id, body, sent_at, ?3, ?3, ?4, ?5 FROM message WHERE seq = ?1",
    )?
    .execute(params![seq, to.name(), nanos(now), reason, turn])?;
    delete(db, seq)
}

#[cfg(test)]
mod tests;
