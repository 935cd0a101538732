//! The saga's document: what one partition leaves in the store between two messages.
//!
//! A store keeps states as JSON and reads none of them. What they mean is known where the saga is, in the runner; so one
//! state that this release cannot read fails its own partition and no other.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use dedup::ledger::OPEN_END;
use jiff::Timestamp;
use messages::{AttemptId, Json, MessageId, PartitionKey, StoreError, Token};
use outbox::{Entry, Settlement};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::state_machine::Saga;

/// One partition as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<S = Json> {
    /// The partition.
    pub partition: PartitionKey,
    /// Counts the writes; the condition of the next one.
    pub version: u64,
    /// Everything else but the outbox.
    pub content: Content<S>,
    /// Effects that are not performed yet.
    pub outbox: Vec<Entry>,
}

/// What a write replaces as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content<S = Json> {
    /// The state.
    pub state: S,
    /// The version of the state's form.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub state_version: u32,
    /// When the partition ended; none while it has not, and in documents that earlier releases wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Messages that changed the state and may come again.
    pub processed: Vec<Processed>,
    /// Tokens of the messages that the partition waits for.
    pub expected: Vec<Expected>,
    /// The timers that run, with the messages that they will send.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timers: BTreeMap<String, MessageId>,
    /// The attempt that wrote this.
    pub attempt: AttemptId,
    /// The fence of that attempt's claim. An attempt with an earlier one has lost its lease, and must not build on
    /// this; 0 when there is no ledger.
    pub fence: u64,
    /// Whether that attempt leaves its claim to the next one, instead of giving the partition back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_claim: bool,
}

fn first() -> u32 {
    1
}

fn is_first(version: &u32) -> bool {
    *version == first()
}

/// A message that changed the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Processed {
    /// The message.
    pub id: MessageId,
    /// Its token. The entry stays until a later claim's answer shows that the token is gone; one without a token
    /// stays with the document.
    pub token: Option<Token>,
}

/// A token that the partition gave out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Expected {
    /// The token.
    pub token: Token,
    /// Whose message will carry it.
    pub by: Awaited,
}

/// Who is to present a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// The reply to this message. Stored under the name that it had first, which releases before this one read too.
    #[serde(rename = "file", alias = "reply")]
    Reply(Uuid),
    /// This timer's event.
    Timeout(Uuid),
}

impl<S> Content<S> {
    /// Whether the partition waits for a message with this token.
    pub fn expects(&self, token: &Token) -> bool {
        self.ended_at.is_none() && self.expected.iter().any(|expected| expected.token == *token)
    }

    /// The time until which the partition waits for something, with this outbox: `now` where it waits for nothing, or
    /// for a timer whose event is on its way. A wait for answers under no timer has no end.
    pub fn waits_until<'a>(&self, outbox: impl IntoIterator<Item = &'a Entry>, now: Timestamp) -> Timestamp {
        match self.ended_at {
            Some(_) => now,
            None => waits_until(&self.expected, outbox, now),
        }
    }
}

pub(crate) fn waits_until<'a>(
    expected: &[Expected],
    outbox: impl IntoIterator<Item = &'a Entry>,
    now: Timestamp,
) -> Timestamp {
    if expected.is_empty() {
        return now;
    }
    let timers = expected.iter().filter_map(|expected| match expected.by {
        Awaited::Timeout(id) => Some(MessageId::from_uuid(id)),
        Awaited::Reply(_) => None,
    });
    let timers: BTreeSet<MessageId> = timers.collect();
    if timers.is_empty() {
        return OPEN_END.max(now);
    }
    let due = outbox.into_iter().filter(|entry| timers.contains(&entry.id)).map(|entry| entry.due_at);
    due.fold(now, Timestamp::max)
}

/// One conditional write of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist<S = Json> {
    /// The partition.
    pub partition: PartitionKey,
    /// The version that was loaded; none when there was no document. The stored one becomes one larger, and
    /// the first is 1.
    pub loaded: Option<u64>,
    /// The new content.
    pub content: Content<S>,
    /// Entries that join the outbox.
    pub add: Vec<Entry>,
    /// Entries that leave it unperformed.
    pub cancel: Vec<MessageId>,
}

/// What became of a [`Persist`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persisted {
    /// It is stored.
    Stored,
    /// Another write came first; nothing of this one is stored.
    Conflict,
}

impl<S> Content<S> {
    /// The attempt for which nobody has to wait, should it be inside still.
    pub fn finished(&self) -> Option<AttemptId> {
        self.leaves_claim.then_some(self.attempt)
    }

    fn with_state<T>(self, state: T) -> Content<T> {
        let Self {
            state: _,
            state_version,
            ended_at,
            processed,
            expected,
            timers,
            attempt,
            fence,
            leaves_claim,
        } = self;
        Content { state, state_version, ended_at, processed, expected, timers, attempt, fence, leaves_claim }
    }
}

impl Document {
    /// The document as its saga knows it.
    ///
    /// # Errors
    /// When the state was written by a later release, or is not a state of this saga.
    pub fn open<S: Saga>(self, saga: &S) -> Result<Document<S::State>, StoreError> {
        let Self { partition, version, content, outbox } = self;
        let doing = || format!("reading the state of partition {partition}");
        let found = content.state_version;
        if found > S::STATE_VERSION {
            let why = format!("it has version {found}, and this release knows up to {}", S::STATE_VERSION);
            return Err(StoreError::unavailable(doing(), why));
        }
        let state = if found == S::STATE_VERSION {
            content.state.read()
        } else {
            let upcast = (found..S::STATE_VERSION)
                .try_fold(content.state.value(), |state, from| saga.upcast_state(from, state));
            serde_json::from_value(upcast.map_err(|why| StoreError::unusable(doing(), why))?)
        };
        let state = state.map_err(|error| StoreError::unusable(doing(), error))?;
        let mut content = content.with_state(state);
        content.state_version = S::STATE_VERSION;
        Ok(Document { partition, version, content, outbox })
    }
}

impl<S: Serialize> Persist<S> {
    /// The write as a store takes it.
    ///
    /// # Errors
    /// When the state cannot be written as JSON.
    pub fn close(self) -> Result<Persist, serde_json::Error> {
        let Self { partition, loaded, content, add, cancel } = self;
        let state = Json::of(&content.state)?;
        Ok(Persist { partition, loaded, content: content.with_state(state), add, cancel })
    }
}

/// What a store found of one partition.
pub type Loaded = Result<Option<Document>, StoreError>;

/// Reads saga documents.
#[async_trait]
pub trait ReadDocuments: Send + Sync {
    /// The document of each partition, in order; possibly an earlier version of it, or none. One whose retention has
    /// passed at `now` is absent, even if the store has not deleted it yet. One that is no saga document is an error of
    /// its own.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<Loaded>, StoreError>;

    /// The document of one partition like [`ReadDocuments::load`], which may be answered with an earlier version where
    /// this may not: every write that was confirmed before the call is in it. That may cost more.
    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> Loaded;
}

/// Writes saga documents.
#[async_trait]
pub trait WriteDocuments: Send + Sync {
    /// Makes each write if its condition holds, content and outbox together or not at all; one answer for each,
    /// in order.
    ///
    /// # Errors
    /// When the store does not answer: some of the writes may have been made.
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError>;

    /// Settles outbox entries of several partitions in one call, each on condition of its claim.
    ///
    /// # Errors
    /// When the store does not answer: the entries stay and are performed again.
    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError>;
}
