//! The queues and dead letters, for operators.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{Depth, InspectQueues, MessageId, PartitionKey, Presence, Queue, QueueSpec, StoreError};
use rusqlite::{Connection, Row, params};

use crate::Store;
use crate::fault::Fault;
use crate::value::{nanos, parse, timestamp, uint};

/// A dead-lettered message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The id of the record in its queue.
    pub record_id: String,
    /// The message's id; `None` if it came from outside the system.
    pub message_id: Option<MessageId>,
    /// The partition of the message; `None` if it came from outside the system.
    pub partition: Option<PartitionKey>,
    /// The body as it was sent.
    pub body: String,
    /// The time at which the message was sent.
    pub sent_at: Timestamp,
    /// The time at which the message was dead-lettered.
    pub moved_at: Option<Timestamp>,
    /// The reason.
    pub reason: Option<String>,
}

#[async_trait]
impl InspectQueues for Store {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        match self.count_messages().await {
            Ok(depths) => depths.into_iter().map(|(queue, depth)| (queue, Ok(depth))).collect(),
            Err(error) => {
                // All queues are in one file, so one error applies to all.
                let (why, retry) = (error.chain(), error.is_retryable());
                let failed = |spec: &QueueSpec| {
                    let doing = format!("counting the messages of queue {}", spec.queue);
                    let again = if retry { StoreError::unavailable } else { StoreError::unusable };
                    (spec.queue.clone(), Err(again(doing, why.clone())))
                };
                self.settings().queues.iter().map(failed).collect()
            }
        }
    }

    async fn locate(&self, queue: &Queue, message: MessageId) -> Result<Option<Presence>, StoreError> {
        let (doing, queue) = (format!("looking for message {message} in queue {queue}"), queue.clone());
        let work = move |db: &Connection| presence(db, &queue, message);
        self.threads().read(doing, work).await.map(Some)
    }
}

/// A queue may hold duplicates of a message: a duplicate that no worker has received takes precedence.
fn presence(db: &Connection, queue: &Queue, message: MessageId) -> Result<Presence, Fault> {
    let sql = "SELECT min(receive_count) FROM message WHERE queue = ?1 AND message_id = ?2";
    let found = db
        .prepare_cached(sql)?
        .query_row(params![queue.name(), message.to_string()], |row| row.get::<_, Option<i64>>(0))?;
    Ok(match found {
        None => Presence::Absent,
        Some(0) => Presence::Waiting,
        Some(_) => Presence::Received,
    })
}

impl Store {
    /// Returns the depth of each queue, including empty queues.
    pub async fn count_messages(&self) -> Result<BTreeMap<Queue, Depth>, StoreError> {
        let (queues, now) = (self.settings().queues, self.now());
        self.threads().read("counting messages".to_owned(), move |db| depths(db, queues, now)).await
    }

    /// Returns the messages of a queue, oldest first. Meant for dead-letter queues, since it reads all messages.
    pub async fn dead_letters(&self, queue: &Queue) -> Result<Vec<DeadLetter>, StoreError> {
        let (doing, queue) = (format!("listing queue {queue}"), queue.clone());
        self.threads().read(doing, move |db| dead_letters(db, &queue)).await
    }
}

fn depths(db: &Connection, queues: &[QueueSpec], now: Timestamp) -> Result<BTreeMap<Queue, Depth>, Fault> {
    let mut depths: BTreeMap<Queue, Depth> =
        queues.iter().map(|spec| (spec.queue.clone(), Depth::default())).collect();
    let mut statement = db.prepare_cached(
        "SELECT queue, sum(visible_at <= ?1), sum(visible_at > ?1 AND held), sum(visible_at > ?1 AND NOT held),
            min(sent_at)
         FROM message GROUP BY queue",
    )?;
    let mut rows = statement.query([nanos(now)])?;
    while let Some(row) = rows.next()? {
        let queue = Queue::from(row.get::<_, String>(0)?);
        let count = |column| row.get::<_, i64>(column).map(uint);
        if let Some(depth) = depths.get_mut(&queue) {
            let oldest = Duration::try_from(now.duration_since(timestamp(row.get(4)?))).unwrap_or_default();
            *depth =
                Depth { visible: count(1)?, in_flight: count(2)?, delayed: count(3)?, oldest: Some(oldest) };
        }
    }
    Ok(depths)
}

fn dead_letters(db: &Connection, queue: &Queue) -> Result<Vec<DeadLetter>, Fault> {
    let mut statement = db.prepare_cached("SELECT * FROM message WHERE queue = ?1 ORDER BY seq")?;
    let mut rows = statement.query([queue.name()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(dead_letter(row)?);
    }
    Ok(found)
}

fn dead_letter(row: &Row<'_>) -> Result<DeadLetter, Fault> {
    let text = |column| row.get::<_, Option<String>>(column);
    Ok(DeadLetter {
        record_id: row.get::<_, i64>("seq")?.to_string(),
        message_id: text("message_id")?.map(|id| parse("message id", &id)).transpose()?,
        partition: text("search_id")?.map(|id| parse("partition key", &id)).transpose()?,
        body: row.get("body")?,
        sent_at: timestamp(row.get("sent_at")?),
        moved_at: row.get::<_, Option<i64>>("moved_at")?.map(timestamp),
        reason: text("reason")?,
    })
}
