//! A check of a protocol: its limits, its properties, and its steps.

use std::hash::Hash;

use messages::PartitionKey;
use saga::{Content, Saga};

use crate::actions::Action;
use crate::limits::Limits;
use crate::property::{Kind, Property, StateSpace};
use crate::protocol::{Budget, Protocol};
use crate::steps::Outside;
use crate::system::System;

/// A protocol with its properties.
pub struct Check<S: Saga> {
    pub(crate) protocol: Protocol<S>,
    pub(crate) partition: PartitionKey,
    /// The partition of the other saga, if there are two.
    pub(crate) peer: Option<PartitionKey>,
    pub(crate) limits: Limits,
    pub(crate) properties: Vec<Property<Self>>,
}

impl<S: Saga> StateSpace for Check<S> {
    type System = System<S>;
}

impl<S: Saga> Check<S> {
    /// The budget of faults.
    pub fn budget(&self) -> Budget {
        self.protocol.budget
    }
}

/// The states of a check, and the steps between them.
pub(crate) trait Explore: StateSpace<System: Clone + Hash + Send + Sync> + Sized + Sync {
    type Action: Copy;

    fn initial(&self) -> Self::System;
    fn properties(&self) -> &[Property<Self>];
    /// Returns all possible actions.
    fn actions(&self, system: &Self::System) -> Vec<Self::Action>;
    /// Returns the system after an action, or `None` if the action changes nothing.
    fn after(&self, system: &Self::System, action: Self::Action) -> Option<Self::System>;
    /// Returns `true` if the step happens in every fair execution while work remains.
    fn is_certain(&self, system: &Self::System, action: Self::Action) -> bool;
    /// Returns `true` if no work remains.
    fn is_at_rest(&self, system: &Self::System) -> bool;
    /// Returns an action that is about to happen, as text.
    fn describe(&self, system: &Self::System, action: Self::Action) -> String;
    /// Returns a state as text.
    fn summary(&self, system: &Self::System) -> String;
}

impl<S: Saga> Explore for Check<S> {
    type Action = Action;

    fn initial(&self) -> System<S> {
        System::initial(&self.protocol, self.partition, self.peer)
    }

    fn properties(&self) -> &[Property<Self>] {
        &self.properties
    }

    fn actions(&self, system: &System<S>) -> Vec<Action> {
        system.actions(self.budget().defect)
    }

    fn after(&self, system: &System<S>, action: Action) -> Option<System<S>> {
        let mut next = system.clone();
        let changed = next.apply(action, &self.protocol, &mut Outside::default());
        next.normalise();
        changed.then_some(next)
    }

    fn is_certain(&self, system: &System<S>, action: Action) -> bool {
        system.is_certain(action)
    }

    fn is_at_rest(&self, system: &System<S>) -> bool {
        system.is_at_rest()
    }

    fn describe(&self, system: &System<S>, action: Action) -> String {
        system.describe(action)
    }

    fn summary(&self, system: &System<S>) -> String {
        system.summary()
    }
}

/// Creates a property that must hold in every state.
pub fn always<S: Saga>(
    name: &'static str,
    condition: fn(&Check<S>, &System<S>) -> bool,
) -> Property<Check<S>> {
    Property { kind: Kind::Always, name, condition: Box::new(condition) }
}

/// Creates a property that must hold in at least one state.
pub fn sometimes<S: Saga>(
    name: &'static str,
    condition: fn(&Check<S>, &System<S>) -> bool,
) -> Property<Check<S>> {
    Property { kind: Kind::Sometimes, name, condition: Box::new(condition) }
}

/// Creates invariant I8: a stored state has a running timer, unless the partition has ended or may wait in this state
/// for others, such as for the reply of a handler.
pub fn deadlines<S: Saga>(may_wait: fn(&S::State) -> bool) -> Property<Check<S>> {
    let condition = move |_: &Check<S>, system: &System<S>| {
        let waits = |content: &Content<S::State>| {
            content.ended_at.is_none() && content.timers.is_empty() && !may_wait(&content.state)
        };
        !system.content().is_some_and(waits)
    };
    Property {
        kind: Kind::Always,
        name: "I8 nothing waits without a deadline",
        condition: Box::new(condition),
    }
}
