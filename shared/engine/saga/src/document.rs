//! The saga's document: the stored form of one partition.
//!
//! A store keeps states as JSON and does not interpret them. Only the runner deserializes them, so a state that this
//! version cannot read fails its own partition and no other.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use dedup::ledger::OPEN_END;
use jiff::Timestamp;
use messages::{AttemptId, Json, MessageId, PartitionKey, Payload, Queue, StoreError, Token};
use outbox::records::MAX_LEVELS;
use outbox::{Entry, Settlement, unsupported_json};
use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::intervention::Intervention;
use crate::state_machine::Saga;

/// One partition as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document<S = Json> {
    /// The partition.
    pub partition: PartitionKey,
    /// The number of writes, and the condition of the next one.
    pub version: u64,
    /// The content, without the outbox.
    pub content: Content<S>,
    /// Effects that are not performed yet.
    pub outbox: Vec<Entry>,
}

/// The part of a document that each write replaces as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content<S = Json> {
    /// The state.
    pub state: S,
    /// The version of the state's format.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    pub state_version: u32,
    /// The name of the queue of the saga to which the instance belongs; `None` in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The time at which the partition ended; `None` if it has not, and in documents of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// Messages that changed the state and may be redelivered.
    pub processed: Vec<ProcessedMessage>,
    /// Tokens of the messages that the partition waits for.
    pub expected: Vec<ExpectedToken>,
    /// The running timers by name, with the ids of the messages that they will send.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub timers: BTreeMap<String, MessageId>,
    /// The attempt that wrote this content.
    pub attempt: AttemptId,
    /// The fence of that attempt's claim; 0 without a ledger. An attempt with a lower fence has lost its lease and must
    /// not build on this content.
    pub fence: u64,
    /// `true` if that attempt keeps its claim for the next one instead of releasing the partition.
    #[serde(default, rename = "leaves_claim", skip_serializing_if = "std::ops::Not::not")]
    pub keeps_claim: bool,
    /// When and why an operator paused the partition; `None` if it is not paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<Intervention>,
    /// When and why an operator ended the partition; `None` if it has not ended, or ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminated: Option<Intervention>,
}

fn first() -> u32 {
    1
}

fn is_first(version: &u32) -> bool {
    *version == first()
}

/// A message that changed the state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessedMessage {
    /// The message.
    pub id: MessageId,
    /// The token of the message. The entry stays until the answer to a later claim shows that the token is gone. An
    /// entry without a token stays as long as the document.
    pub token: Option<Token>,
}

/// A token that the partition handed out.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ExpectedToken {
    /// The token.
    pub token: Token,
    /// The message that will carry the token.
    pub by: ExpectedMessage,
}

/// The message that will present a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExpectedMessage {
    /// The reply to this message. Stored under its original name, which earlier versions also read.
    #[serde(rename = "file", alias = "reply")]
    Reply(Uuid),
    /// The event of this timer.
    Timeout(Uuid),
}

impl<S> Content<S> {
    /// Returns `true` if the partition waits for a message with this token.
    pub fn expects(&self, token: &Token) -> bool {
        self.ended_at.is_none() && self.expected.iter().any(|expected| expected.token == *token)
    }

    /// Returns `true` if the partition waits for a message that nothing in its outbox causes: it has neither ended nor
    /// been paused, no effect is pending, and no timer is running. A message that was sent may still be in a queue.
    pub fn is_stalled<'a>(&self, outbox: impl IntoIterator<Item = &'a Entry>) -> bool {
        let is_pending = |entry: &Entry| entry.is_message() && !entry.poisoned;
        self.ended_at.is_none() && self.paused.is_none() && !outbox.into_iter().any(is_pending)
    }

    /// Returns the time until which the partition waits for a message, given its outbox. Returns `now` if it waits for
    /// nothing, or only for a timer whose event has been sent. A wait for replies without a timer has no end.
    pub fn waits_until<'a>(&self, outbox: impl IntoIterator<Item = &'a Entry>, now: Timestamp) -> Timestamp {
        match self.ended_at {
            Some(_) => now,
            None => waits_until(&self.expected, outbox, now),
        }
    }
}

pub(crate) fn waits_until<'a>(
    expected: &[ExpectedToken],
    outbox: impl IntoIterator<Item = &'a Entry>,
    now: Timestamp,
) -> Timestamp {
    if expected.is_empty() {
        return now;
    }
    let timers = expected.iter().filter_map(|expected| match expected.by {
        ExpectedMessage::Timeout(id) => Some(MessageId::from_uuid(id)),
        ExpectedMessage::Reply(_) => None,
    });
    let timers: BTreeSet<MessageId> = timers.collect();
    if timers.is_empty() {
        return OPEN_END.max(now);
    }
    let due = outbox.into_iter().filter(|entry| timers.contains(&entry.id)).map(|entry| entry.due_at);
    due.fold(now, Timestamp::max)
}

/// A conditional write of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist<S = Json> {
    /// The partition.
    pub partition: PartitionKey,
    /// The version that was loaded; `None` for the first write.
    pub loaded: Option<u64>,
    /// The version that is stored; see [`next_version`].
    pub version: u64,
    /// The new content.
    pub content: Content<S>,
    /// Entries to add to the outbox.
    pub add: Vec<Entry>,
    /// Entries to remove from the outbox without performing them.
    pub cancel: Vec<MessageId>,
}

/// Returns the version of a document after a write: the next one, or the milliseconds since 1970 for the first write.
///
/// An instance can begin again after its document has expired. Its views and records are stored with versions, and a write
/// of an earlier version is dropped. The versions of the second life exceed those of the first, because an instance is
/// written less than once per millisecond on average, and its document is kept for days after its end. Clocks may
/// therefore differ by days.
#[must_use]
pub fn next_version(loaded: Option<u64>, now: Timestamp) -> u64 {
    match loaded {
        Some(version) => version.saturating_add(1),
        None => u64::try_from(now.as_millisecond()).unwrap_or(0).max(1),
    }
}

/// The outcome of a [`Persist`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PersistOutcome {
    /// The write is stored.
    Stored,
    /// Another write came first, so nothing of this one is stored; or, rarely, this one was stored, its response was
    /// lost, and another write followed. In both cases, the caller decides again on the latest document. The processed
    /// messages of this document include the messages of all stored writes.
    Conflict,
}

impl<S> Content<S> {
    /// Returns the attempt whose claim may be taken over at once, because it has finished and kept its claim.
    pub fn finished(&self) -> Option<AttemptId> {
        self.keeps_claim.then_some(self.attempt)
    }

    fn with_state<T>(self, state: T) -> Content<T> {
        let Self {
            state: _,
            state_version,
            queue,
            ended_at,
            processed,
            expected,
            timers,
            attempt,
            fence,
            keeps_claim,
            paused,
            terminated,
        } = self;
        Content {
            state,
            state_version,
            queue,
            ended_at,
            processed,
            expected,
            timers,
            attempt,
            fence,
            keeps_claim,
            paused,
            terminated,
        }
    }
}

impl Document {
    /// Returns why the saga of a queue must not change the instance; `None` if the instance is its own. Otherwise two
    /// sagas whose states have the same form would change each other's instances.
    pub fn other_saga(&self, queue: &Queue) -> Option<String> {
        let other = self.content.queue.as_ref().filter(|owner| *owner != queue.name())?;
        Some(format!("the instance belongs to the saga of queue {other}, not of {queue}"))
    }

    /// Deserializes the state.
    ///
    /// # Errors
    /// Returns an error if the instance belongs to another saga, the state was written by a newer version, or the state
    /// is not one of this saga.
    pub fn open<S: Saga>(self, saga: &S) -> Result<Document<S::State>, StoreError> {
        let other = self.other_saga(&S::Event::QUEUE);
        let Self { partition, version, content, outbox } = self;
        let doing = || format!("reading the state of partition {partition}");
        if let Some(why) = other {
            return Err(StoreError::unusable(doing(), why));
        }
        let found = content.state_version;
        if found > S::STATE_VERSION {
            let why = format!("it has version {found}, and this program supports up to {}", S::STATE_VERSION);
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

impl<S: Serialize + DeserializeOwned> Persist<S> {
    /// Serializes the state.
    ///
    /// # Errors
    /// Returns an error if the state cannot be serialized as JSON, or not deserialized from it: JSON has no number that
    /// is infinite or not a number, and stores `null` instead. Returns an error, too, if some store could not hold the
    /// state.
    pub fn close(self) -> Result<Persist, serde_json::Error> {
        let Self { partition, loaded, version, content, add, cancel } = self;
        let state = Json::of(&content.state)?;
        state.read::<S>()?;
        if may_be_unsupported(state.text())
            && let Some(why) = unsupported_json(&state.value())
        {
            return Err(serde_json::Error::custom(why));
        }
        Ok(Persist { partition, loaded, version, content: content.with_state(state), add, cancel })
    }
}

/// Returns `false` for JSON that every store can hold, as far as its text shows: it has few levels, no zero character, and
/// no number of more than 18 digits.
fn may_be_unsupported(text: &str) -> bool {
    let (mut digits, mut levels, mut is_string, mut is_escaped) = (0, 0_usize, false, false);
    let is_suspect = text.bytes().any(|byte| {
        digits = if byte.is_ascii_digit() { digits + 1 } else { 0 };
        match byte {
            b'"' if !is_escaped => is_string = !is_string,
            b'[' | b'{' if !is_string => levels += 1,
            b']' | b'}' if !is_string => levels = levels.saturating_sub(1),
            _ => {}
        }
        is_escaped = is_string && byte == b'\\' && !is_escaped;
        digits > 18 || levels > MAX_LEVELS
    });
    is_suspect || text.contains(r"\u0000")
}

/// The result of loading one partition.
pub type LoadResult = Result<Option<Document>, StoreError>;

/// Reads saga documents.
#[async_trait]
pub trait ReadDocuments: Send + Sync {
    /// Returns the document of each partition, in order. The result may be an earlier version, or `None`. A document
    /// whose retention has passed at `now` is absent, even if the store has not deleted it yet. A value that is not a
    /// saga document is a separate error.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError>;

    /// Returns the latest document of one partition: it includes every write that was confirmed before the call. This
    /// may cost more than [`ReadDocuments::load`].
    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult;

    /// Makes the following reads return the latest data, whatever they read: a deposed primary cannot answer this read,
    /// of any partition.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn reach_latest_data(&self, partition: PartitionKey, now: Timestamp) -> Result<(), StoreError> {
        match self.load_latest(partition, now).await {
            Err(error) if error.is_retryable() => Err(error),
            // The document itself does not matter, even if only a newer version can read it.
            Ok(_) | Err(_) => Ok(()),
        }
    }
}

/// Writes saga documents.
#[async_trait]
pub trait WriteDocuments: Send + Sync {
    /// Makes each write if its condition holds, content and outbox atomically. Returns one result for each write, in
    /// order.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Some of the writes may have been made.
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError>;

    /// Settles outbox entries of several partitions in one call, each on condition of its claim.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The entries then stay and are performed again.
    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::toy::{self, Event, Toy};

    #[test]
    fn instance_of_another_saga_is_not_opened() {
        let own = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let state = Json::of(&own.content.state).unwrap();
        let Document { partition, version, content, outbox } = own;
        let stored = Document { partition, version, content: content.with_state(state), outbox };
        assert!(stored.clone().open(&Toy).is_ok());
        let renamed = |queue: Option<&str>| {
            let content = Content { queue: queue.map(str::to_owned), ..stored.content.clone() };
            Document { content, ..stored.clone() }.open(&Toy)
        };
        assert!(renamed(None).is_ok(), "an earlier version wrote it");
        let error = renamed(Some("other")).unwrap_err();
        assert!(
            !error.is_retryable() && error.chain().contains("the saga of queue other"),
            "{}",
            error.chain()
        );
    }

    #[test]
    fn second_life_continues_after_the_first() {
        let began = Timestamp::from_second(1_700_000_000).unwrap();
        let first = next_version(None, began);
        let last = (0..1_000).fold(first, |version, _| next_version(Some(version), began));
        assert_eq!(last - first, 1_000);
        let again = next_version(None, began + jiff::SignedDuration::from_secs(2));
        assert!(again > last && i64::try_from(again).is_ok());
        assert_eq!(next_version(None, Timestamp::MIN), 1, "versions are positive");
    }
}
