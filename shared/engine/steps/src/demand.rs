//! The number of tokens that the effects of an event need, from the list alone.

use std::collections::BTreeSet;

use crate::event::StepEvent;
use crate::list::{Node, Steps};

/// Returns the number of tokens to mint for an event. It covers the usual case: too few tokens cost one more claim.
pub(crate) fn tokens<I>(steps: &Steps<I>, event: &StepEvent<I>) -> usize {
    match event {
        StepEvent::Started { .. } => {
            let entries: Vec<usize> =
                (0..steps.nodes.len()).filter(|place| steps.nodes[*place].predecessors.is_empty()).collect();
            next(steps, entries)
        }
        StepEvent::StepCompleted { step, .. } | StepEvent::Resolved { step, .. } => {
            let own = usize::from(matches!(event, StepEvent::StepCompleted { .. }));
            named(steps, step)
                .map(|place| next(steps, steps.successors(place).collect()))
                .max()
                .map_or(own, |next| next.max(own))
        }
        StepEvent::StepUndone { step } | StepEvent::UndoRefused { step, .. } => {
            let before = named(steps, step).map(|place| previous(steps, place));
            before.max().unwrap_or(0)
        }
        StepEvent::StepFailed { .. } => width(steps).max(1),
        StepEvent::StepRefused { .. }
        | StepEvent::Rejected { .. }
        | StepEvent::Cancelled { .. }
        | StepEvent::DeadlinePassed { .. } => width(steps),
        StepEvent::RetryDue { .. } => 1,
    }
}

/// Returns the positions of the steps with a name, one for each group of versions.
fn named<'a, I>(steps: &'a Steps<I>, step: &'a str) -> impl Iterator<Item = usize> {
    let nodes = steps.nodes.iter().enumerate();
    nodes.filter(move |(_, node)| node.name == step).map(|(place, _)| place)
}

/// Returns the number of requests and deadlines that begin if these steps may begin.
fn next<I>(steps: &Steps<I>, mut pending: Vec<usize>) -> usize {
    let mut begun = BTreeSet::new();
    while let Some(place) = pending.pop() {
        if begun.insert(place) && passes(&steps.nodes[place]) {
            pending.extend(steps.successors(place));
        }
    }
    let requests = begun.iter().map(|place| &steps.nodes[*place]);
    let requests = requests.filter(|node| node.request.is_some() && !node.performed_at_start).count();
    let deadlines = steps.deadlines.iter();
    requests + deadlines.filter(|deadline| begun.range(deadline.nodes.clone()).next().is_some()).count()
}

/// Returns `true` if the successors of a step may begin in the same transition.
fn passes<I>(node: &Node<I>) -> bool {
    let is_optional = !node.conditions.is_empty() || node.since > 1 || node.until < u16::MAX;
    is_optional || node.request.is_none() || node.performed_at_start
}

/// Returns the number of steps that may be undone once this one is.
fn previous<I>(steps: &Steps<I>, place: usize) -> usize {
    let (mut pending, mut found) = (steps.nodes[place].predecessors.clone(), BTreeSet::new());
    while let Some(place) = pending.pop() {
        let node = &steps.nodes[place];
        if found.insert(place) && (!node.has_undo || passes(node)) {
            pending.extend(&node.predecessors);
        }
    }
    found.into_iter().filter(|place| steps.nodes[*place].has_undo).count()
}

/// Returns the largest number of steps at the same distance from the beginning.
fn width<I>(steps: &Steps<I>) -> usize {
    let mut depths: Vec<usize> = Vec::with_capacity(steps.nodes.len());
    for node in &steps.nodes {
        depths.push(node.predecessors.iter().map(|place| depths[*place] + 1).max().unwrap_or(0));
    }
    let at = |depth: usize| {
        depths.iter().zip(&steps.nodes).filter(|(of, node)| **of == depth && node.has_undo).count()
    };
    (0..depths.len()).map(at).max().unwrap_or(0)
}
