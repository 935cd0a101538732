//! Properties of states.

/// A property of the states of a check.
pub struct Property<C: StateSpace> {
    pub(crate) kind: Kind,
    pub(crate) name: &'static str,
    pub(crate) condition: Condition<C>,
}

/// Returns whether a property holds in a state.
pub(crate) type Condition<C> = Box<dyn Fn(&C, &<C as StateSpace>::System) -> bool + Send + Sync>;

/// The states in which a property has to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Always,
    Sometimes,
}

/// A check that visits the states of a system.
pub trait StateSpace {
    /// The system.
    type System;
}
