//! What is checked, and checking it.

use std::time::Instant;

use messages::Message;
use saga::Saga;

use crate::actions::Action;
use crate::defects::Defect;
use crate::explore::explore;
use crate::limits::{self, Limits};
use crate::properties::{self, Property};
use crate::sent::is_report;
use crate::steps::Failing;
use crate::system::System;

/// A saga, what happens to one partition of it, and how much may go wrong.
#[derive(Debug, Clone)]
pub struct Protocol<S: Saga> {
    /// The saga.
    pub saga: S,
    /// What entry points send: all of one partition, each with its token, as [`crate::input`] makes them. There should
    /// be two at least, or two workers hardly ever meet.
    pub inputs: Vec<Message>,
    /// What handlers answer to a message that the saga sends, as [`crate::reply`] makes it, and what is answered once they
    /// have given it up, as [`crate::report`] makes it; nothing to one that is for somebody outside.
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
    /// Deliveries of each message after it was acknowledged, or beside another one.
    pub copies: u8,
    /// The same, but of all messages together.
    pub duplicates: u8,
    /// Sweeps of the outbox beside workers, that take over what these have claimed.
    pub sweeps: u8,
    /// Timers that fire.
    pub timers: u8,
    /// Loads that are answered with the version before the latest, or with nothing before the first.
    pub stale: u8,
    /// Whether a worker may receive two messages together, in either order, or two copies of one.
    pub groups: bool,
    /// Requests that their handler gives up, after it has answered or without. None of those that the sweeper sends.
    pub failures: u8,
    /// The most tokens that may be there for a claim to add more; none where there is always room.
    pub room: Option<u8>,
    /// The most tokens that an attempt leaves to be removed by a later one; with none of them every attempt gives the
    /// partition back.
    pub keep: u8,
    /// What is wrong with the system around the saga, to see that the check finds it.
    pub defect: Option<Defect>,
}

impl Budget {
    /// Nothing goes wrong.
    pub const NONE: Self = Self {
        crashes: 0,
        expiries: 0,
        copies: 0,
        duplicates: 0,
        sweeps: 0,
        timers: 0,
        stale: 0,
        groups: false,
        failures: 0,
        room: None,
        keep: 0,
        defect: None,
    };
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
/// When a property does not hold, with the fewest steps that lead there.
pub fn check<S: Saga>(name: &str, protocol: Protocol<S>, own: Vec<Property<Check<S>>>) {
    let began = Instant::now();
    let limits = limits::of(&protocol);
    let properties = properties::all().into_iter().chain(own).collect();
    let check = Check { protocol, limits, properties };
    let graph = explore(&check);
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1} s",
        graph.states(),
        graph.steps,
        graph.depth,
        began.elapsed().as_secs_f64()
    );
}

impl<S: Saga> Protocol<S> {
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.budget.defect == Some(defect)
    }

    /// What comes back from whoever receives a message.
    pub(crate) fn answers(&self, message: &Message, failing: Option<Failing>) -> Vec<Message> {
        let wanted = |is_report: bool| match failing {
            None => !is_report,
            Some(Failing { answered, .. }) => is_report || answered,
        };
        let mut answers = (self.replies)(message);
        answers.retain(|answer| wanted(is_report(message, answer)));
        answers
    }
}

impl<S: Saga> Check<S> {
    /// How much may go wrong.
    pub fn budget(&self) -> Budget {
        self.protocol.budget
    }

    pub(crate) fn properties(&self) -> &[Property<Self>] {
        &self.properties
    }

    pub(crate) fn actions(&self, system: &System<S>) -> Vec<Action> {
        system.actions(self.budget().defect)
    }

    /// The system after an action; none when that changes nothing.
    pub(crate) fn after(&self, system: &System<S>, action: Action) -> Option<System<S>> {
        let mut next = system.clone();
        let changed = next.apply(action, &self.protocol);
        next.normalise();
        changed.then_some(next)
    }
}
