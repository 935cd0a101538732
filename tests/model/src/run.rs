//! The run of a check.

use std::time::Instant;

use saga::Saga;

use crate::check::{Check, Explore};
use crate::explore::explore;
use crate::property::Property;
use crate::protocol::Protocol;
use crate::sent::partition;
use crate::{limits, properties};

/// The maximum number of states that [`check()`] visits. They need about 2 GB.
pub const MAX_STATES: usize = 50_000_000;

/// Visits every state that the protocol can reach and prints their number. `own` contains the application's properties,
/// in addition to those of every saga: invariants, and situations that must occur so that the check cannot silently
/// become too narrow.
///
/// # Panics
/// Panics if a property does not hold, with the fewest steps that lead there, or if there are more than [`MAX_STATES`]
/// states.
pub fn check<S: Saga>(name: &str, protocol: Protocol<S>, own: Vec<Property<Check<S>>>) {
    check_within(MAX_STATES, name, protocol, own);
}

/// Works like [`check()`], with a maximum number of states.
///
/// # Panics
/// Panics like [`check()`], and if the number of states exceeds the maximum.
pub fn check_within<S: Saga>(
    max_states: usize,
    name: &str,
    mut protocol: Protocol<S>,
    own: Vec<Property<Check<S>>>,
) {
    let began = Instant::now();
    let defect = protocol.budget.defect.take();
    let limits = limits::of(&protocol);
    protocol.budget.defect = defect;
    let properties = properties::all().into_iter().chain(own).collect();
    let check = Check { protocol, partition: partition(), peer: None, limits, properties };
    run(name, &check, max_states, began);
}

/// Visits every state and prints their number.
pub(crate) fn run<C: Explore>(name: &str, check: &C, max_states: usize, began: Instant) {
    let graph = explore(name, check, max_states);
    println!(
        "{name}: {} states, {} steps, depth {}, {:.1} s",
        graph.states(),
        graph.steps,
        graph.depth,
        began.elapsed().as_secs_f64()
    );
}
