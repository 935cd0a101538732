//! What happens when nothing goes wrong: one worker, one message after the other, in every order, and with every timer
//! that may fire. Whatever goes wrong, nothing else and no more may come of it.

use std::collections::{BTreeMap, BTreeSet};

use messages::MessageId;
use saga::Saga;

use crate::actions::Action;
use crate::keyed::key;
use crate::protocol::Protocol;
use crate::system::{Phase, System};

/// The most that is there at the same time, and all that can come of it.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    /// Messages that were sent to the saga.
    pub(crate) messages: usize,
    /// Tokens that a document expects.
    pub(crate) expected: usize,
    /// Effects that were stored.
    pub(crate) stored: usize,
    /// Tokens that one attempt minted.
    pub(crate) minted: usize,
    /// How often each thing was asked for.
    pub(crate) asked: BTreeMap<u64, usize>,
    /// The states that were stored.
    pub(crate) states: BTreeSet<u64>,
    /// Those in which nothing was left to be done; none where there is no document.
    pub(crate) rests: BTreeSet<Option<u64>>,
}

/// The limits of a protocol.
pub(crate) fn of<S: Saga>(protocol: &Protocol<S>) -> Limits {
    let mut limits = Limits::default();
    let mut known = BTreeSet::new();
    let mut open = vec![System::initial(protocol)];
    while let Some(system) = open.pop() {
        if !known.insert(key(&system)) {
            continue;
        }
        limits.include(&system);
        let waiting = system.queue.iter().filter(|(_, queued)| !queued.acknowledged);
        open.extend(waiting.map(|(id, _)| limits.handle(system.clone(), *id, protocol)));
        let timers = system.running().filter(|_| system.timers > 0);
        open.extend(timers.map(|entry| after(system.clone(), Action::FireTimer(entry.id), protocol)));
    }
    limits
}

fn after<S: Saga>(mut system: System<S>, action: Action, protocol: &Protocol<S>) -> System<S> {
    assert!(system.apply(action, protocol), "nothing is in the way of {action:?}");
    system
}

impl Limits {
    /// The system after a message was handled, from the claim to the end.
    fn handle<S: Saga>(&mut self, system: System<S>, id: MessageId, protocol: &Protocol<S>) -> System<S> {
        let mut system = after(system, Action::Claim(0, id), protocol);
        while system.workers[0] != Phase::Idle {
            let minted = system.workers[0].claimed().map_or(0, |claimed| claimed.minted.len());
            self.minted = self.minted.max(minted);
            system = after(system, Action::Step(0), protocol);
        }
        system.normalise();
        system
    }

    fn include<S: Saga>(&mut self, system: &System<S>) {
        self.messages = self.messages.max(system.queue.len());
        self.expected = self.expected.max(system.content().map_or(0, |content| content.expected.len()));
        self.stored = self.stored.max(system.seen.stored.len());
        for (said, messages) in &system.seen.asked {
            let most = self.asked.entry(*said).or_default();
            *most = messages.len().max(*most);
        }
        let state = system.document.as_ref().map(|stored| stored.state);
        self.states.extend(state);
        if system.is_at_rest() {
            self.rests.insert(state);
        }
    }
}
