//! Two sagas that exchange messages: an event, a request with its reply, or a child and its result.
//!
//! Each saga is a [`System`] of its own, with two workers, a sweeper, a document and a ledger item. The steps of both
//! interleave, and they share the budget of faults. The following messages and calls pass between them:
//! - tokens: a worker that has decided grants those of its events to the other saga, before it stores them;
//! - messages: a sent event is in the other saga's queue;
//! - reports: a request that is dead-lettered is reported to the saga that waits for its reply.
//!
//! In addition to the invariants of each saga:
//! - no token is left once its message is acknowledged, so a duplicate is never admitted;
//! - no saga waits for a message that is never sent: a saga that is at rest has ended, or a timer is running, or it
//!   expects no reply;
//! - both come to rest only in states in which they rest without faults, at the same time.
//!
//! A grant may arrive after its worker has abandoned the attempt ([`Budget::delayed_grants`]), and it may arrive a second
//! time ([`Budget::repeated_grants`]). The ledger refuses the copy if the partition was claimed in between.
//!
//! # What the proof assumes
//! - There is one instance of each saga, and all grants of an attempt arrive in one step.
//! - A dead-lettered request is reported at once. The report is a message, which may be late or come twice.
//! - Retentions pass only after the last message, timer and call of both sagas.
//! - Attempts whose tokens may be in the other partition have different numbers.

use std::collections::BTreeSet;
use std::time::Instant;

use messages::{Message, PartitionKey, Token};
use saga::Saga;

use crate::actions::Action;
use crate::check::{Check, Explore};
use crate::defects::Defect;
use crate::keyed::{Family, Of, key};
use crate::limits::{self, Limits};
use crate::properties;
use crate::property::{Kind, Property, StateSpace};
use crate::protocol::{Budget, Protocol};
use crate::run::{MAX_STATES, run};
use crate::steps::Outside;
use crate::system::{System, SystemState};

/// One of two sagas.
#[derive(Debug, Clone)]
pub struct Member<S: Saga> {
    /// The saga.
    pub saga: S,
    /// The partition of the saga's instance.
    pub partition: PartitionKey,
    /// Messages from entry points, as created by [`input_of`](crate::input_of).
    pub inputs: Vec<Message>,
    /// Returns the replies in the form of [`Protocol::replies`]. For a request to the other saga, only the report is
    /// used. That saga may send the report to this one if the request is dead-lettered.
    pub replies: fn(&Message) -> Vec<Message>,
}

/// Two sagas that exchange messages, and a budget of faults that they share.
#[derive(Debug, Clone)]
pub struct Pair<A: Saga, B: Saga> {
    /// One saga.
    pub first: Member<A>,
    /// The other saga.
    pub second: Member<B>,
    /// The budget of faults.
    pub budget: Budget,
}

/// Two sagas and the system around them.
pub type PairSystem<A, B> = PairState<Of<A>, Of<B>>;

/// The complete state of both.
#[derive(Debug, Clone, Hash)]
pub struct PairState<F: Family, G: Family> {
    first: SystemState<F>,
    second: SystemState<G>,
    /// The grants that have not arrived yet, and are never repeated.
    grants: BTreeSet<(PartitionKey, Token)>,
    /// The copies of grants that have not arrived yet. The ledger refuses a copy once the partition was claimed.
    copies: BTreeSet<(PartitionKey, Token)>,
}

/// A check of two sagas.
pub struct PairCheck<A: Saga, B: Saga> {
    first: Check<A>,
    second: Check<B>,
    /// The states in which both are at rest without faults.
    rests: BTreeSet<(Option<u64>, Option<u64>)>,
    properties: Vec<Property<Self>>,
}

/// A step of one of the sagas, or the arrival of a grant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum PairAction {
    First(Action),
    Second(Action),
    Arrive(usize),
}

impl<A: Saga, B: Saga> StateSpace for PairCheck<A, B> {
    type System = PairSystem<A, B>;
}

/// Visits every state that two sagas can reach and prints their number; see [`check()`](crate::check()).
///
/// # Panics
/// Panics if a property does not hold, with the fewest steps that lead there, or if there are more than [`MAX_STATES`]
/// states.
pub fn check<A: Saga, B: Saga>(name: &str, pair: Pair<A, B>, own: Vec<Property<PairCheck<A, B>>>) {
    let began = Instant::now();
    let mut check = PairCheck::of(pair);
    let defect = check.budget().defect;
    check.plant(None);
    check.run_without_faults();
    check.plant(defect);
    check.properties = all().into_iter().chain(own).collect();
    run(name, &check, MAX_STATES, began);
}

/// Creates a property that must hold in every state of two sagas.
pub fn always<A: Saga, B: Saga>(
    name: &'static str,
    condition: fn(&PairCheck<A, B>, &PairSystem<A, B>) -> bool,
) -> Property<PairCheck<A, B>> {
    Property { kind: Kind::Always, name, condition: Box::new(condition) }
}

/// Creates a property that must hold in at least one state of two sagas.
pub fn sometimes<A: Saga, B: Saga>(
    name: &'static str,
    condition: fn(&PairCheck<A, B>, &PairSystem<A, B>) -> bool,
) -> Property<PairCheck<A, B>> {
    Property { kind: Kind::Sometimes, name, condition: Box::new(condition) }
}

/// Returns the properties of any two sagas.
fn all<A: Saga, B: Saga>() -> Vec<Property<PairCheck<A, B>>> {
    let (first, second) = (properties::invariants::<A>(), properties::invariants::<B>());
    let invariants = first.into_iter().zip(second).map(|(first, second)| {
        let condition = move |check: &PairCheck<A, B>, system: &PairSystem<A, B>| {
            (first.condition)(&check.first, &system.first)
                && (second.condition)(&check.second, &system.second)
        };
        Property { kind: Kind::Always, name: first.name, condition: Box::new(condition) }
    });
    let (first, second) = (properties::situations::<A>(), properties::situations::<B>());
    let situations = first.into_iter().zip(second).map(|(first, second)| {
        let condition = move |check: &PairCheck<A, B>, system: &PairSystem<A, B>| {
            (first.condition)(&check.first, &system.first)
                || (second.condition)(&check.second, &system.second)
        };
        Property { kind: Kind::Sometimes, name: first.name, condition: Box::new(condition) }
    });
    let between = [
        always("I4 no token is left once its message is acknowledged", |_, system| {
            system.first.forgets_used_tokens() && system.second.forgets_used_tokens()
        }),
        always("I7 no saga waits for a message that is never sent", |_, system| system.waits_for_sender()),
        always("I7 both sagas come to rest only where they do without faults", |check, system| {
            !system.is_at_rest() || check.may_rest(system)
        }),
        sometimes("a grant is still on its way", |check, system| {
            check.budget().delayed_grants + check.budget().repeated_grants == 0
                || system.late_grants().next().is_some()
        }),
        sometimes("a request is dead-lettered", |check, system| {
            let is_dead = system.first.has_dead_letters() || system.second.has_dead_letters();
            check.budget().failures == 0 || is_dead
        }),
    ];
    invariants.chain(situations).chain(between).collect()
}

impl<A: Saga, B: Saga> PairSystem<A, B> {
    /// The first saga.
    pub fn first(&self) -> &System<A> {
        &self.first
    }

    /// The second saga.
    pub fn second(&self) -> &System<B> {
        &self.second
    }

    /// Returns `true` if nothing remains to be delivered or sent. Timers may be running, and a grant may be on its way.
    pub fn is_at_rest(&self) -> bool {
        self.first.is_at_rest() && self.second.is_at_rest()
    }

    fn waits_for_sender(&self) -> bool {
        !self.is_at_rest() || !(self.first.waits_in_vain() || self.second.waits_in_vain())
    }

    /// Returns `true` if the lifetimes of ledger items may pass: no message or call remains that can take effect.
    /// Timers may be running.
    fn is_waiting(&self) -> bool {
        self.is_at_rest() && self.late_grants().next().is_none()
    }

    /// Returns `true` if the retentions may pass as well: no timer remains either.
    fn is_over(&self) -> bool {
        let has_timers = self.first.running().next().is_some() || self.second.running().next().is_some();
        self.is_waiting() && !has_timers
    }
}

impl<A: Saga, B: Saga> PairCheck<A, B> {
    /// The budget of faults.
    pub fn budget(&self) -> Budget {
        self.first.budget()
    }

    fn of(pair: Pair<A, B>) -> Self {
        let Pair { first, second, budget } = pair;
        let (one, other) = (first.partition, second.partition);
        Self {
            first: member(first, other, budget),
            second: member(second, one, budget),
            rests: BTreeSet::new(),
            properties: Vec::new(),
        }
    }

    fn plant(&mut self, defect: Option<Defect>) {
        self.first.protocol.budget.defect = defect;
        self.second.protocol.budget.defect = defect;
    }

    /// Runs both sagas without faults, with one worker for both.
    fn run_without_faults(&mut self) {
        let mut known = BTreeSet::new();
        let mut open = vec![self.initial()];
        while let Some(system) = open.pop() {
            if !known.insert(key(&system)) {
                continue;
            }
            self.first.limits.include(&system.first);
            self.second.limits.include(&system.second);
            self.first.limits.granted = self.first.limits.granted.max(system.second.granted_by_attempt());
            self.second.limits.granted = self.second.limits.granted.max(system.first.granted_by_attempt());
            if system.is_at_rest() {
                self.rests.insert(system.states());
            }
            for action in without_faults(&system) {
                open.push(self.after(&system, action).expect("nothing is in the way of a single worker"));
            }
        }
    }

    /// Returns `true` if both may be at rest in their states. A document whose retention has passed may have been in
    /// any state.
    fn may_rest(&self, system: &PairSystem<A, B>) -> bool {
        let (first, second) = system.states();
        self.rests.iter().any(|rest| {
            (system.first.has_expired() || rest.0 == first)
                && (system.second.has_expired() || rest.1 == second)
        })
    }

    /// Performs the effects of an action of one saga outside this saga.
    fn deliver(&self, system: &mut PairSystem<A, B>, out: Outside) {
        for (partition, token) in out.grants {
            system.grant(partition, token);
        }
        system.grants.extend(out.delayed);
        system.copies.extend(out.copies);
        for message in out.messages {
            system.receive(message, &self.first.protocol, &self.second.protocol);
        }
        for request in out.unanswered {
            let is_of_first = request.reply_partition() == system.first.partition;
            let report = match is_of_first {
                true => self.first.protocol.report(&request),
                false => self.second.protocol.report(&request),
            };
            if let Some(report) = report {
                system.receive(report, &self.first.protocol, &self.second.protocol);
            }
        }
    }
}

impl<A: Saga, B: Saga> PairSystem<A, B> {
    fn late_grants(&self) -> impl Iterator<Item = &(PartitionKey, Token)> {
        self.grants.union(&self.copies)
    }

    /// Removes the copies of grants to a partition that was claimed since the earlier state.
    fn refuse_copies(&mut self, earlier: &Self) {
        let first = self.first.ledger.fence != earlier.first.ledger.fence;
        let second = self.second.ledger.fence != earlier.second.ledger.fence;
        let (of_first, of_second) = (self.first.partition, self.second.partition);
        self.copies.retain(|(partition, _)| {
            let is_claimed = (first && *partition == of_first) || (second && *partition == of_second);
            !is_claimed
        });
    }

    fn states(&self) -> (Option<u64>, Option<u64>) {
        let first = self.first.document.as_ref().map(|stored| stored.state);
        (first, self.second.document.as_ref().map(|stored| stored.state))
    }

    fn grant(&mut self, partition: PartitionKey, token: Token) {
        match partition == self.first.partition {
            true => self.first.receive_grant(token),
            false => self.second.receive_grant(token),
        }
    }

    fn receive(&mut self, message: Message, first: &Protocol<A>, second: &Protocol<B>) {
        match message.partition == self.first.partition {
            true => self.first.receive(vec![message], first),
            false => self.second.receive(vec![message], second),
        }
    }
}

fn member<S: Saga>(member: Member<S>, peer: PartitionKey, budget: Budget) -> Check<S> {
    let Member { saga, partition, inputs, replies } = member;
    assert_ne!(partition, peer, "two sagas have two partitions");
    let protocol = Protocol { saga, inputs, replies, budget };
    Check { protocol, partition, peer: Some(peer), limits: Limits::default(), properties: Vec::new() }
}

/// Returns the actions of a single worker.
fn without_faults<A: Saga, B: Saga>(system: &PairSystem<A, B>) -> Vec<PairAction> {
    let first = limits::continued(&system.first);
    let second = limits::continued(&system.second);
    let (first, second) = match (&first, &second) {
        (None, None) => (limits::begun(&system.first), limits::begun(&system.second)),
        _ => (first.unwrap_or_default(), second.unwrap_or_default()),
    };
    first.into_iter().map(PairAction::First).chain(second.into_iter().map(PairAction::Second)).collect()
}

impl<A: Saga, B: Saga> Explore for PairCheck<A, B> {
    type Action = PairAction;

    fn initial(&self) -> PairSystem<A, B> {
        PairSystem {
            first: self.first.initial(),
            second: self.second.initial(),
            grants: BTreeSet::new(),
            copies: BTreeSet::new(),
        }
    }

    fn properties(&self) -> &[Property<Self>] {
        &self.properties
    }

    fn actions(&self, system: &PairSystem<A, B>) -> Vec<PairAction> {
        let (is_waiting, is_over) = (system.is_waiting(), system.is_over());
        let is_possible = |action: &Action| match action {
            Action::ExpireDocument => is_over,
            Action::ExpireItem => is_waiting,
            _ => true,
        };
        let first = self.first.actions(&system.first).into_iter().filter(is_possible).map(PairAction::First);
        let second =
            self.second.actions(&system.second).into_iter().filter(is_possible).map(PairAction::Second);
        first.chain(second).chain((0..system.late_grants().count()).map(PairAction::Arrive)).collect()
    }

    fn after(&self, system: &PairSystem<A, B>, action: PairAction) -> Option<PairSystem<A, B>> {
        let (mut next, mut out) = (system.clone(), Outside::default());
        let changed = match action {
            PairAction::First(action) => {
                let changed = next.first.apply(action, &self.first.protocol, &mut out);
                next.second.share(next.first.left);
                changed
            }
            PairAction::Second(action) => {
                let changed = next.second.apply(action, &self.second.protocol, &mut out);
                next.first.share(next.second.left);
                changed
            }
            PairAction::Arrive(index) => {
                let grant = next.late_grants().nth(index).cloned()?;
                next.grants.remove(&grant);
                next.copies.remove(&grant);
                out.grants.push(grant);
                true
            }
        };
        if !self.first.protocol.has(Defect::CopyOfGrantAccepted) {
            next.refuse_copies(system);
        }
        self.deliver(&mut next, out);
        next.first.normalise();
        next.second.normalise();
        changed.then_some(next)
    }

    fn is_certain(&self, system: &PairSystem<A, B>, action: PairAction) -> bool {
        match action {
            PairAction::First(action) => system.first.is_certain(action),
            PairAction::Second(action) => system.second.is_certain(action),
            PairAction::Arrive(_) => false,
        }
    }

    fn is_at_rest(&self, system: &PairSystem<A, B>) -> bool {
        system.is_at_rest()
    }

    fn describe(&self, system: &PairSystem<A, B>, action: PairAction) -> String {
        match action {
            PairAction::First(action) => format!("{}: {}", A::NAME, system.first.describe(action)),
            PairAction::Second(action) => format!("{}: {}", B::NAME, system.second.describe(action)),
            PairAction::Arrive(_) => "a grant arrives".to_owned(),
        }
    }

    fn summary(&self, system: &PairSystem<A, B>) -> String {
        let (first, second) = (system.first.summary(), system.second.summary());
        format!("{}: {first}\n    -> {}: {second}", A::NAME, B::NAME)
    }
}
