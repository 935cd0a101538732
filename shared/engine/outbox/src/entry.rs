//! A stored effect.

use jiff::Timestamp;
use messages::message::MAX_BODY_BYTES;
use messages::{EncodeError, Message, MessageId, Queue};
use serde::{Deserialize, Serialize};

use crate::records::{Key, OwnedRecord};
use crate::views::View;

/// The maximum length of the error text of an entry, in characters.
pub const MAX_ERROR_CHARS: usize = 2_000;

/// A stored effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The id of the message that the effect sends, or of the effect itself.
    pub id: MessageId,
    /// The kind of effect.
    pub kind: Kind,
    /// The encoded message, view or record.
    pub payload: String,
    /// The time before which the effect is not performed. For a timer, this time is in the future. After a failure, the
    /// time of the first failure: the retry budget counts from here.
    pub due_at: Timestamp,
    /// The number of failed attempts since the entry was staged or requeued.
    pub attempts: u32,
    /// The time of the next attempt after a failure.
    pub next_attempt_at: Timestamp,
    /// The end of the current claim. Another worker may take the entry over after it.
    pub claimed_until: Option<Timestamp>,
    /// `true` if the entry is exhausted: it failed for too long, or can never succeed. It is kept until an operator
    /// requeues or deletes it.
    pub poisoned: bool,
    /// The last error, at most [`MAX_ERROR_CHARS`] characters.
    pub error: Option<String>,
    /// The number of times that an operator requeued the entry.
    pub requeued: u32,
}

/// The kind of an effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "to")]
pub enum Kind {
    /// A message to this queue.
    Message(Queue),
    /// A view for readers, which is stored under its original name.
    #[serde(rename = "job")]
    View,
    /// A record of an instance.
    Record,
}

impl Entry {
    /// Stages a message. It is encoded immediately, so a message that cannot be encoded is never stored.
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded.
    pub fn message(message: &Message, queue: Queue, due_at: Timestamp) -> Result<Self, StageError> {
        let payload = message.encode().map_err(|source| StageError::new(&message.body.name, source))?;
        Ok(Self::new(message.id, Kind::Message(queue), payload, due_at))
    }

    /// Stages a view.
    pub fn view(id: MessageId, view: View, due_at: Timestamp) -> Self {
        Self::new(id, Kind::View, view.into_payload(), due_at)
    }

    /// Stages a record of an instance.
    ///
    /// # Errors
    /// Returns an error if the record cannot be encoded, or is larger than a message may be.
    pub fn record(id: MessageId, record: &OwnedRecord, due_at: Timestamp) -> Result<Self, StageError> {
        let failed = |error| StageError::new(&record.key.kind, error);
        let payload = serde_json::to_string(record).map_err(|error| failed(error.into()))?;
        if payload.len() > MAX_BODY_BYTES {
            return Err(failed(EncodeError::TooLarge(payload.len())));
        }
        Ok(Self::new(id, Kind::Record, payload, due_at))
    }

    /// Returns the key of the record that the effect writes or removes; `None` for other effects.
    pub fn record_key(&self) -> Option<Key> {
        match self.kind {
            Kind::Record => serde_json::from_str(&self.payload).ok().map(|OwnedRecord { key, .. }| key),
            Kind::Message(_) | Kind::View => None,
        }
    }

    /// Returns `true` if the effect sends a message.
    pub const fn is_message(&self) -> bool {
        matches!(self.kind, Kind::Message(_))
    }

    fn new(id: MessageId, kind: Kind, payload: String, due_at: Timestamp) -> Self {
        Self {
            id,
            kind,
            payload,
            due_at,
            attempts: 0,
            next_attempt_at: due_at,
            claimed_until: None,
            poisoned: false,
            error: None,
            requeued: 0,
        }
    }

    /// Returns the time from which a worker without the entry's claim may perform the effect; `None` for an exhausted
    /// entry.
    pub fn ready_at(&self) -> Option<Timestamp> {
        let ready = self.due_at.max(self.next_attempt_at);
        (!self.poisoned).then(|| self.claimed_until.map_or(ready, |claimed| claimed.max(ready)))
    }

    /// Returns the entry as requeued by an operator: with a fresh retry budget, and with a claim that ends immediately.
    /// An operator who saw the entry without this claim can no longer requeue or delete it.
    pub fn requeued(&self, now: Timestamp) -> Self {
        Self {
            due_at: now,
            attempts: 0,
            next_attempt_at: now,
            claimed_until: Some(now),
            poisoned: false,
            requeued: self.requeued.saturating_add(1),
            ..self.clone()
        }
    }

    /// Returns `true` if the entry may be claimed now.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.ready_at().is_some_and(|ready| ready <= now)
    }

    /// Returns `true` if the entry is due, claimed or not. A worker calls this function if it holds the partition and
    /// takes over the effects of a crashed worker.
    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.poisoned && self.due_at.max(self.next_attempt_at) <= now
    }
}

/// The error of an effect that cannot be staged.
#[derive(Debug, thiserror::Error)]
#[error("staging {what} failed")]
pub struct StageError {
    what: String,
    #[source]
    source: Box<EncodeError>,
}

impl StageError {
    /// Creates the error for `what`.
    pub fn new(what: &str, source: EncodeError) -> Self {
        Self { what: what.to_owned(), source: Box::new(source) }
    }

    /// Returns `true` if the message exceeds the maximum size.
    pub fn is_too_large(&self) -> bool {
        matches!(*self.source, EncodeError::TooLarge(_))
    }
}
