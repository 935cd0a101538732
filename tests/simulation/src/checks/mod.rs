//! The invariants of all sagas, checked while a schedule runs and at rest.
//!
//! - [`documents`]: each write of a saga document: I1, I2, I4, I6;
//! - [`effects`]: each effect performed: I2, I3, I4;
//! - [`tokens`]: the ledger after each change, and what a document waits for: I4, I6, I8;
//! - [`inside`]: one worker at a time in a partition;
//! - [`rest`]: the end: I3, I6, I7 and sessions;
//! - [`scope`]: what is tried again in place;
//! - [`stale`]: duplicates that come after the end: I5.

mod documents;
mod effects;
mod inside;
mod rest;
mod scope;
mod stale;
mod tokens;

pub(crate) use stale::ages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use messages::{AttemptId, Message, MessageId, PartitionKey, Queue, SessionId, Token};
use outbox::{Owner, View};
use saga::Content;

use crate::model::State;

/// The memory of the checks.
#[derive(Default)]
pub(crate) struct Checks {
    /// Every content ever stored, by its version.
    history: BTreeMap<PartitionKey, Vec<StoredContent>>,
    /// The messages that changed a state.
    changed: BTreeSet<MessageId>,
    /// Every effect ever stored.
    effects: BTreeMap<(PartitionKey, MessageId), Effect>,
    /// The effects that write a view, by its revision.
    views: BTreeMap<(PartitionKey, u64), MessageId>,
    /// The last view that was stored as an effect.
    shown: BTreeMap<PartitionKey, View>,
    /// Until when an outbox entry is some worker's.
    held: BTreeMap<(Owner, MessageId), Timestamp>,
    /// The number of tokens that entry points granted.
    granted: BTreeMap<PartitionKey, usize>,
    /// Tokens granted to partitions that had ended.
    granted_late: BTreeSet<Token>,
    /// The most tokens that a claim has minted.
    minted: BTreeMap<PartitionKey, usize>,
    /// Sessions whose control message was sent.
    pub(crate) sessions: BTreeMap<SessionId, PartitionKey>,
    /// Partitions with a view that a session without messages created.
    shown_by_data: BTreeSet<PartitionKey>,
    /// The partitions that a worker abandoned in its current batch.
    given_up_by: BTreeSet<(usize, PartitionKey)>,
    /// The attempt that was admitted last to each partition and has not given it back, and the end of its lease.
    inside: BTreeMap<PartitionKey, (AttemptId, Timestamp)>,
    /// Every message ever sent, once.
    pub(crate) sent: BTreeMap<MessageId, SentMessage>,
}

/// One content as it was stored.
struct StoredContent {
    version: u64,
    content: Arc<Content>,
    state: State,
}

/// One message as it was sent.
pub(crate) struct SentMessage {
    queue: Queue,
    body: String,
    /// None when it cannot be read.
    message: Option<Message>,
    /// Its other contents when it was sent again: a repeated reply may report a newer state. It takes effect once, the
    /// one or the other.
    otherwise: Vec<Message>,
}

impl SentMessage {
    /// Returns the `nth` different content, or the last one if there are fewer.
    fn version(&self, nth: usize) -> Option<&Message> {
        let last = self.otherwise.len().checked_sub(1);
        let other = nth.checked_sub(1).zip(last).map(|(nth, last)| nth.min(last));
        other.and_then(|index| self.otherwise.get(index)).or(self.message.as_ref())
    }
}

/// One stored effect.
struct Effect {
    kind: EffectKind,
    payload: String,
    performed: u32,
    cancelled: bool,
}

/// The action of an effect.
enum EffectKind {
    View,
    Message(Box<Message>),
}

impl EffectKind {
    fn is_timer(&self) -> bool {
        matches!(self, Self::Message(message) if message.timer.is_some())
    }
}

impl Checks {
    /// The message of an effect.
    pub(crate) fn message(&self, partition: PartitionKey, id: MessageId) -> Option<&Message> {
        match &self.effects.get(&(partition, id))?.kind {
            EffectKind::Message(message) => Some(message),
            EffectKind::View => None,
        }
    }

    /// The messages of all effects of a partition.
    pub(crate) fn messages_of(&self, partition: PartitionKey) -> impl Iterator<Item = &Message> {
        let effects = self.effects.iter().filter(move |((of, _), _)| *of == partition);
        effects.filter_map(|(_, effect)| match &effect.kind {
            EffectKind::Message(message) => Some(&**message),
            EffectKind::View => None,
        })
    }
}
