//! The invariants of all sagas, checked during a schedule and in the final state.
//!
//! - [`documents`]: each write of a saga document: I1, I2, I4, I6;
//! - [`effects`]: each performed effect: I2, I3, I4;
//! - [`tokens`]: the ledger after each change, and the expected messages of a document: I4, I6, I8;
//! - [`mutual_exclusion`]: one worker at a time in a partition;
//! - [`final_state`]: the final state: I3, I6, I7 and sessions;
//! - [`restored`]: the recorded history that a restore undoes;
//! - [`in_place_retries`]: only conflicts are retried in place;
//! - [`late_duplicates`]: duplicates after the end: I5;
//! - [`resent`]: commands that continue later.

mod documents;
mod effects;
mod final_state;
mod in_place_retries;
mod late_duplicates;
mod mutual_exclusion;
mod resent;
mod restored;
mod tokens;

pub(crate) use late_duplicates::ages;
pub(crate) use restored::RestorableChecks;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use messages::{AttemptId, Message, MessageId, PartitionKey, Queue, SessionId, Token};
use outbox::{Entry, Key, OwnedRecord, Owner, View};
use saga::{Content, SAGA};

use crate::model::State;

/// The memory of the checks.
#[derive(Default)]
pub(crate) struct Checks {
    /// Every stored content, by its version.
    history: BTreeMap<PartitionKey, Vec<StoredContent>>,
    /// The messages that changed a state.
    pub(crate) changed: BTreeSet<MessageId>,
    /// Every stored effect.
    effects: BTreeMap<(PartitionKey, MessageId), Effect>,
    /// The partitions that stored the effects whose messages go to other partitions.
    owners: BTreeMap<MessageId, PartitionKey>,
    /// The queue of the saga of each partition.
    queues: BTreeMap<PartitionKey, Queue>,
    /// The effects that write a view, by its revision.
    views: BTreeMap<(PartitionKey, u64), MessageId>,
    /// The last view that was stored as an effect.
    shown: BTreeMap<PartitionKey, View>,
    /// The effects that write a record, by its revision.
    records: BTreeMap<(Key, u64), (PartitionKey, MessageId)>,
    /// The last version of each record that was stored as an effect.
    kept: BTreeMap<Key, OwnedRecord>,
    /// The end of the claim on each outbox entry.
    held: BTreeMap<(Owner, MessageId), Timestamp>,
    /// The number of tokens that entry points granted.
    granted: BTreeMap<PartitionKey, usize>,
    /// Tokens granted to partitions that had ended.
    granted_late: BTreeSet<Token>,
    /// The maximum number of tokens minted by a claim.
    minted: BTreeMap<PartitionKey, usize>,
    /// Sessions whose control message was sent.
    pub(crate) sessions: BTreeMap<SessionId, PartitionKey>,
    /// Committed sessions with an event for their own partition.
    beginning: BTreeSet<SessionId>,
    /// Partitions with a view that a session without messages created.
    shown_by_data: BTreeSet<PartitionKey>,
    /// The partitions that a worker abandoned in its current batch.
    abandoned_by: BTreeSet<(usize, PartitionKey)>,
    /// The latest attempt admitted to each partition that has not released it, and the end of its lease.
    inside: BTreeMap<PartitionKey, (AttemptId, Timestamp)>,
    /// Attempts whose claim was refused because of its fence, possibly after it was granted.
    pub(crate) refused: BTreeSet<AttemptId>,
    /// The stored version of each entry when it was last performed, and how often it was performed since.
    performed_as: BTreeMap<(Owner, MessageId), (Entry, u32)>,
    /// Commands that workers send again.
    resent: resent::Resent,
    /// Every sent message, once.
    pub(crate) sent: BTreeMap<MessageId, SentMessage>,
}

#[derive(Clone)]
struct StoredContent {
    version: u64,
    content: Arc<Content>,
    state: State,
}

pub(crate) struct SentMessage {
    queue: Queue,
    body: String,
    /// The message; `None` if it cannot be read.
    message: Option<Message>,
    /// Other contents with which the message was sent again, because a repeated reply may report a newer state. Only
    /// one of the contents takes effect.
    otherwise: Vec<Message>,
    /// `true` if its queue was purged since it was sent, so that no copy of it is left.
    is_purged: bool,
}

impl SentMessage {
    /// Returns the `nth` different content, or the last one if there are fewer.
    fn version(&self, nth: usize) -> Option<&Message> {
        let last = self.otherwise.len().checked_sub(1);
        let other = nth.checked_sub(1).zip(last).map(|(nth, last)| nth.min(last));
        other.and_then(|index| self.otherwise.get(index)).or(self.message.as_ref())
    }
}

/// A stored effect.
struct Effect {
    kind: EffectKind,
    payload: String,
    performed: u32,
    cancelled: bool,
    /// `true` if a restore of the database has undone the change that caused it.
    undone: bool,
}

/// Returns the action of an effect.
enum EffectKind {
    View,
    Record,
    Message(Box<Message>),
}

impl EffectKind {
    fn is_timer(&self) -> bool {
        matches!(self, Self::Message(message) if message.timer.is_some())
    }
}

impl Checks {
    /// Returns the partition that stored the effect of a message.
    pub(crate) fn owner_of(&self, partition: PartitionKey, id: MessageId) -> PartitionKey {
        self.owners.get(&id).copied().unwrap_or(partition)
    }

    /// Returns `true` if a message of another partition caused it.
    pub(crate) fn is_between_partitions(&self, id: MessageId) -> bool {
        self.owners.contains_key(&id)
    }

    /// Returns the queue of the saga of a partition.
    pub(crate) fn queue_of(&self, partition: PartitionKey) -> Queue {
        self.queues.get(&partition).cloned().unwrap_or(SAGA)
    }

    /// Returns the message of an effect.
    pub(crate) fn message(&self, partition: PartitionKey, id: MessageId) -> Option<&Message> {
        match &self.effects.get(&(partition, id))?.kind {
            EffectKind::Message(message) => Some(message),
            EffectKind::View | EffectKind::Record => None,
        }
    }

    /// Returns the messages of all effects of a partition that were not undone.
    pub(crate) fn messages_of(&self, partition: PartitionKey) -> impl Iterator<Item = &Message> {
        let effects = self.effects.iter().filter(move |((of, _), effect)| *of == partition && !effect.undone);
        effects.filter_map(|(_, effect)| match &effect.kind {
            EffectKind::Message(message) => Some(&**message),
            EffectKind::View | EffectKind::Record => None,
        })
    }
}
