//! The state of the whole system.

use std::collections::{BTreeMap, BTreeSet};

use dedup::Tokens;
use dedup::ledger::{ITEM_LIFETIME, Item};
use jiff::SignedDuration;
use messages::{AttemptId, Message, MessageId, PartitionKey, Token};
use outbox::Entry;
use saga::plan::{self, IncomingEvent, admission};
use saga::{Content, ExpectedToken, Saga};
use serde_json::Value;

use crate::keyed::{DocumentOf, Family, IncomingOf, KeyedValue, Of, PlanOf, key};
use crate::protocol::{Budget, Protocol};
use crate::sent::NOW;

pub(crate) const LEASE: SignedDuration = SignedDuration::from_secs(30);

/// The system around one saga.
pub type System<S> = SystemState<Of<S>>;

/// The complete state of the system.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct SystemState<F: Family> {
    pub(crate) partition: PartitionKey,
    /// The partition of the other saga, if there are two.
    pub(crate) peer: Option<PartitionKey>,
    pub(crate) ledger: Ledger,
    pub(crate) document: Option<StoredDocument<F>>,
    /// The document before the last write, as long as a load may still return this document.
    pub(crate) earlier: Option<Option<StoredDocument<F>>>,
    /// `true` if the document was deleted after its retention.
    pub(crate) expired: bool,
    /// The saga's queue, with every message that was ever sent to it.
    pub(crate) queue: KeyedValue<BTreeMap<MessageId, QueuedMessage<F>>>,
    pub(crate) workers: [Phase<F>; 2],
    pub(crate) sweeper: Option<Vec<MessageId>>,
    pub(crate) left: RemainingFaults,
    /// `true` if a batch may contain two messages.
    pub(crate) groups: bool,
    /// The attempts whose tokens may be outside of this partition, so that their numbers are not reused.
    pub(crate) pinned: KeyedValue<BTreeSet<AttemptId>>,
    pub(crate) seen: KeyedValue<Observations>,
}

/// The faults that may still occur. Two sagas share them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RemainingFaults {
    pub(crate) crashes: u8,
    pub(crate) expiries: u8,
    pub(crate) sweeps: u8,
    pub(crate) timers: u8,
    pub(crate) stale: u8,
    pub(crate) duplicates: u8,
    pub(crate) failures: u8,
    pub(crate) delayed_grants: u8,
    pub(crate) repeated_grants: u8,
}

/// The stored document. The fence is a separate field, so that states which differ only in the number of claims can be
/// normalized.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct StoredDocument<F: Family> {
    pub(crate) document: KeyedValue<DocumentOf<F>>,
    pub(crate) fence: u64,
    /// The hash of the state alone, without the writer and the tokens of the document.
    pub(crate) state: u64,
}

/// The ledger item, in a form that can be hashed.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Ledger {
    pub(crate) holder: Option<(AttemptId, bool)>,
    pub(crate) fence: u64,
    pub(crate) tokens: KeyedValue<BTreeSet<Token>>,
    /// `true` if the item's lifetime has passed. The store may delete it later, so it may still exist.
    pub(crate) expired: bool,
}

/// The messages of one delivery: one message, or two in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch(pub(crate) MessageId, pub(crate) Option<MessageId>);

/// A message in the queue.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct QueuedMessage<F: Family> {
    pub(crate) incoming: KeyedValue<IncomingOf<F>>,
    pub(crate) acknowledged: bool,
    /// `true` if the message is in the dead-letter queue. Its token is kept.
    pub(crate) dead: bool,
    pub(crate) copies: u8,
}

/// The phase of a worker.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) enum Phase<F: Family> {
    Idle,
    /// The document is loaded and the claim is pending. Contains the required tokens if an earlier attempt had too few.
    Loaded(Batch, Option<StoredDocument<F>>, Option<TokenDemand>),
    /// The claim is granted, and the latest document has to be loaded.
    Claimed(Batch, HeldClaim),
    /// Document and claim are available, and the plan is decided.
    Decided(Batch, HeldClaim, KeyedValue<PlanOf<F>>),
    /// The tokens of the events for the other saga are granted.
    Granted(Batch, HeldClaim, KeyedValue<PlanOf<F>>),
    /// Another worker has changed the document since it was loaded.
    Conflicted(Batch, HeldClaim),
    /// The grant of tokens to the other saga has failed.
    Refused(Batch, HeldClaim),
    /// No decision was possible, because it requires more tokens than the attempt has.
    Short(Batch, HeldClaim, TokenDemand),
    /// After a lack of tokens, the partition was released. The attempt claims the partition again with enough tokens.
    Again(Batch, TokenDemand),
    /// The document is stored, or no write was needed.
    Stored(Batch, HeldClaim, KeyedValue<PlanOf<F>>),
    /// The effects of the outbox are performed.
    Dispatched(Batch, HeldClaim, KeyedValue<PlanOf<F>>),
    /// The partition is released, if this worker still held it.
    Released(Batch, KeyedValue<PlanOf<F>>, bool),
    /// The outbox is cleared, and the partition is still held.
    Cleared(Batch, HeldClaim, KeyedValue<PlanOf<F>>),
}

/// The result of a claim.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct HeldClaim {
    pub(crate) attempt: AttemptId,
    pub(crate) fence: u64,
    pub(crate) tokens: KeyedValue<BTreeSet<Token>>,
    /// The number of tokens that the claim requested. The names of the tokens are derived from the name of the attempt.
    pub(crate) minted: usize,
    /// `true` if no other attempt may use these tokens, because a document was loaded before the claim.
    pub(crate) owns_minted: bool,
}

/// The tokens that an attempt needs, and the maximum number that may exist before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TokenDemand {
    pub(crate) tokens: usize,
    pub(crate) room: usize,
}

/// The events seen by an external observer.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Observations {
    /// Number of state changes by message.
    pub(crate) changes: BTreeMap<MessageId, u8>,
    /// Every effect that was ever stored.
    pub(crate) stored: BTreeSet<MessageId>,
    /// `true` if an effect was sent that was never stored.
    pub(crate) unstored: bool,
    /// The distinct messages of each request, by the hash of its content.
    pub(crate) asked: BTreeMap<u64, BTreeSet<MessageId>>,
    /// The messages with a committed decision.
    pub(crate) decided: BTreeSet<MessageId>,
    /// `true` if a message was dropped without a decision.
    pub(crate) lost: bool,
}

impl<S: Saga> System<S> {
    /// Returns the initial state: only the inputs are sent.
    pub(crate) fn initial(
        protocol: &Protocol<S>,
        partition: PartitionKey,
        peer: Option<PartitionKey>,
    ) -> Self {
        let Protocol { inputs, budget, .. } = protocol;
        let received = |message: &Message| QueuedMessage::new(message.clone(), partition, budget.copies);
        let queue = inputs.iter().map(|message| (message.id, received(message)));
        Self {
            partition,
            peer,
            ledger: Ledger {
                holder: None,
                fence: 0,
                tokens: listed(inputs.iter().filter_map(|message| message.token.clone()).collect()),
                // A partition without entry points has no item before its first event.
                expired: inputs.is_empty(),
            },
            document: None,
            earlier: None,
            expired: false,
            queue: KeyedValue::itself(queue.collect()),
            workers: [Phase::Idle, Phase::Idle],
            sweeper: None,
            left: RemainingFaults::of(budget),
            groups: budget.groups,
            pinned: KeyedValue::itself(BTreeSet::new()),
            seen: KeyedValue::itself(Observations::default()),
        }
    }

    /// Returns the stored content.
    pub fn content(&self) -> Option<&Content<S::State>> {
        self.document.as_ref().map(|stored| &stored.document.value.content)
    }

    /// Returns the stored state; `None` before the first write and after the retention.
    pub fn state(&self) -> Option<&S::State> {
        self.content().map(|content| &content.state)
    }

    /// Returns `true` if the partition has ended and its document still exists.
    pub fn has_ended(&self) -> bool {
        self.content().is_some_and(|content| content.ended_at.is_some())
    }

    /// Returns `true` if the document of an ended partition was deleted after its retention.
    pub fn has_expired(&self) -> bool {
        self.expired
    }

    /// Returns `true` if all workers are idle and nothing remains to be delivered or sent. Timers may be running.
    pub fn is_at_rest(&self) -> bool {
        self.is_idle()
            && self.sweeper.is_none()
            && self.queue.value.values().all(|queued| queued.acknowledged)
            && self.due().next().is_none()
    }

    /// Takes over the faults that may still occur, after a step of the other saga.
    pub(crate) fn share(&mut self, left: RemainingFaults) {
        self.left = left;
        self.earlier = self.earlier.take().filter(|_| left.stale > 0);
    }

    /// Returns `true` if the saga expects a reply and no timer ends the wait.
    pub(crate) fn waits_in_vain(&self) -> bool {
        self.content().is_some_and(|content| {
            let is_reply = |expected: &ExpectedToken| matches!(expected.by, saga::ExpectedMessage::Reply(_));
            content.ended_at.is_none() && content.timers.is_empty() && content.expected.iter().any(is_reply)
        })
    }

    /// Returns `true` if a message was moved to the dead-letter queue.
    pub(crate) fn has_dead_letters(&self) -> bool {
        self.queue.value.values().any(|queued| queued.dead)
    }

    /// Returns the number of tokens that an attempt grants to the other saga.
    pub(crate) fn granted_by_attempt(&self) -> usize {
        let granted = self.workers.iter().filter_map(|phase| match phase {
            Phase::Granted(_, _, plan) => Some(plan.value.grants.len()),
            _ => None,
        });
        granted.max().unwrap_or(0)
    }

    /// Returns the number of distinct requests sent.
    pub fn requests(&self) -> usize {
        self.seen.value.asked.values().map(BTreeSet::len).sum()
    }

    /// Returns `true` if a worker has minted too few tokens and claims again with enough.
    pub fn claims_again(&self) -> bool {
        self.workers.iter().any(|phase| matches!(phase, Phase::Again(..)))
    }

    /// Returns `true` if a worker reclaims token capacity by storing the document unchanged.
    pub fn is_within_capacity(&self) -> bool {
        let again = |phase: &Phase<Of<S>>| matches!(phase, Phase::Dispatched(_, _, plan) if plan.value.retry_with.is_some());
        self.workers.iter().any(again)
    }

    /// Returns the number of workers that currently process a message.
    pub(crate) fn in_flight(&self, id: MessageId) -> usize {
        self.workers.iter().filter_map(Phase::batch).filter(|batch| batch.contains(id)).count()
    }

    /// Returns the number of duplicates of a message that a worker needs to receive the batch. The first delivery of an
    /// unacknowledged message is not a duplicate. Every other delivery is a redelivery.
    pub(crate) fn copies_needed(&self, batch: Batch, id: MessageId) -> u8 {
        let is_first = !self.queue.value[&id].acknowledged && self.in_flight(id) == 0;
        batch.count(id) - u8::from(is_first)
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.workers.iter().all(|phase| *phase == Phase::Idle)
    }

    fn outbox(&self) -> impl Iterator<Item = &Entry> {
        self.document.iter().flat_map(|stored| &stored.document.value.outbox)
    }

    /// Returns the due entries of the outbox.
    pub(crate) fn due(&self) -> impl Iterator<Item = &Entry> {
        self.outbox().filter(|entry| entry.due_at <= NOW)
    }

    /// Returns the running timers.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Entry> {
        self.outbox().filter(|entry| entry.due_at > NOW)
    }

    /// Returns `true` if the partition's holder is still working.
    pub(crate) fn holder_is_at_work(&self) -> bool {
        let Some((holder, _)) = self.ledger.holder else { return false };
        self.workers.iter().any(|phase| phase.attempt() == Some(holder))
    }
}

impl<F: Family> StoredDocument<F> {
    pub(crate) fn new(document: DocumentOf<F>, fence: u64) -> Self {
        let state = key(&without_tokens(serde_json::to_value(&document.content.state).unwrap()).to_string());
        Self::of_state(document, fence, state)
    }

    /// Creates a document whose state was stored before.
    pub(crate) fn of_state(mut document: DocumentOf<F>, fence: u64, state: u64) -> Self {
        document.content.fence = 0;
        let outbox: Vec<&MessageId> = document.outbox.iter().map(|entry| &entry.id).collect();
        let text = serde_json::to_string(&(document.version, &document.content, outbox)).unwrap();
        Self { document: KeyedValue::new(document, &text), fence, state }
    }

    /// Returns the document as a worker loads it.
    pub(crate) fn whole(&self) -> DocumentOf<F> {
        let mut document = DocumentOf::<F>::clone(&self.document.value);
        document.content.fence = self.fence;
        document
    }
}

impl RemainingFaults {
    fn of(budget: &Budget) -> Self {
        Self {
            crashes: budget.crashes,
            expiries: budget.expiries,
            sweeps: budget.sweeps,
            timers: budget.timers,
            stale: budget.stale,
            duplicates: budget.duplicates,
            failures: budget.failures,
            delayed_grants: budget.delayed_grants,
            repeated_grants: budget.repeated_grants,
        }
    }
}

/// Removes the tokens from a state: another attempt at the same request has another token.
fn without_tokens(state: Value) -> Value {
    match state {
        Value::String(text) if Token::parse(&text).is_ok() => Value::Null,
        Value::Array(items) => items.into_iter().map(without_tokens).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, field)| (name, without_tokens(field))).collect()
        }
        other => other,
    }
}

impl Ledger {
    /// Returns the ledger item of the production code. An expired lease ends now.
    pub(crate) fn item(&self) -> Item {
        let until = |expired| if expired { NOW } else { NOW + LEASE };
        Item {
            holder: self.holder.map(|(attempt, expired)| (attempt, until(expired))),
            fence: self.fence,
            tokens: BTreeSet::clone(&self.tokens.value),
            expires_at: if self.expired { NOW } else { NOW + ITEM_LIFETIME },
        }
    }

    pub(crate) fn of(item: Item) -> Self {
        Self {
            holder: item.holder.map(|(attempt, until)| (attempt, until <= NOW)),
            fence: item.fence,
            tokens: listed(item.tokens),
            expired: item.expires_at <= NOW,
        }
    }
}

/// Creates a keyed set of tokens.
pub(crate) fn listed(tokens: BTreeSet<Token>) -> KeyedValue<BTreeSet<Token>> {
    KeyedValue::itself(tokens)
}

impl Batch {
    /// Returns the messages in order.
    pub fn iter(self) -> impl Iterator<Item = MessageId> {
        std::iter::once(self.0).chain(self.1)
    }

    pub(crate) fn distinct(self) -> impl Iterator<Item = MessageId> {
        std::iter::once(self.0).chain(self.1.filter(|second| *second != self.0))
    }

    pub(crate) fn contains(self, id: MessageId) -> bool {
        self.iter().any(|own| own == id)
    }

    pub(crate) fn count(self, id: MessageId) -> u8 {
        self.iter().map(|own| u8::from(own == id)).sum()
    }
}

impl From<plan::TokenDemand> for TokenDemand {
    fn from(need: plan::TokenDemand) -> Self {
        Self { tokens: need.tokens, room: need.capacity }
    }
}

impl<S: Saga> QueuedMessage<Of<S>> {
    /// Creates a message that was not received yet.
    pub(crate) fn new(message: Message, partition: PartitionKey, copies: u8) -> Self {
        assert_eq!(message.partition, partition, "it belongs to another partition: {message:?}");
        assert!(message.token.is_some(), "the runner refuses messages without a token: {message:?}");
        let event = message.read::<S::Event>().unwrap();
        let text = message.encode().unwrap();
        let incoming = KeyedValue::new(IncomingEvent { message, event }, &text);
        Self { incoming, acknowledged: false, dead: false, copies }
    }
}

impl HeldClaim {
    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::Listed(BTreeSet::clone(&self.tokens.value))
    }

    pub(crate) fn minted(&self, partition: PartitionKey) -> Vec<Token> {
        admission::mint(partition, &self.attempt, self.minted)
    }
}

impl<F: Family> Phase<F> {
    /// Returns the attempt that holds or held the partition.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        self.claimed().map(|claimed| claimed.attempt)
    }

    /// Returns the result of the claim while the partition is held.
    pub(crate) fn claimed(&self) -> Option<&HeldClaim> {
        match self {
            Self::Idle | Self::Loaded(..) | Self::Again(..) | Self::Released(..) => None,
            Self::Claimed(_, claimed)
            | Self::Decided(_, claimed, _)
            | Self::Granted(_, claimed, _)
            | Self::Conflicted(_, claimed)
            | Self::Refused(_, claimed)
            | Self::Short(_, claimed, _)
            | Self::Stored(_, claimed, _)
            | Self::Dispatched(_, claimed, _)
            | Self::Cleared(_, claimed, _) => Some(claimed),
        }
    }

    /// Returns the messages in progress.
    pub(crate) fn batch(&self) -> Option<Batch> {
        match self {
            Self::Idle => None,
            Self::Loaded(batch, ..)
            | Self::Claimed(batch, ..)
            | Self::Decided(batch, ..)
            | Self::Granted(batch, ..)
            | Self::Conflicted(batch, ..)
            | Self::Refused(batch, ..)
            | Self::Short(batch, ..)
            | Self::Again(batch, ..)
            | Self::Stored(batch, ..)
            | Self::Cleared(batch, ..)
            | Self::Dispatched(batch, ..)
            | Self::Released(batch, ..) => Some(*batch),
        }
    }
}
