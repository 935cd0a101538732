//! The transactional session: messages and data, both or neither, for code outside a message handler.
//!
//! A handler is saved by redelivery: when it crashes, its message comes again. Code that serves an HTTP request
//! has nothing of the kind, so [`Session::commit`] makes it: first it sends a control message about the session,
//! then it stores the session's messages and data in one transaction. Whatever happens after the first step, the
//! control message arrives and finds out what became of the second.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{
    Body, Json, Message, MessageId, PartitionKey, Queue, SendError, SessionId, StoreError, send_one,
};
use serde::{Deserialize, Serialize};

use crate::dispatch::Dispatcher;
use crate::entry::{Entry, StageError};
use crate::records::{Key, Read, ReadRecords, Record, Write};
use crate::sweep::{Owner, SweepOutbox};
use crate::views::View;

/// The queue of control messages.
pub const CONTROL: Queue = Queue::named("control");

/// The name of control messages.
pub(crate) const SETTLE_SESSION: &str = "SettleSession";
/// The version of their data.
pub(crate) const SETTLE_SESSION_VERSION: u16 = 1;

/// What a control message says: bring this session to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleSession {
    /// The session.
    pub session_id: SessionId,
    /// How much longer to wait for the session's record, in milliseconds.
    pub remaining_ms: u64,
    /// The delay before the previous look, in milliseconds.
    pub increment_ms: u64,
    /// How often the record was looked for before; 0 at first.
    pub attempt: u32,
    /// Whatever the opener of the session attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// A session's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// How long a commit may take before it counts as failed.
    pub max_commit: Duration,
    /// The first delay between two looks for the record is twice this.
    pub increment: Duration,
    /// Attached to the control message.
    pub metadata: BTreeMap<String, String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_commit: Duration::from_secs(15),
            increment: Duration::from_secs(2),
            metadata: BTreeMap::new(),
        }
    }
}

/// What a session stores when it commits, all of it or nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session.
    pub id: SessionId,
    /// Its messages.
    pub entries: Vec<Entry>,
    /// Views of sagas that are about to begin. One that is there already stays as it is.
    pub views: Vec<View>,
    /// Records that the session has read and that must still be as they were.
    pub reads: Vec<Read>,
    /// Records that it writes.
    pub writes: Vec<Write>,
    /// When it was committed.
    pub committed_at: Timestamp,
}

/// What became of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Committed {
    /// Data and messages are stored.
    Stored,
    /// The session was given up before; nothing is stored.
    TooLate,
    /// A record that the session has read has changed since; nothing is stored. Another try needs a session of another
    /// id: this one's control message is on its way, and gives the id up when it finds no record.
    Changed,
}

/// Stores sessions.
#[async_trait]
pub trait CommitSession: Send + Sync {
    /// All of it in one transaction, or nothing. A session without messages leaves no record of itself. Repeating a
    /// stored commit changes nothing and answers [`Committed::Stored`].
    ///
    /// # Errors
    /// When the store does not answer.
    async fn commit(&self, session: &SessionRecord) -> Result<Committed, StoreError>;
}

/// What is known of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// No record.
    Nothing,
    /// Committed.
    Committed,
    /// Given up.
    Tombstone,
}

/// Finds out what became of sessions.
#[async_trait]
pub trait SettleSessions: Send + Sync {
    /// Looks for the session's record.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn find(&self, session: SessionId) -> Result<Found, StoreError>;

    /// Gives the session up, unless it was committed: from then on a commit is refused. Answers what is known
    /// after that.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn bury(&self, session: SessionId, now: Timestamp) -> Result<Found, StoreError>;
}

/// What sessions work on.
#[derive(Clone)]
pub struct Ports {
    /// Stores sessions.
    pub sessions: Arc<dyn CommitSession>,
    /// Finds their entries again.
    pub outbox: Arc<dyn SweepOutbox>,
    /// Reads an application's own records.
    pub records: Arc<dyn ReadRecords>,
    /// Sends control messages, and what was committed.
    pub dispatcher: Dispatcher,
}

/// An open session. Dropping it without a commit leaves nothing.
pub struct Session<'a> {
    ports: &'a Ports,
    control: Message,
    opened_at: Timestamp,
    record: SessionRecord,
    staged: Vec<Message>,
}

impl<'a> Session<'a> {
    /// Opens a session of `system` on behalf of a partition. The id must be new: a commit that is repeated changes nothing
    /// only while the store has the session's record, and of an abandoned session every commit is refused.
    pub fn open(
        ports: &'a Ports,
        system: &str,
        id: SessionId,
        partition: PartitionKey,
        options: &Options,
    ) -> Self {
        let now = ports.dispatcher.reporter.host.now();
        let control = control_message(system, partition, &first_look(id, options), now);
        let record = SessionRecord {
            id,
            entries: Vec::new(),
            views: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            committed_at: now,
        };
        Self { ports, control, opened_at: now, record, staged: Vec::new() }
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.record.id
    }

    /// The id of the next message that is staged.
    pub fn next_id(&self) -> MessageId {
        message_id(self.record.id, self.record.entries.len())
    }

    /// Sends a message with the commit.
    ///
    /// # Errors
    /// When it cannot be encoded; what was staged before stays as it is.
    pub fn stage(&mut self, message: Message, queue: Queue) -> Result<(), StageError> {
        self.record.entries.push(Entry::message(&message, queue, self.opened_at)?);
        self.staged.push(message);
        Ok(())
    }

    /// Shows readers a saga that is about to begin, with the commit.
    pub fn show(&mut self, view: View) {
        self.record.views.push(view);
    }

    /// Reads a record. The commit is refused if somebody else changes it in between.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn read(&mut self, key: Key) -> Result<Option<Record>, StoreError> {
        let found = self.ports.records.record(&key).await?;
        let revision = found.as_ref().map_or(0, |record| record.revision);
        self.record.reads.push(Read { key, revision });
        Ok(found)
    }

    /// Writes a record with the commit.
    pub fn write(&mut self, key: Key, body: serde_json::Value) {
        self.record.writes.push(Write { key, body });
    }

    /// Sends the control message, then stores everything together, then sends the messages. Without messages there is
    /// neither control message nor record, only the data. Returns the messages.
    ///
    /// # Errors
    /// When the control message cannot be sent, the store does not answer, or the session was refused. In the first and
    /// the last case nothing is stored; in the second the outcome is unknown, and the control message settles it.
    pub async fn commit(mut self) -> Result<Vec<Message>, CommitError> {
        let dispatcher = &self.ports.dispatcher;
        if !self.record.entries.is_empty() {
            send_one(dispatcher.send.as_ref(), &self.control, CONTROL, Duration::ZERO).await?;
        }
        self.record.committed_at = dispatcher.reporter.host.now();
        match self.ports.sessions.commit(&self.record).await.map_err(CommitError::Store)? {
            Committed::Stored => {}
            Committed::TooLate => return Err(CommitError::TooLate),
            Committed::Changed => return Err(CommitError::Changed),
        }
        if !self.record.entries.is_empty() {
            self.dispatch().await;
        }
        Ok(self.staged)
    }

    /// The control message would do it too, only later; whatever goes wrong here is its business.
    async fn dispatch(&self) {
        let (dispatcher, owner) = (&self.ports.dispatcher, Owner::Session(self.record.id));
        if let Err(error) = dispatcher.dispatch_records(self.ports.outbox.as_ref(), &[owner]).await {
            let (function, correlation_id) = (dispatcher.reporter.function, self.control.partition);
            let (message_id, error) = (self.control.id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "the session is left to its control message");
        }
    }
}

/// The id of the `index`-th message of a session: derived, so that a commit that a store's client repeats sends the same.
pub fn message_id(session: SessionId, index: usize) -> MessageId {
    MessageId::from_uuid(session.as_uuid()).derive(index)
}

/// Why a session was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing is stored.
    #[error("granting the session's tokens failed")]
    Tokens(#[source] StoreError),
    /// Nothing is stored.
    #[error("announcing the session failed")]
    Control(#[from] SendError),
    /// It may be stored or not; the control message settles it.
    #[error("storing the session failed")]
    Store(#[source] StoreError),
    /// Nothing is stored: the commit took longer than it may.
    #[error("the session took too long to commit and was given up")]
    TooLate,
    /// Nothing is stored: what the session has read has changed.
    #[error("a record that the session has read was changed by somebody else")]
    Changed,
}

impl CommitError {
    /// Whether the session was refused: nothing is stored, and the same request may succeed in another session.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::TooLate | Self::Changed)
    }
}

/// The control message of a session; its id is the session's.
pub fn control_message(
    system: &str,
    partition: PartitionKey,
    look: &SettleSession,
    now: Timestamp,
) -> Message {
    let body = Body {
        system: system.to_owned(),
        name: SETTLE_SESSION.to_owned(),
        version: SETTLE_SESSION_VERSION,
        // Ids, numbers and texts are always JSON.
        data: Json::of(look).unwrap_or_default(),
    };
    let id = MessageId::from_uuid(look.session_id.as_uuid());
    Message { traceparent: None, ..Message::new(id, "session", partition, now, body) }
}

fn first_look(session_id: SessionId, options: &Options) -> SettleSession {
    SettleSession {
        session_id,
        remaining_ms: millis(options.max_commit),
        increment_ms: millis(options.increment),
        attempt: 0,
        metadata: options.metadata.clone(),
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// When to look again for a record that is not there yet: after which delay and with which control message;
/// none when the time is up.
pub fn next_look(look: &SettleSession) -> Option<(Duration, SettleSession)> {
    let increment_ms = look.increment_ms.saturating_mul(2).min(look.remaining_ms);
    if increment_ms == 0 {
        return None;
    }
    let next = SettleSession {
        remaining_ms: look.remaining_ms - increment_ms,
        increment_ms,
        attempt: look.attempt.saturating_add(1),
        ..look.clone()
    };
    Some((Duration::from_millis(increment_ms), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_look_again_after_4_8_and_3_seconds_and_then_give_up() {
        let id = SessionId::from_uuid(uuid::Uuid::nil());
        let mut look = first_look(id, &Options::default());
        let mut delays = Vec::new();
        while let Some((delay, next)) = next_look(&look) {
            delays.push(delay.as_secs());
            look = next;
        }
        assert_eq!(delays, [4, 8, 3]);
        assert_eq!(look.attempt, 3);
    }
}
