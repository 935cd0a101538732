//! The state of the whole system, and what can happen next.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use contracts::{AttemptId, FileId, Message, MessageId, Token};
use dedup::ledger::Item;
use dedup::{Tokens, ledger};
use outbox::Entry;
use stateright::{Model, Property};
use worker::plan::Plan;
use worker::{Content, Document};

use crate::inputs::{self, NOW};
use crate::properties;

/// How much may go wrong.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget {
    /// Whether the search is announced too, or known from its files alone.
    pub(crate) announced: bool,
    /// Crashes of a worker, at any step.
    pub(crate) crashes: u8,
    /// Leases that run out while their holder still works.
    pub(crate) expiries: u8,
    /// Deliveries of each message after it was acknowledged.
    pub(crate) copies: u8,
    /// Sweeps of the outbox that take over claims.
    pub(crate) sweeps: u8,
    /// Whether the upload timeout may fire.
    pub(crate) timeouts: u8,
}

/// The protocol as a model.
pub(crate) struct Protocol {
    pub(crate) budget: Budget,
}

/// Anything that is compared and hashed by a key that stands for it.
#[derive(Clone)]
pub(crate) struct Keyed<T> {
    pub(crate) value: Arc<T>,
    key: u64,
}

impl<T> Keyed<T> {
    pub(crate) fn new(value: T, standing_for_it: &impl Hash) -> Self {
        let mut hasher = std::hash::DefaultHasher::new();
        standing_for_it.hash(&mut hasher);
        Self { value: Arc::new(value), key: hasher.finish() }
    }
}

impl<T> Hash for Keyed<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key.hash(state);
    }
}

impl<T> PartialEq for Keyed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Keyed<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.value.fmt(f)
    }
}

/// The stored document; its fence apart, so that states which differ only in how often somebody claimed can be made
/// alike.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Stored {
    pub(crate) document: Keyed<Document>,
    pub(crate) fence: u64,
}

impl Stored {
    pub(crate) fn new(mut document: Document, fence: u64) -> Self {
        document.content.fence = 0;
        let outbox: Vec<&MessageId> = document.outbox.iter().map(|entry| &entry.id).collect();
        let text = serde_json::to_string(&(document.version, &document.content, outbox)).unwrap();
        Self { document: Keyed::new(document, &text), fence }
    }

    /// As a worker loads it.
    pub(crate) fn whole(&self) -> Document {
        let mut document = Document::clone(&self.document.value);
        document.content.fence = self.fence;
        document
    }
}

/// Everything there is.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct System {
    pub(crate) ledger: Ledger,
    pub(crate) document: Option<Stored>,
    /// The document was removed after its retention.
    pub(crate) expired: bool,
    /// The saga queue: every message that was ever sent to it.
    pub(crate) queue: BTreeMap<MessageId, Queued>,
    pub(crate) workers: Vec<Phase>,
    pub(crate) sweeper: Option<Vec<MessageId>>,
    pub(crate) crashes: u8,
    pub(crate) expiries: u8,
    pub(crate) sweeps: u8,
    pub(crate) timeouts: u8,
    pub(crate) seen: Seen,
}

/// The ledger item, in a form that can be hashed.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Ledger {
    pub(crate) holder: Option<(AttemptId, bool)>,
    pub(crate) fence: u64,
    pub(crate) tokens: BTreeSet<Token>,
}

impl Ledger {
    /// As the shipped code knows it: a lease that has run out ends now.
    pub(crate) fn item(&self) -> Item {
        let until = |expired| if expired { NOW } else { NOW + jiff::SignedDuration::from_secs(30) };
        Item {
            holder: self.holder.map(|(attempt, expired)| (attempt, until(expired))),
            fence: self.fence,
            tokens: self.tokens.clone(),
            expires_at: NOW + ledger::ITEM_LIFETIME,
        }
    }

    pub(crate) fn of(item: Item) -> Self {
        Self {
            holder: item.holder.map(|(attempt, until)| (attempt, until <= NOW)),
            fence: item.fence,
            tokens: item.tokens,
        }
    }
}

/// A message in the queue.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Queued {
    pub(crate) message: Keyed<Message>,
    pub(crate) acknowledged: bool,
    pub(crate) copies: u8,
}

/// Where a worker is with its message.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) enum Phase {
    Idle,
    /// The document was loaded before the claim was answered.
    Loaded(MessageId, Option<Stored>),
    /// The claim was granted.
    Claimed(MessageId, Claimed),
    /// Both are here, and it is decided what to do.
    Decided(MessageId, Claimed, Keyed<Plan>),
    /// Another worker stored something in between.
    Conflicted(MessageId, Claimed),
    /// The document is stored, or need not be.
    Stored(MessageId, Claimed, Keyed<Plan>),
    /// The outbox was performed.
    Dispatched(MessageId, Claimed, Keyed<Plan>),
    /// The partition was given back, if it still was this worker's.
    Released(MessageId, Keyed<Plan>, bool),
    /// The outbox was cleared, but the partition not given back yet.
    Cleared(MessageId, Claimed, Keyed<Plan>),
}

/// What a claim was answered.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(crate) struct Claimed {
    pub(crate) attempt: AttemptId,
    pub(crate) fence: u64,
    pub(crate) tokens: BTreeSet<Token>,
    pub(crate) minted: Vec<Token>,
}

impl Claimed {
    pub(crate) fn tokens(&self) -> Tokens {
        Tokens::Listed(self.tokens.clone())
    }
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
    /// The distinct parse commands for each file.
    pub(crate) commands: BTreeMap<FileId, BTreeSet<MessageId>>,
    /// Messages about which something was decided that holds.
    pub(crate) decided: BTreeSet<MessageId>,
    /// A message was dropped as a duplicate about which nothing had been decided.
    pub(crate) lost: bool,
}

/// One step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Action {
    /// A worker receives a message and loads the document first.
    Load(usize, MessageId),
    /// A worker receives a message and claims first.
    Claim(usize, MessageId),
    /// A worker takes its next step.
    Step(usize),
    /// A worker clears the outbox before it gives the partition back: the two run side by side.
    ClearFirst(usize),
    Crash(usize),
    ExpireLease,
    /// The upload timeout fires.
    FireTimeout,
    /// The sweeper sends what is due, whoever claimed it.
    Sweep,
    /// The sweeper settles what it sent.
    SettleSweep,
    /// The retention of an ended search has passed.
    ExpireDocument,
}

impl Model for Protocol {
    type State = System;
    type Action = Action;

    fn init_states(&self) -> Vec<System> {
        let inputs = inputs::messages(self.budget.announced);
        let tokens = inputs.clone().into_iter().filter_map(|message| message.token);
        let queue =
            inputs.clone().into_iter().map(|message| (message.id, queued(message, self.budget.copies)));
        vec![System {
            ledger: Ledger { holder: None, fence: 0, tokens: tokens.collect() },
            document: None,
            expired: false,
            queue: queue.collect(),
            workers: vec![Phase::Idle; 2],
            sweeper: None,
            crashes: self.budget.crashes,
            expiries: self.budget.expiries,
            sweeps: self.budget.sweeps,
            timeouts: self.budget.timeouts,
            seen: Seen::default(),
        }]
    }

    fn actions(&self, state: &System, actions: &mut Vec<Action>) {
        state.worker_actions(actions);
        state.other_actions(actions);
    }

    fn next_state(&self, state: &System, action: Action) -> Option<System> {
        let mut next = state.clone();
        let changed = next.apply(action, &self.budget);
        next.normalise();
        changed.then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

/// A message that nobody has received yet.
pub(crate) fn queued(message: Message, copies: u8) -> Queued {
    let text = message.encode().unwrap();
    Queued { message: Keyed::new(message, &text), acknowledged: false, copies }
}

impl System {
    fn worker_actions(&self, actions: &mut Vec<Action>) {
        for (worker, phase) in self.workers.iter().enumerate() {
            if *phase != Phase::Idle {
                actions.push(Action::Step(worker));
                if matches!(phase, Phase::Dispatched(..)) {
                    actions.push(Action::ClearFirst(worker));
                }
                if self.crashes > 0 {
                    actions.push(Action::Crash(worker));
                }
                continue;
            }
            // Idle workers are alike: only the first of them needs to be looked at.
            if self.workers[..worker].contains(&Phase::Idle) {
                continue;
            }
            for (id, queued) in &self.queue {
                // One copy at a time is in flight, unless it is a duplicate.
                let in_flight = self.workers.iter().filter(|phase| phase.message() == Some(*id)).count();
                let available = usize::from(!queued.acknowledged) + usize::from(queued.copies);
                if in_flight < available {
                    actions.push(Action::Load(worker, *id));
                    actions.push(Action::Claim(worker, *id));
                }
            }
        }
    }

    fn other_actions(&self, actions: &mut Vec<Action>) {
        // The lease of a crashed worker runs out for certain.
        let may_expire = self.expiries > 0 || !self.holder_is_at_work();
        if may_expire && matches!(self.ledger.holder, Some((_, false))) {
            actions.push(Action::ExpireLease);
        }
        if self.timeouts > 0 && self.timeout().is_some() {
            actions.push(Action::FireTimeout);
        }
        // When nobody works, time passes: leases run out for free, and stuck claims are taken over.
        let at_rest = self.workers.iter().all(|phase| *phase == Phase::Idle);
        if self.sweeper.is_some() {
            actions.push(Action::SettleSweep);
        } else if !self.due().is_empty() && (self.sweeps > 0 || at_rest) {
            actions.push(Action::Sweep);
        }
        let quiet = self.sweeper.is_none() && self.due().is_empty();
        // The retention is longer than the time a message that was not acknowledged is kept.
        let delivered = self.queue.values().all(|queued| queued.acknowledged);
        if at_rest && quiet && delivered && self.has_ended() {
            actions.push(Action::ExpireDocument);
        }
    }

    /// Entries of the outbox that are due.
    pub(crate) fn due(&self) -> Vec<&Entry> {
        let outbox = self.document.iter().flat_map(|stored| &stored.document.value.outbox);
        outbox.filter(|entry| entry.is_due(NOW)).collect()
    }

    /// The timeout that is running.
    pub(crate) fn timeout(&self) -> Option<&Entry> {
        let mut outbox = self.document.iter().flat_map(|stored| &stored.document.value.outbox);
        outbox.find(|entry| !entry.is_due(NOW))
    }

    /// Whether the stored search is over.
    pub(crate) fn has_ended(&self) -> bool {
        self.content().is_some_and(|content| content.state.completed_at().is_some())
    }

    /// The stored content.
    pub(crate) fn content(&self) -> Option<&Content> {
        self.document.as_ref().map(|stored| &stored.document.value.content)
    }
}

impl Phase {
    /// The attempt that holds, or held, the partition.
    pub(crate) fn attempt(&self) -> Option<AttemptId> {
        match self {
            Self::Idle | Self::Loaded(..) | Self::Released(..) => None,
            Self::Claimed(_, claimed)
            | Self::Decided(_, claimed, _)
            | Self::Conflicted(_, claimed)
            | Self::Stored(_, claimed, _)
            | Self::Dispatched(_, claimed, _)
            | Self::Cleared(_, claimed, _) => Some(claimed.attempt),
        }
    }

    /// The message that is worked on.
    pub(crate) fn message(&self) -> Option<MessageId> {
        match self {
            Self::Idle => None,
            Self::Loaded(id, ..)
            | Self::Claimed(id, ..)
            | Self::Decided(id, ..)
            | Self::Conflicted(id, ..)
            | Self::Stored(id, ..)
            | Self::Cleared(id, ..)
            | Self::Dispatched(id, ..)
            | Self::Released(id, ..) => Some(*id),
        }
    }
}

impl System {
    /// Makes alike what differs in nothing that matters: workers are interchangeable, and of fences only the order
    /// counts.
    fn normalise(&mut self) {
        let key = |phase: &Phase| {
            let mut hasher = std::hash::DefaultHasher::new();
            phase.hash(&mut hasher);
            hasher.finish()
        };
        let mut fences: Vec<u64> = self.fences().map(|fence| *fence).collect();
        fences.sort_unstable();
        fences.dedup();
        for fence in self.fences() {
            *fence = fences.iter().position(|known| known == fence).map_or(0, |rank| rank as u64);
        }
        self.workers.sort_by_cached_key(key);
    }

    /// Every fence that anybody still knows of.
    fn fences(&mut self) -> impl Iterator<Item = &mut u64> {
        let stored = self.document.iter_mut().map(|stored| &mut stored.fence);
        stored.chain([&mut self.ledger.fence]).chain(self.workers.iter_mut().filter_map(Phase::fence_mut))
    }

    /// Every attempt that anybody still knows of, so that its number is not given to another one.
    pub(crate) fn known_attempts(&self) -> BTreeSet<String> {
        let mut tokens: BTreeSet<&Token> = self.ledger.tokens.iter().collect();
        tokens.extend(self.queue.values().filter_map(|queued| queued.message.value.token.as_ref()));
        let mut attempts = BTreeSet::new();
        let mut contents: Vec<&Content> = self.content().into_iter().collect();
        for phase in &self.workers {
            attempts.extend(phase.attempt().map(|attempt| attempt.to_string()));
            contents.extend(phase.contents());
        }
        for content in contents {
            attempts.insert(content.attempt.to_string());
            tokens.extend(content.expected.iter().map(|expected| &expected.token));
            tokens.extend(content.processed.iter().filter_map(|processed| processed.token.as_ref()));
        }
        attempts.extend(self.ledger.holder.map(|(attempt, _)| attempt.to_string()));
        attempts.extend(
            tokens.into_iter().filter_map(|token| Some(token.as_str().split(':').nth(2)?.to_owned())),
        );
        attempts
    }
}

impl Phase {
    fn fence_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Idle | Self::Released(..) => None,
            Self::Loaded(_, stored) => stored.as_mut().map(|stored| &mut stored.fence),
            Self::Claimed(_, claimed)
            | Self::Decided(_, claimed, _)
            | Self::Conflicted(_, claimed)
            | Self::Stored(_, claimed, _)
            | Self::Dispatched(_, claimed, _)
            | Self::Cleared(_, claimed, _) => Some(&mut claimed.fence),
        }
    }

    fn contents(&self) -> Option<&Content> {
        match self {
            Self::Loaded(_, stored) => stored.as_ref().map(|stored| &stored.document.value.content),
            Self::Decided(_, _, plan) => plan.value.persist.as_ref().map(|persist| &persist.content),
            _ => None,
        }
    }
}
