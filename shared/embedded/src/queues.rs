//! All queues in one table.
//!
//! A message is visible from `visible_at` on, the longest visible first. Receiving it moves that moment into the
//! future and counts; acknowledging deletes it. A receipt is the message's number and its count, so the receipt
//! of an earlier delivery fits nothing any more.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{
    Delivery, Disposition, MessageId, Outgoing, PartitionKey, Queue, QueueSpec, ReceiveMessages, Received,
    SendError, SendMessages, StoreError,
};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{later, limit, nanos, some_of};

/// A message on its way into a queue.
pub(crate) struct Sending {
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
        let sending: Vec<Sending> = known.map(|message| sending(message, now)).collect();
        let work = move |db: &Connection| sending.iter().try_for_each(|message| insert(db, message));
        let sent = self.change(Call::QueueSend, doing.clone(), work).await;
        if sent.is_ok() {
            self.sends().tell();
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

fn sending(message: &Outgoing, now: Timestamp) -> Sending {
    Sending {
        queue: message.queue.clone(),
        id: Some(message.id),
        partition: Some(message.partition),
        body: message.body.clone(),
        sent_at: now,
        visible_at: later(now, message.delay),
    }
}

/// Puts a message into its queue.
pub(crate) fn insert(db: &Connection, message: &Sending) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO message (queue, message_id, search_id, body, sent_at, visible_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
    )?
    .execute(params![
        message.queue.name(),
        message.id.map(|id| id.to_string()),
        message.partition.map(|id| id.to_string()),
        message.body,
        nanos(message.sent_at),
        nanos(message.visible_at),
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
    ) -> Result<Vec<Received>, StoreError> {
        let doing = format!("receiving from queue {queue}");
        let (queue, now) = (self.known(queue, &doing)?, self.now());
        let request = Request { queue, max: max.min(MAX_BATCH), now, until: later(now, visibility) };
        self.change(Call::QueueReceive, doing, move |db| receive(db, &request)).await
    }

    async fn answer(
        &self,
        queue: &Queue,
        receipt: &str,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        let doing = format!("answering for a message of queue {queue}");
        let queue = self.known(queue, &doing)?;
        let Some(held) = Held::parse(queue, receipt, self.now()) else {
            return Err(StoreError::unusable(doing, format!("\"{receipt}\" is not a receipt")));
        };
        let may_be_visible =
            matches!(disposition, Disposition::Retry { .. } | Disposition::DeadLetter { .. });
        let disposition = disposition.clone();
        self.change(Call::QueueAnswer, doing, move |db| answer(db, &held, &disposition)).await?;
        if may_be_visible {
            self.sends().tell();
        }
        Ok(())
    }
}

impl Store {
    /// What is agreed about a queue that is to be worked on.
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

struct Visible {
    seq: i64,
    body: String,
    received: u32,
}

fn receive(db: &Connection, request: &Request) -> Result<Vec<Received>, Fault> {
    loop {
        let mut received = Vec::new();
        let visible = visible(db, request)?;
        let nothing_left = visible.is_empty();
        for message in visible {
            match exhausted(request, &message) {
                Some(dead) => {
                    let reason = format!("received {} times without success", message.received);
                    move_to(db, message.seq, dead, &reason, request.now)?;
                }
                None => received.push(take(db, request, message)?),
            }
        }
        // When all that was found was given up, there may be more behind it.
        if nothing_left || !received.is_empty() {
            return Ok(received);
        }
    }
}

/// Served by an index in the order asked for; a test reads its plan.
pub(crate) const VISIBLE: &str = "SELECT seq, body, receive_count FROM message
    WHERE queue = ?1 AND visible_at <= ?2 ORDER BY visible_at, seq LIMIT ?3";

fn visible(db: &Connection, request: &Request) -> Result<Vec<Visible>, Fault> {
    let mut statement = db.prepare_cached(VISIBLE)?;
    let found = statement
        .query_map(params![request.queue.queue.name(), nanos(request.now), limit(request.max)], |row| {
            Ok(Visible { seq: row.get(0)?, body: row.get(1)?, received: row.get(2)? })
        })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Where a message goes that was received too often.
fn exhausted(request: &Request, message: &Visible) -> Option<&'static Queue> {
    let limit = request.queue.receive_limit?;
    request.queue.dead_letters.as_ref().filter(|_| message.received >= limit)
}

fn take(db: &Connection, request: &Request, message: Visible) -> Result<Received, Fault> {
    let receive_count = message.received.saturating_add(1);
    db.prepare_cached("UPDATE message SET receive_count = ?2, held = 1, visible_at = ?3 WHERE seq = ?1")?
        .execute(params![message.seq, receive_count, nanos(request.until)])?;
    Ok(Received {
        receipt: format!("{}:{receive_count}", message.seq),
        delivery: Delivery { record_id: message.seq.to_string(), body: message.body, receive_count },
    })
}

/// The claim that a receipt makes.
struct Held {
    queue: &'static QueueSpec,
    seq: i64,
    receive_count: u32,
    now: Timestamp,
}

impl Held {
    fn parse(queue: &'static QueueSpec, receipt: &str, now: Timestamp) -> Option<Self> {
        let (seq, count) = receipt.split_once(':')?;
        Some(Self { queue, seq: seq.parse().ok()?, receive_count: count.parse().ok()?, now })
    }
}

fn answer(db: &Connection, held: &Held, disposition: &Disposition) -> Result<(), Fault> {
    if !is_current(db, held)? {
        return Ok(());
    }
    match disposition {
        Disposition::Acknowledge => delete(db, held.seq),
        Disposition::Retry { after, reason } => {
            db.prepare_cached("UPDATE message SET held = 0, visible_at = ?2, reason = ?3 WHERE seq = ?1")?
                .execute(params![held.seq, nanos(later(held.now, *after)), reason])?;
            Ok(())
        }
        Disposition::DeadLetter { reason } => match &held.queue.dead_letters {
            Some(dead) => move_to(db, held.seq, dead, reason, held.now),
            // A queue that keeps everything has nowhere to move it; it keeps it.
            None => Ok(()),
        },
    }
}

fn is_current(db: &Connection, held: &Held) -> Result<bool, Fault> {
    let found = db
        .prepare_cached(
            "SELECT 1 FROM message
             WHERE seq = :seq AND queue = :queue AND receive_count = :count AND held = 1 AND visible_at > :now",
        )?
        .query_row(
            named_params! {
                ":seq": held.seq, ":queue": held.queue.queue.name(), ":count": held.receive_count,
                ":now": nanos(held.now),
            },
            |_| Ok(()),
        )
        .optional()?;
    Ok(found.is_some())
}

pub(crate) fn delete(db: &Connection, seq: i64) -> Result<(), Fault> {
    db.prepare_cached("DELETE FROM message WHERE seq = ?1")?.execute([seq])?;
    Ok(())
}

/// Moves a message as it is. It gets a new number, so that no receipt from before fits it.
pub(crate) fn move_to(
    db: &Connection,
    seq: i64,
    to: &Queue,
    reason: &str,
    now: Timestamp,
) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO message (queue, message_id, search_id, body, sent_at, visible_at, moved_at, reason)
         SELECT ?2, message_id, search_id, body, sent_at, ?3, ?3, ?4 FROM message WHERE seq = ?1",
    )?
    .execute(params![seq, to.name(), nanos(now), reason])?;
    delete(db, seq)
}
