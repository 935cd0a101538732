//! The transactional session: messages and data, both or neither, for code outside a message handler.
//!
//! A handler is saved by redelivery: when it crashes, its message comes again. Code that serves an HTTP request
//! has nothing of the kind, so [`Session::commit`] makes it: first it sends a control message about the session,
//! then it stores the session's messages and data in one transaction. Whatever happens after the first step, the
//! control message arrives and finds out what became of the second.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use contracts::message::SettleSession;
use contracts::{Body, Host, Message, MessageId, SearchId, SessionId, StoreError};
use jiff::Timestamp;

use crate::entry::{Entry, StageError};
use crate::queue::{SendError, SendMessages, send_one};

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

/// What a committed session stores beside its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session.
    pub id: SessionId,
    /// Its messages.
    pub entries: Vec<Entry>,
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
}

/// Stores a session's record and its data `W` in one transaction.
#[async_trait]
pub trait CommitSession<W>: Send + Sync {
    /// Both or neither. Repeating a stored commit changes nothing and answers [`Committed::Stored`].
    ///
    /// # Errors
    /// When the store does not answer.
    async fn commit(&self, record: &SessionRecord, writes: &[W]) -> Result<Committed, StoreError>;
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

/// An open session. Dropping it without a commit leaves nothing.
pub struct Session<W> {
    id: SessionId,
    correlation_id: SearchId,
    options: Options,
    opened_at: Timestamp,
    entries: Vec<Entry>,
    writes: Vec<W>,
}

impl<W: Sync> Session<W> {
    /// Opens a session on behalf of a search. With an id that was committed before, the commit changes nothing: so a
    /// request that a client makes again takes effect once.
    pub fn open(host: &dyn Host, id: SessionId, correlation_id: SearchId, options: Options) -> Self {
        Self { id, correlation_id, options, opened_at: host.now(), entries: Vec::new(), writes: Vec::new() }
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Sends a command, or publishes an event, with the commit: what the message says decides where it goes
    /// ([`Body::destination`]).
    ///
    /// # Errors
    /// When it cannot be encoded; what was staged before stays as it is.
    pub fn send(&mut self, message: &Message) -> Result<(), StageError> {
        self.entries.push(Entry::message(message, self.opened_at)?);
        Ok(())
    }

    /// Writes data with the commit.
    pub fn write(&mut self, write: W) {
        self.writes.push(write);
    }

    /// Sends the control message, then stores messages and data together. Without messages there is neither
    /// control message nor record, only the data.
    ///
    /// # Errors
    /// When the control message cannot be sent, the store does not answer, or the session was given up. In the
    /// first and the last case nothing is stored; in the second nobody knows yet, and the control message finds
    /// out.
    pub async fn commit(
        self,
        host: &dyn Host,
        queue: &dyn SendMessages,
        store: &dyn CommitSession<W>,
    ) -> Result<(), CommitError> {
        if !self.entries.is_empty() {
            let control =
                control_message(self.id, self.correlation_id, first_look(self.id, &self.options), host.now());
            send_one(queue, &control, Duration::ZERO).await?;
        }
        let record = SessionRecord { id: self.id, entries: self.entries, committed_at: host.now() };
        match store.commit(&record, &self.writes).await.map_err(CommitError::Store)? {
            Committed::Stored => Ok(()),
            Committed::TooLate => Err(CommitError::TooLate),
        }
    }
}

/// Why a session was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing is stored.
    #[error("announcing the session failed")]
    Control(#[from] SendError),
    /// Nobody knows yet whether it is stored.
    #[error("storing the session failed")]
    Store(#[source] StoreError),
    /// Nothing is stored: the commit took longer than it may.
    #[error("the session took too long to commit and was given up")]
    TooLate,
}

/// The control message of a session; its id is the session's.
pub fn control_message(
    id: SessionId,
    correlation_id: SearchId,
    look: SettleSession,
    now: Timestamp,
) -> Message {
    Message {
        id: MessageId::from_uuid(id.as_uuid()),
        source: "session".into(),
        time: now,
        correlation_id,
        causation_id: None,
        token: None,
        traceparent: None,
        body: Body::SettleSession(look),
    }
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
