//! The state of the whole system.

use std::collections::{BTreeMap, BTreeSet};

use dedup::Tokens;
use dedup::ledger::{ITEM_LIFETIME, Item};
use jiff::SignedDuration;
use messages::{AttemptId, Message, MessageId, Token};
use outbox::Entry;
use saga::plan::{self, IncomingEvent, admission};
use saga::{Content, Saga};

use crate::keyed::{DocumentOf, Family, IncomingOf, Keyed, Of, PlanOf, key};
use crate::protocol::Protocol;
use crate::sent::{NOW, partition};

/// How long a lease lasts, if no step ends it.
pub(crate) const LEASE: SignedDuration = SignedDuration::from_secs(30);

/// The system around one saga.
pub type System<S> = Everything<Of<S>>;

/// Everything there is.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Everything<F: Family> {
    pub(crate) ledger: Ledger,
    pub(crate) document: Option<Stored<F>>,
    /// The document before the last write, while a load may still be answered with it.
    pub(crate) earlier: Option<Option<Stored<F>>>,
    /// The document was removed after its retention.
    pub(crate) expired: bool,
    /// The saga queue: every message that was ever sent to it.
    pub(crate) queue: Keyed<BTreeMap<MessageId, Queued<F>>>,
    pub(crate) workers: [Phase<F>; 2],
    pub(crate) sweeper: Option<Vec<MessageId>>,
    pub(crate) crashes: u8,
    pub(crate) expiries: u8,
    pub(crate) sweeps: u8,
    pub(crate) timers: u8,
    pub(crate) stale: u8,
    pub(crate) duplicates: u8,
    /// Whether messages may come together.
    pub(crate) groups: bool,
    pub(crate) failures: u8,
    pub(crate) seen: Keyed<Seen>,
}

/// The stored document; its fence apart, so that states which differ only in how often somebody claimed can be made
/// alike.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Stored<F: Family> {
    pub(crate) document: Keyed<DocumentOf<F>>,
    pub(crate) fence: u64,
    /// Stands for the state alone, whoever wrote it and under which tokens.
    pub(crate) state: u64,
}

/// The ledger item, in a form that can be hashed.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Ledger {
    pub(crate) holder: Option<(AttemptId, bool)>,
    pub(crate) fence: u64,
    pub(crate) tokens: Keyed<BTreeSet<Token>>,
    /// Its time is over. The store may delete it late, so it is there still.
    pub(crate) expired: bool,
}

/// The messages that a worker has received together: one, or two in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch(pub(crate) MessageId, pub(crate) Option<MessageId>);

/// A message in the queue.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Queued<F: Family> {
    pub(crate) incoming: Keyed<IncomingOf<F>>,
    pub(crate) acknowledged: bool,
    pub(crate) copies: u8,
}

/// Where a worker is with its messages.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) enum Phase<F: Family> {
    Idle,
    /// The document was loaded before the claim was answered. The tokens it needs, if an attempt before it had too few.
    Loaded(Batch, Option<Stored<F>>, Option<Need>),
    /// The claim was granted, and the latest document is to be read.
    Claimed(Batch, Claimed),
    /// Both are here, and it is decided what to do.
    Decided(Batch, Claimed, Keyed<PlanOf<F>>),
    /// Another worker stored something in between.
    Conflicted(Batch, Claimed),
    /// Nothing could be decided, because it takes more tokens than there are.
    Short(Batch, Claimed, Need),
    /// After that the partition was given back, to be claimed again with enough tokens.
    Again(Batch, Need),
    /// The document is stored, or need not be.
    Stored(Batch, Claimed, Keyed<PlanOf<F>>),
    /// The outbox was performed.
    Dispatched(Batch, Claimed, Keyed<PlanOf<F>>),
    /// The partition was given back, if it still was this worker's.
    Released(Batch, Keyed<PlanOf<F>>, bool),
    /// The outbox was cleared, but the partition not given back yet.
    Cleared(Batch, Claimed, Keyed<PlanOf<F>>),
}

/// What a claim was answered.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Claimed {
    pub(crate) attempt: AttemptId,
    pub(crate) fence: u64,
    pub(crate) tokens: Keyed<BTreeSet<Token>>,
    /// How many it asked for. Their names follow from the attempt's.
    pub(crate) minted: usize,
}

/// The tokens that an attempt needs, and how many may be there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Need {
    pub(crate) tokens: usize,
    pub(crate) room: usize,
}

/// What an observer outside has seen.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(crate) struct Seen {
    /// How often each message changed the state.
    pub(crate) changes: BTreeMap<MessageId, u8>,
    /// Every effect that was ever stored.
    pub(crate) stored: BTreeSet<MessageId>,
    /// Something was sent that was never stored.
    pub(crate) unstored: bool,
    /// The different messages that asked for each thing; what they say stands for it.
    pub(crate) asked: BTreeMap<u64, BTreeSet<MessageId>>,
    /// Messages about which something was decided that holds.
    pub(crate) decided: BTreeSet<MessageId>,
    /// A message was dropped about which nothing had been decided.
    pub(crate) lost: bool,
}

impl<S: Saga> System<S> {
    /// Nothing has happened but that the inputs were sent.
    pub(crate) fn initial(protocol: &Protocol<S>) -> Self {
        let Protocol { inputs, budget, .. } = protocol;
        let queue = inputs.iter().map(|message| (message.id, Queued::new(message.clone(), budget.copies)));
        Self {
            ledger: Ledger {
                holder: None,
                fence: 0,
                tokens: listed(inputs.iter().filter_map(|message| message.token.clone()).collect()),
                expired: false,
            },
            document: None,
            earlier: None,
            expired: false,
            queue: Keyed::itself(queue.collect()),
            workers: [Phase::Idle, Phase::Idle],
            sweeper: None,
            crashes: budget.crashes,
            expiries: budget.expiries,
            sweeps: budget.sweeps,
            timers: budget.timers,
            stale: budget.stale,
            duplicates: budget.duplicates,
            groups: budget.groups,
            failures: budget.failures,
            seen: Keyed::itself(Seen::default()),
        }
    }

    /// The stored content.
    pub fn content(&self) -> Option<&Content<S::State>> {
        self.document.as_ref().map(|stored| &stored.document.value.content)
    }

    /// The stored state; none before the first and after the retention of the last.
    pub fn state(&self) -> Option<&S::State> {
        self.content().map(|content| &content.state)
    }

    /// Whether the partition has ended, and its document is still there.
    pub fn has_ended(&self) -> bool {
        self.content().is_some_and(|content| content.ended_at.is_some())
    }

    /// Whether the document of an ended partition was removed after its retention.
    pub fn has_expired(&self) -> bool {
        self.expired
    }

    /// Nobody works and nothing is left to be delivered or sent. Timers may be running.
    pub fn is_at_rest(&self) -> bool {
        self.is_idle()
            && self.sweeper.is_none()
            && self.queue.value.values().all(|queued| queued.acknowledged)
            && self.due().next().is_none()
    }

    /// How many different requests were sent so far.
    pub fn requests(&self) -> usize {
        self.seen.value.asked.values().map(BTreeSet::len).sum()
    }

    /// Whether a worker has minted too few tokens for what it has to do, and claims again with enough.
    pub fn claims_again(&self) -> bool {
        self.workers.iter().any(|phase| matches!(phase, Phase::Again(..)))
    }

    /// Whether a worker makes room for tokens, by storing the document as it is.
    pub fn makes_room(&self) -> bool {
        let again = |phase: &Phase<Of<S>>| matches!(phase, Phase::Dispatched(_, _, plan) if plan.value.retry_with.is_some());
        self.workers.iter().any(again)
    }

    /// How many workers have a message just now.
    pub(crate) fn in_flight(&self, id: MessageId) -> usize {
        self.workers.iter().filter_map(Phase::batch).filter(|batch| batch.contains(id)).count()
    }

    /// How many copies of a message it takes for a worker to receive this: all but the first delivery of one that was
    /// not acknowledged.
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

    /// Entries of the outbox that are due.
    pub(crate) fn due(&self) -> impl Iterator<Item = &Entry> {
        self.outbox().filter(|entry| entry.is_due(NOW))
    }

    /// The timers that are running.
    pub(crate) fn running(&self) -> impl Iterator<Item = &Entry> {
        self.outbox().filter(|entry| !entry.is_due(NOW))
    }

    /// Whether the partition's holder still works on something.
    pub(crate) fn holder_is_at_work(&self) -> bool {
        let Some((holder, _)) = self.ledger.holder else { return false };
        self.workers.iter().any(|phase| phase.attempt() == Some(holder))
    }
}

impl<F: Family> Stored<F> {
    pub(crate) fn new(document: DocumentOf<F>, fence: u64) -> Self {
        let state = key(&serde_json::to_string(&document.content.state).unwrap());
        Self::of_state(document, fence, state)
    }

    /// A document whose state was stored before.
    pub(crate) fn of_state(mut document: DocumentOf<F>, fence: u64, state: u64) -> Self {
        document.content.fence = 0;
        let outbox: Vec<&MessageId> = document.outbox.iter().map(|entry| &entry.id).collect();
        let text = serde_json::to_string(&(document.version, &document.content, outbox)).unwrap();
        Self { document: Keyed::new(document, &text), fence, state }
    }

    /// As a worker loads it.
    pub(crate) fn whole(&self) -> DocumentOf<F> {
        let mut document = DocumentOf::<F>::clone(&self.document.value);
        document.content.fence = self.fence;
        document
    }
}

impl Ledger {
    /// As the shipped code knows it: what has run out ends now.
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

/// Tokens, to be passed on and compared as they are.
pub(crate) fn listed(tokens: BTreeSet<Token>) -> Keyed<BTreeSet<Token>> {
    Keyed::itself(tokens)
}

impl Batch {
    /// The messages, in their order.
    pub fn iter(self) -> impl Iterator<Item = MessageId> {
        std::iter::once(self.0).chain(self.1)
    }

    /// The messages, each of them once.
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

impl From<plan::TokenDemand> for Need {
    fn from(need: plan::TokenDemand) -> Self {
        Self { tokens: need.tokens, room: need.capacity }
    }
}

impl<S: Saga> Queued<Of<S>> {
    /// A message that nobody has received yet.
    pub(crate) fn new(message: Message, copies: u8) -> Self {
        assert_eq!(message.partition, partition(), "there is one partition: {message:?}");
        assert!(message.token.is_some(), "the runner refuses messages without a token: {message:?}");
        let event = message.read::<S::Event>().unwrap();
        let text = message.encode().unwrap();
        let incoming = Keyed::new(IncomingEvent { message, event }, &text);
        Self { incoming, acknowledged: false, copies }
    }
}

impl Claimed {
    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::Listed(BTreeSet::clone(&self.tokens.value))
    }

    pub(crate) fn minted(&self) -> Vec<Token> {
        admission::mint(partition(), &self.attempt, self.minted)
    }
}

impl<F: Family> Phase<F> {
    /// The attempt that holds, or held, the partition.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        self.claimed().map(|claimed| claimed.attempt)
    }

    /// What the claim was answered, while the partition is not given back.
    pub(crate) fn claimed(&self) -> Option<&Claimed> {
        match self {
            Self::Idle | Self::Loaded(..) | Self::Again(..) | Self::Released(..) => None,
            Self::Claimed(_, claimed)
            | Self::Decided(_, claimed, _)
            | Self::Conflicted(_, claimed)
            | Self::Short(_, claimed, _)
            | Self::Stored(_, claimed, _)
            | Self::Dispatched(_, claimed, _)
            | Self::Cleared(_, claimed, _) => Some(claimed),
        }
    }

    /// The messages that are worked on.
    pub(crate) fn batch(&self) -> Option<Batch> {
        match self {
            Self::Idle => None,
            Self::Loaded(batch, ..)
            | Self::Claimed(batch, ..)
            | Self::Decided(batch, ..)
            | Self::Conflicted(batch, ..)
            | Self::Short(batch, ..)
            | Self::Again(batch, ..)
            | Self::Stored(batch, ..)
            | Self::Cleared(batch, ..)
            | Self::Dispatched(batch, ..)
            | Self::Released(batch, ..) => Some(*batch),
        }
    }
}
