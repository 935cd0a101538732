//! One stored effect.

use jiff::Timestamp;
use messages::{EncodeError, Message, MessageId, Queue};
use serde::{Deserialize, Serialize};

use crate::views::View;

/// The longest error text kept with an entry, in characters.
pub const MAX_ERROR_CHARS: usize = 2_000;

/// One stored effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The id of the message it sends, or of the effect.
    pub id: MessageId,
    /// What performing it means.
    pub kind: Kind,
    /// The encoded message, or the view.
    pub payload: String,
    /// Not to be performed before; in the future for a timeout. Once it has failed, when it first did: an entry that
    /// fails for too long is given up.
    pub due_at: Timestamp,
    /// Failed attempts so far, since an operator put it back to work.
    pub attempts: u32,
    /// After a failure: not to be tried again before.
    pub next_attempt_at: Timestamp,
    /// Somebody is performing it; after this moment the claim counts as stuck and may be taken over.
    pub claimed_until: Option<Timestamp>,
    /// It failed for too long, or can never succeed. Kept until an operator requeues or deletes it.
    pub poisoned: bool,
    /// The last failure, at most [`MAX_ERROR_CHARS`] characters.
    pub error: Option<String>,
    /// How often an operator put it back to work.
    pub requeued: u32,
}

/// What performing an entry means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "to")]
pub enum Kind {
    /// Send a message there.
    Message(Queue),
    /// Show readers the state. Stored under the name that it had first.
    #[serde(rename = "job")]
    View,
}

impl Entry {
    /// Stages a message, encoded here and now: what cannot be encoded is never stored.
    ///
    /// # Errors
    /// When the message cannot be encoded.
    pub fn message(message: &Message, queue: Queue, due_at: Timestamp) -> Result<Self, StageError> {
        let payload = message.encode().map_err(|source| StageError::new(&message.body.name, source))?;
        Ok(Self::new(message.id, Kind::Message(queue), payload, due_at))
    }

    /// Stages a view.
    pub fn view(id: MessageId, view: View, due_at: Timestamp) -> Self {
        Self::new(id, Kind::View, view.into_payload(), due_at)
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

    /// When it may be performed next by somebody who does not hold its claim; never when poisoned.
    pub fn ready_at(&self) -> Option<Timestamp> {
        let ready = self.due_at.max(self.next_attempt_at);
        (!self.poisoned).then(|| self.claimed_until.map_or(ready, |claimed| claimed.max(ready)))
    }

    /// The entry requeued by an operator, with all the time that an entry has. It has a claim that ends at once: an operator
    /// who saw the entry before, without a claim, does not requeue or delete it any more.
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

    /// Whether it may be claimed now.
    pub fn is_ready(&self, now: Timestamp) -> bool {
        self.ready_at().is_some_and(|ready| ready <= now)
    }

    /// Whether it is time to perform it, claimed or not: for whoever holds the partition and repeats what a
    /// crashed worker left.
    pub fn is_due(&self, now: Timestamp) -> bool {
        !self.poisoned && self.due_at.max(self.next_attempt_at) <= now
    }
}

/// Nothing was staged.
#[derive(Debug, thiserror::Error)]
#[error("staging {what} failed")]
pub struct StageError {
    what: String,
    #[source]
    source: Box<EncodeError>,
}

impl StageError {
    /// `what` could not be written.
    pub fn new(what: &str, source: EncodeError) -> Self {
        Self { what: what.to_owned(), source: Box::new(source) }
    }
}
