//! A check of a protocol: its limits, its properties, and its steps.

use saga::{Content, Saga};

use crate::actions::Action;
use crate::limits::Limits;
use crate::property::{Kind, Property, StateSpace};
use crate::protocol::{Budget, Protocol};
use crate::system::System;

/// A protocol with its properties.
pub struct Check<S: Saga> {
    pub(crate) protocol: Protocol<S>,
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

    pub(crate) fn properties(&self) -> &[Property<Self>] {
        &self.properties
    }

    pub(crate) fn actions(&self, system: &System<S>) -> Vec<Action> {
        system.actions(self.budget().defect)
    }

    /// Returns the system after an action, or `None` if the action changes nothing.
    pub(crate) fn after(&self, system: &System<S>, action: Action) -> Option<System<S>> {
        let mut next = system.clone();
        let changed = next.apply(action, &self.protocol);
        next.normalise();
        changed.then_some(next)
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
