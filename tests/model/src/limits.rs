//! Executions without faults: one worker that processes the messages one by one, in every order, with every timer that
//! may fire and every request that may fail permanently. With faults, no other results and no larger ones are allowed.

use std::collections::{BTreeMap, BTreeSet};

use saga::Saga;

use crate::actions::Action;
use crate::keyed::{Of, key};
use crate::protocol::Protocol;
use crate::sent::partition;
use crate::steps::Outside;
use crate::system::{Batch, Phase, QueuedMessage, System};

/// The maximum sizes, and the possible results.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Messages that were sent to the saga.
    pub(crate) messages: usize,
    /// Tokens in the ledger.
    pub(crate) tokens: usize,
    /// Tokens that a document expects.
    pub(crate) expected: usize,
    /// Effects that were stored.
    pub(crate) stored: usize,
    /// Tokens that one attempt minted.
    pub(crate) minted: usize,
    /// Tokens that one attempt of the other saga granted.
    pub(crate) granted: usize,
    /// The number of requests by content.
    pub(crate) asked: BTreeMap<u64, usize>,
    /// The states that were stored.
    pub(crate) states: BTreeSet<u64>,
    /// The states in which no work remained; `None` stands for no document.
    pub(crate) rests: BTreeSet<Option<u64>>,
}

pub(crate) fn of<S: Saga>(protocol: &Protocol<S>) -> Limits {
    let mut limits = Limits::default();
    let mut known = BTreeSet::new();
    let mut open = vec![System::initial(protocol, partition(), None)];
    while let Some(system) = open.pop() {
        if !known.insert(key(&system)) {
            continue;
        }
        limits.include(&system);
        for action in without_faults(&system) {
            let mut next = system.clone();
            let changed = next.apply(action, protocol, &mut Outside::default());
            assert!(changed, "nothing is in the way of {action:?}");
            next.normalise();
            open.push(next);
        }
    }
    limits
}

/// Returns the actions of a single worker.
fn without_faults<S: Saga>(system: &System<S>) -> Vec<Action> {
    continued(system).unwrap_or_else(|| begun(system))
}

/// Returns the actions of the worker that is not idle; `None` if all workers are idle.
pub(crate) fn continued<S: Saga>(system: &System<S>) -> Option<Vec<Action>> {
    let worker = system.workers.iter().position(|phase| *phase != Phase::Idle)?;
    let given_up = |action: &Action| matches!(action, Action::GiveUp(..));
    let given_up = system.actions(None).into_iter().filter(given_up);
    Some(std::iter::once(Action::Step(worker)).chain(given_up).collect())
}

/// Returns the actions of an idle worker. A dead-lettered message may be delivered again.
pub(crate) fn begun<S: Saga>(system: &System<S>) -> Vec<Action> {
    let may_arrive =
        |queued: &QueuedMessage<Of<S>>| !queued.acknowledged || (queued.dead && queued.copies > 0);
    let waiting = system.queue.value.iter().filter(|(_, queued)| may_arrive(queued));
    let received = waiting.map(|(id, _)| Action::Load(0, Batch(*id, None)));
    let timers = system.running().filter(|_| system.left.timers > 0);
    let timers = timers.map(|entry| Action::FireTimer(entry.id));
    received.chain(timers).chain(system.dead_letters()).collect()
}

impl Limits {
    pub(crate) fn include<S: Saga>(&mut self, system: &System<S>) {
        let minted = system.workers.iter().filter_map(Phase::claimed).map(|claimed| claimed.minted);
        self.minted = minted.fold(self.minted, usize::max);
        self.tokens = self.tokens.max(system.ledger.tokens.value.len());
        self.messages = self.messages.max(system.queue.value.len());
        self.expected = self.expected.max(system.content().map_or(0, |content| content.expected.len()));
        self.stored = self.stored.max(system.seen.value.stored.len());
        for (said, messages) in &system.seen.value.asked {
            let max = self.asked.entry(*said).or_default();
            *max = messages.len().max(*max);
        }
        let state = system.document.as_ref().map(|stored| stored.state);
        self.states.extend(state);
        if system.is_at_rest() {
            self.rests.insert(state);
        }
    }
}
