//! The transactional session: messages and data are stored together or not at all, for code outside a message handler.
//!
//! A handler is protected by redelivery: after a crash its message is delivered again. Code that serves an HTTP request
//! has no such message, so [`Session::commit`] creates one. It first sends a control message about the session, then
//! stores the session's messages and data in one transaction. If anything fails after the first step, the control
//! message is still delivered, and its consumer determines the outcome of the second.

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
use crate::records::{Key, ReadRecords, Record, RecordRead, StoredRecord, Write, unsupported_record};
use crate::sweep::{Owner, SweepOutbox};
use crate::views::{MAX_FURTHER_LISTS, View};

/// The queue of control messages.
pub const CONTROL: Queue = Queue::named("control");

/// The time within which a commit begins to send its messages. Its caller waits for it, and the control message sends
/// the rest.
const DISPATCH: Duration = Duration::from_secs(5);

/// The name of control messages.
pub(crate) const SETTLE_SESSION: &str = "SettleSession";
/// The version of the record's data.
pub(crate) const SETTLE_SESSION_VERSION: u16 = 1;

/// The content of a control message: settle this session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleSession {
    /// The session.
    pub session_id: SessionId,
    /// The remaining time to wait for the session's record, in milliseconds.
    pub remaining_ms: u64,
    /// The delay before the previous look-up, in milliseconds.
    pub increment_ms: u64,
    /// The number of look-ups so far.
    pub attempt: u32,
    /// Metadata of the session's opener.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// The settings of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The maximum duration of a commit. After it, the session may be abandoned.
    pub max_commit: Duration,
    /// Half of the delay before the first look-up of the record.
    pub increment: Duration,
    /// Metadata for the control message.
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

/// The content of a commit, stored atomically.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// The session.
    pub id: SessionId,
    /// The messages of the session.
    pub entries: Vec<Entry>,
    /// Views of sagas that are about to begin. An existing view is not changed.
    pub views: Vec<View>,
    /// Records that the session has read and that must be unchanged.
    pub reads: Vec<RecordRead>,
    /// Records that the session writes.
    pub writes: Vec<Write>,
    /// The time at which the session was committed.
    pub committed_at: Timestamp,
}

impl SessionRecord {
    /// Returns `true` if the session stores anything. Without a record of such a session, a delayed copy of its commit
    /// would overwrite what was written after it.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.content() != [0; 3]
    }

    /// Returns the numbers of entries, views and writes.
    fn content(&self) -> [usize; 3] {
        [self.entries.len(), self.views.len(), self.writes.len()]
    }
}

/// The outcome of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Data and messages are stored.
    Stored,
    /// The session was abandoned before; nothing is stored.
    TooLate,
    /// A record that the session has read has changed; nothing is stored. A retry needs a session with another id,
    /// because this session's control message is on its way and will abandon the id when it finds no record.
    Changed,
    /// The application's own work in the transaction refused the commit; nothing is stored.
    Refused,
}

/// The decision of the application's own work in the transaction of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkVerdict {
    /// The session is committed, with the data that the work wrote.
    Commit,
    /// The session is refused, and nothing is stored.
    Refuse,
}

/// Stores sessions.
#[async_trait]
pub trait CommitSession: Send + Sync {
    /// Stores a session in one transaction, with a record of itself if it [changes anything](SessionRecord::is_change).
    /// Repeating a stored commit changes nothing and returns [`CommitOutcome::Stored`], even if the database client
    /// repeats it after its caller has stopped.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The outcome is then unknown.
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError>;
}

/// The status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionStatus {
    /// The session has no record.
    Nothing,
    /// The session is committed.
    Committed,
    /// The session is abandoned.
    Tombstone,
}

/// Reads and settles sessions.
#[async_trait]
pub trait SettleSessions: Send + Sync {
    /// Returns the status of a session.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError>;

    /// Abandons a session unless it was committed: later commits are refused. Returns the status after the call.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn abandon(&self, session: SessionId, now: Timestamp) -> Result<SessionStatus, StoreError>;
}

/// The ports of sessions.
#[derive(Clone)]
pub struct Ports {
    /// Stores sessions.
    pub sessions: Arc<dyn CommitSession>,
    /// Reads and settles the entries of sessions.
    pub outbox: Arc<dyn SweepOutbox>,
    /// Reads an application's own records.
    pub records: Arc<dyn ReadRecords>,
    /// Sends control messages and committed messages.
    pub dispatcher: Dispatcher,
}

/// An open session. Dropping it without a commit leaves nothing.
pub struct Session<'a> {
    ports: &'a Ports,
    control: Message,
    opened_at: Timestamp,
    record: SessionRecord,
    staged: Vec<Message>,
    /// The numbers of entries, views and writes at the first commit.
    committed: Option<[usize; 3]>,
}

impl<'a> Session<'a> {
    /// Opens a session of `system` on behalf of a partition. The id must be new: repeating a commit is harmless only
    /// while the store has the session's record, and every commit of an abandoned session is refused.
    pub fn open(
        ports: &'a Ports,
        system: &str,
        id: SessionId,
        partition: PartitionKey,
        options: &Options,
    ) -> Self {
        let now = ports.dispatcher.reporter.host.now();
        let control = control_message(system, partition, &first_check(id, options), now);
        let record = SessionRecord {
            id,
            entries: Vec::new(),
            views: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            committed_at: now,
        };
        Self { ports, control, opened_at: now, record, staged: Vec::new(), committed: None }
    }

    /// Returns the id of the session.
    pub fn id(&self) -> SessionId {
        self.record.id
    }

    /// Returns the id of the next message to be staged.
    pub fn next_id(&self) -> MessageId {
        message_id(self.record.id, self.record.entries.len())
    }

    /// Sends a message with the commit.
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded. Messages that were staged earlier remain staged.
    pub fn stage(&mut self, message: Message, queue: Queue) -> Result<(), StageError> {
        self.record.entries.push(Entry::message(&message, queue, self.opened_at)?);
        self.staged.push(message);
        Ok(())
    }

    /// Writes the view of a saga that is about to begin, with the commit. The commit is refused if the view is in more
    /// further lists than [`MAX_FURTHER_LISTS`].
    pub fn show(&mut self, view: View) {
        self.record.views.push(view);
    }

    /// Reads a record, with the body that the session has written itself, if any. A record that was removed or has expired
    /// is absent. The commit is refused if another session changes the record in between.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    pub async fn read(&mut self, key: Key) -> Result<Option<Record>, StoreError> {
        let found = self.ports.records.stored_record(&key).await?;
        let revision = found.as_ref().map_or(0, |record| record.revision);
        let written = self.record.writes.iter().rfind(|write| write.key == key);
        let found = match written {
            Some(Write { body, expires_at, .. }) => {
                Some(StoredRecord { revision, body: body.clone(), expires_at: *expires_at })
            }
            None => found,
        };
        self.record.reads.push(RecordRead { key, revision });
        Ok(found.and_then(|found| found.at(self.now())))
    }

    /// Writes a record with the commit. The record does not expire.
    pub fn write(&mut self, key: Key, body: serde_json::Value) {
        self.record.writes.push(Write::new(key, body));
    }

    /// Writes a record with the commit. From `expires_at` on, rounded up to a second, the record counts as absent, and its
    /// store deletes it some days later.
    pub fn write_until(&mut self, key: Key, body: serde_json::Value, expires_at: Timestamp) {
        self.record.writes.push(Write::new(key, body).until(expires_at));
    }

    /// Removes a record with the commit.
    pub fn remove(&mut self, key: Key) {
        self.record.writes.push(Write::removal(key, self.now()));
    }

    fn now(&self) -> Timestamp {
        self.ports.dispatcher.reporter.host.now()
    }

    /// Sends the control message, stores everything in one transaction, then sends the messages. A session without
    /// messages needs no control message. Returns the messages.
    ///
    /// A commit that failed may be repeated until the session is abandoned. If the failed call was stored after all,
    /// the repetition changes nothing. Therefore, nothing can be added to a session after its first commit.
    ///
    /// # Errors
    /// Returns an error if the control message cannot be sent, the store is unavailable, or the session was refused. If
    /// the store is unavailable, the outcome is unknown until the control message settles it. Otherwise nothing is
    /// stored.
    pub async fn commit(&mut self) -> Result<Vec<Message>, CommitError> {
        let sessions = Arc::clone(&self.ports.sessions);
        self.commit_with(sessions.as_ref()).await
    }

    /// Works like [`Session::commit`], with the work of the application in the same transaction. The adapter of a store
    /// combines the two, for example `sqlite::Store::with_work`.
    ///
    /// # Errors
    /// Returns the errors of [`Session::commit`], and an error if the work refuses the commit.
    pub async fn commit_with(&mut self, sessions: &dyn CommitSession) -> Result<Vec<Message>, CommitError> {
        self.check()?;
        self.committed.get_or_insert(self.record.content());
        let dispatcher = &self.ports.dispatcher;
        if !self.record.entries.is_empty() {
            send_one(dispatcher.send.as_ref(), &self.control, CONTROL, Duration::ZERO).await?;
        }
        self.record.committed_at = self.now();
        match sessions.commit(&self.record).await.map_err(CommitError::Store)? {
            CommitOutcome::Stored => {}
            CommitOutcome::TooLate => return Err(CommitError::TooLate),
            CommitOutcome::Changed => return Err(CommitError::Changed),
            CommitOutcome::Refused => return Err(CommitError::Refused),
        }
        if !self.record.entries.is_empty() {
            self.dispatch().await;
        }
        Ok(self.staged.clone())
    }

    /// Checks that every store can hold the session, and that nothing was added since the first commit. The store would
    /// not store such an addition.
    ///
    /// # Errors
    /// Returns [`CommitError::Extended`], [`CommitError::TooManyLists`] or [`CommitError::Unsupported`].
    pub fn check(&self) -> Result<(), CommitError> {
        if self.committed.is_some_and(|content| content != self.record.content()) {
            return Err(CommitError::Extended);
        }
        let lists = self.record.views.iter().map(|view| view.also_in.len()).max().unwrap_or(0);
        if lists > MAX_FURTHER_LISTS {
            return Err(CommitError::TooManyLists(lists));
        }
        for Write { key, body, .. } in &self.record.writes {
            if let Some(why) = unsupported_record(key, body.as_ref().unwrap_or(&serde_json::Value::Null)) {
                return Err(CommitError::Unsupported { key: key.clone(), why });
            }
        }
        Ok(())
    }

    /// Sends the messages of the committed session at once, which only saves time: errors are ignored, because the
    /// control message has the same effect later.
    async fn dispatch(&self) {
        let (dispatcher, owner) = (&self.ports.dispatcher, Owner::Session(self.record.id));
        let deadline = self.now().checked_add(dispatcher.policy.send_timeout + DISPATCH).ok();
        if let Err(error) = dispatcher.dispatch_records(self.ports.outbox.as_ref(), &[owner], deadline).await
        {
            let (function, correlation_id) = (dispatcher.reporter.function, self.control.partition);
            let (message_id, error) = (self.control.id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "the session is left to its control message");
        }
    }
}

/// Returns the id of the `index`-th message of a session. It is derived, so a store client that repeats a commit sends
/// the same messages.
pub fn message_id(session: SessionId, index: usize) -> MessageId {
    MessageId::from_uuid(session.as_uuid()).derive(index)
}

/// The reason why a session was not committed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The session is not stored.
    #[error("granting the session's tokens failed")]
    Tokens(#[source] StoreError),
    /// The session is not stored.
    #[error("announcing the session failed")]
    Control(#[from] SendError),
    /// The outcome is unknown until the control message settles it.
    #[error("storing the session failed")]
    Store(#[source] StoreError),
    /// The commit took too long, and nothing is stored.
    #[error("the session took too long to commit and was abandoned")]
    TooLate,
    /// A record that the session has read has changed, and nothing is stored.
    #[error("another session changed a record that this session has read")]
    Changed,
    /// The application's own work refused the commit, and nothing is stored.
    #[error("the application refused the commit")]
    Refused,
    /// Messages, views or records were added after the first commit. They are not stored.
    #[error("the session was extended after its first commit; open another one for what was added")]
    Extended,
    /// A view is in more further lists than [`MAX_FURTHER_LISTS`], and nothing is stored.
    #[error("a view is in {0} further lists, more than {MAX_FURTHER_LISTS}")]
    TooManyLists(usize),
    /// A store could not hold a record, and nothing is stored.
    #[error("record {key} cannot be stored: {why}")]
    Unsupported {
        /// The key of the record.
        key: Key,
        /// The reason.
        why: &'static str,
    },
}

impl CommitError {
    /// Returns `true` if the session was refused: nothing is stored, and the same request may succeed in another
    /// session.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::TooLate | Self::Changed)
    }
}

/// Returns the control message of a session, which has the id of the session and the time of its commit.
pub fn control_message(
    system: &str,
    partition: PartitionKey,
    look: &SettleSession,
    time: Timestamp,
) -> Message {
    let body = Body {
        system: system.to_owned(),
        name: SETTLE_SESSION.to_owned(),
        version: SETTLE_SESSION_VERSION,
        // Cannot fail: the data consists of ids, numbers and texts.
        data: Json::of(look).unwrap_or_default(),
    };
    let id = MessageId::from_uuid(look.session_id.as_uuid());
    Message { traceparent: None, ..Message::new(id, "session", partition, time, body) }
}

fn first_check(session_id: SessionId, options: &Options) -> SettleSession {
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

/// Returns the delay and the control message of the next look-up for a record that does not exist yet; `None` if the
/// maximum duration has passed.
pub fn next_check(look: &SettleSession) -> Option<(Duration, SettleSession)> {
    let increment_ms = look.increment_ms.saturating_mul(2).max(1).min(look.remaining_ms);
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
    fn default_checks_end_after_three_delays() {
        let id = SessionId::from_uuid(uuid::Uuid::nil());
        let mut look = first_check(id, &Options::default());
        let mut delays = Vec::new();
        while let Some((delay, next)) = next_check(&look) {
            delays.push(delay.as_secs());
            look = next;
        }
        assert_eq!(delays, [4, 8, 3]);
        assert_eq!(look.attempt, 3);
    }

    #[test]
    fn checks_without_increment_last_as_long() {
        let id = SessionId::from_uuid(uuid::Uuid::nil());
        let options = Options { increment: Duration::ZERO, ..Options::default() };
        let (mut look, mut total) = (first_check(id, &options), Duration::ZERO);
        while let Some((delay, next)) = next_check(&look) {
            (look, total) = (next, total + delay);
        }
        assert_eq!(total, options.max_commit);
    }
}
