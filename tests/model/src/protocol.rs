//! What is checked, and checking it.

use std::time::Instant;

use messages::Message;
use saga::Saga;
use stateright::{Checker, Model, Property};

use crate::actions::Action;
use crate::limits::{self, Limits};
use crate::properties;
use crate::system::System;

/// A saga, what happens to one partition of it, and how much may go wrong.
#[derive(Debug, Clone)]
pub struct Protocol<S: Saga> {
    /// The saga.
    pub saga: S,
    /// What entry points send: all of one partition, each with its token, as [`crate::input`] makes them. There should
    /// be two at least, or two workers hardly ever meet.
    pub inputs: Vec<Message>,
    /// What handlers answer to a message that the saga sends, as [`crate::reply`] makes it; nothing to one that is for
    /// somebody outside.
    pub replies: fn(&Message) -> Vec<Message>,
    /// How much may go wrong.
    pub budget: Budget,
}

/// How much may go wrong, at any step. Each more of anything multiplies the states by about ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Budget {
    /// Crashes of a worker.
    pub crashes: u8,
    /// Leases that run out while their holder still works. That of a crashed worker runs out for certain, and costs
    /// nothing.
    pub expiries: u8,
    /// Deliveries of each message after it was acknowledged.
    pub copies: u8,
    /// Sweeps of the outbox beside workers, that take over what these have claimed.
    pub sweeps: u8,
    /// Timers that fire.
    pub timers: u8,
    /// Loads that are answered with the version before the latest, or with nothing before the first.
    pub stale: u8,
}

impl Budget {
    /// Nothing goes wrong.
    pub const NONE: Self = Self { crashes: 0, expiries: 0, copies: 0, sweeps: 0, timers: 0, stale: 0 };
}

/// A protocol with what must hold of it.
pub struct Check<S: Saga> {
    pub(crate) protocol: Protocol<S>,
    pub(crate) limits: Limits,
    properties: Vec<Property<Self>>,
}

/// Visits every state that the protocol can reach and prints how many there are. `properties` are the application's own,
/// beside those that hold for any saga: what must always hold, and what must happen sometimes, so that a check which
/// has become too narrow to see it does not pass.
///
/// # Panics
/// When a property does not hold, with the steps that lead there.
pub fn check<S: Saga>(name: &str, protocol: Protocol<S>, properties: Vec<Property<Check<S>>>) {
    let began = Instant::now();
    let limits = limits::of(&protocol);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = Check { protocol, limits, properties }.checker().threads(threads).spawn_bfs().join();
    println!(
        "{name}: {} states, {} different, depth {}, {:.1} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f64()
    );
    checker.assert_properties();
}

/// What must hold in every state.
pub fn always<S: Saga>(
    name: &'static str,
    condition: fn(&Check<S>, &System<S>) -> bool,
) -> Property<Check<S>> {
    Property::always(name, condition)
}

/// What must hold in some state at least.
pub fn sometimes<S: Saga>(
    name: &'static str,
    condition: fn(&Check<S>, &System<S>) -> bool,
) -> Property<Check<S>> {
    Property::sometimes(name, condition)
}

impl<S: Saga> Check<S> {
    /// How much may go wrong.
    pub fn budget(&self) -> Budget {
        self.protocol.budget
    }
}

impl<S: Saga> Model for Check<S> {
    type State = System<S>;
    type Action = Action;

    fn init_states(&self) -> Vec<System<S>> {
        vec![System::initial(&self.protocol)]
    }

    fn actions(&self, state: &System<S>, actions: &mut Vec<Action>) {
        state.worker_actions(actions);
        state.other_actions(actions);
    }

    fn next_state(&self, state: &System<S>, action: Action) -> Option<System<S>> {
        let mut next = state.clone();
        let changed = next.apply(action, &self.protocol);
        next.normalise();
        changed.then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let own = self.properties.iter().map(|Property { expectation, name, condition }| Property {
            expectation: expectation.clone(),
            name,
            condition: *condition,
        });
        properties::all().into_iter().chain(own).collect()
    }
}
