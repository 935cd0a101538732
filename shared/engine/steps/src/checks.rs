//! The invariants of every list of steps, for a workload of the simulator.
//!
//! A workload calls these functions from its own. It adds only the effects in other systems.

use std::collections::BTreeSet;

use messages::{DecisionRecord, PartitionKey, Verdict};
use saga::Saga;
use simulation::{Bounds, Change, CheckResult, Invariant, Rest, Violation, Workload};

use crate::StepSaga;
use crate::list::Steps;
use crate::machine::StepMachine;
use crate::run::{Phase, Run, StepState};

/// Returns the maximum stored size of a run: the requests, replies and retries of its steps, its deadlines, and some
/// signals.
pub fn bounds<I: StepSaga>(machine: &StepMachine<I>) -> Bounds {
    let steps = machine.steps();
    let attempts = steps.nodes.iter().map(|node| node.retry.map_or(1, |retry| retry.max_attempts as usize));
    // Each attempt is a request and a timer. The undo, and a repetition for the outcome before it, are requests.
    let awaited: usize = attempts.map(|attempts| 2 * attempts + 2).sum::<usize>() + steps.deadlines.len();
    Bounds { messages: 2 * awaited + 8, awaited, outbox: 2 * awaited + 4, ..Bounds::default() }
}

/// Returns `true` if a run may wait without a running timer: while it is undone, which has to succeed in the end; until
/// it starts; and while it waits for a reply that the queue's redelivery brings about.
pub fn may_wait<I>(run: &Run<I>) -> bool {
    match run.phase {
        Phase::Undoing { .. } | Phase::Signalled { .. } => true,
        _ => run.steps.values().any(|state| matches!(state, StepState::Requested { .. })),
    }
}

/// Checks that no signal is lost because it has overtaken the start.
pub fn observed(record: &DecisionRecord) -> CheckResult {
    let is_lost = record.verdict == Verdict::Ignored && record.state.as_deref() == Some("new");
    match is_lost {
        true => violated(format!("{:?} was ignored before the start and is not sent again", record.message)),
        false => Ok(()),
    }
}

/// Checks that the list allows a change of a run.
pub fn changed<I, S>(machine: &StepMachine<I>, change: &Change<'_, S>) -> CheckResult
where
    I: StepSaga,
    S: Saga<State = Run<I>>,
{
    let new = Run::default();
    check_change(machine.steps(), change.before.unwrap_or(&new), change.after)
}

fn check_change<I>(steps: &Steps<I>, before: &Run<I>, after: &Run<I>) -> CheckResult {
    if rank(&after.phase) < rank(&before.phase) {
        return violated(format!("phase {:?} became {:?}", before.phase, after.phase));
    }
    if before.input.is_some() && before.list_version != after.list_version {
        return violated("the version of the list changed during a run".to_owned());
    }
    for (place, node) in steps.nodes.iter().enumerate().filter(|(_, node)| node.is_in(after.list_version)) {
        let (was, is) = (before.steps.get(node.name), after.steps.get(node.name));
        if !follows(was, is) {
            return violated(format!("{}: {was:?} became {is:?}", node.name));
        }
        let has_begun = was.is_none() && is.is_some() && !node.performed_at_start;
        let is_early = node.predecessors.iter().any(|earlier| {
            let earlier = &steps.nodes[*earlier];
            let state = after.steps.get(earlier.name);
            // In a run that stopped within the same change, a predecessor may have been undone already.
            let is_settled = match after.phase {
                Phase::Undoing { .. } | Phase::Undone { .. } => state.is_some(),
                _ => state.is_some_and(StepState::is_settled),
            };
            earlier.is_in(after.list_version) && !is_settled
        });
        if has_begun && is_early {
            return violated(format!("{} began before its turn", node.name));
        }
        let is_undone = was != is && matches!(is, Some(StepState::Undoing { .. }));
        let may_remain = |later: usize| {
            let later = &steps.nodes[later];
            later.has_undo && after.steps.get(later.name).is_some_and(StepState::may_be_performed)
        };
        if is_undone && steps.successors(place).any(may_remain) {
            return violated(format!("{} is undone before its successors", node.name));
        }
        let is_after_pivot = |place: usize| {
            let node = &steps.nodes[place];
            node.is_pivot && matches!(before.steps.get(node.name), Some(StepState::Completed { .. }))
        };
        if is_undone && (0..steps.nodes.len()).any(is_after_pivot) {
            return violated(format!("{} is undone after the pivot", node.name));
        }
    }
    Ok(())
}

fn rank(phase: &Phase) -> u8 {
    match phase {
        Phase::New => 0,
        Phase::Signalled { .. } => 1,
        Phase::Running => 2,
        Phase::Undoing { .. } => 3,
        Phase::Completed { .. } | Phase::Undone { .. } | Phase::Failed { .. } => 4,
    }
}

/// Returns `true` if any number of events can change a step from one state to the other. One write may contain several
/// events.
fn follows(was: Option<&StepState>, is: Option<&StepState>) -> bool {
    use StepState::*;
    match (was, is) {
        (None | Some(Waiting), _) => true,
        (Some(Requested { attempt: was }), Some(Requested { attempt: is })) => was <= is,
        (Some(Retrying { attempts: was }), Some(Requested { attempt: is })) => was < is,
        (Some(Requested { attempt: was } | Retrying { attempts: was }), Some(Retrying { attempts: is })) => {
            was <= is
        }
        (Some(Requested { .. } | Retrying { .. }), Some(is)) => !matches!(is, Waiting | Skipped),
        (Some(Completed { .. }), Some(Completed { .. } | Undoing { .. } | Undone | UndoRefused { .. })) => {
            true
        }
        (Some(Undoing { .. }), Some(Undoing { .. } | Undone | UndoRefused { .. })) => true,
        (was, is) => was == is,
    }
}

/// Checks a run at rest: it has ended, and exactly the steps that it remembers as completed and not undone are in
/// effect in the other systems. A step whose outcome the run did not await may be in effect or not. `performed` contains the steps in effect, and `visible` the steps whose effect the
/// workload can observe.
pub fn at_rest<I, W>(
    rest: &Rest<'_, W>,
    machine: &StepMachine<I>,
    partition: PartitionKey,
    performed: &BTreeSet<String>,
    visible: &[&str],
) -> CheckResult
where
    I: StepSaga,
    W: Workload,
    W::Saga: Saga<State = Run<I>>,
{
    let Some(run) = rest.state(partition) else {
        if rest.is_committed(partition) {
            return quiescence("a run was started, but has not begun".to_owned());
        }
        return match performed.is_empty() {
            true => Ok(()),
            false => violated(format!("{performed:?} are in effect for a run that never began")),
        };
    };
    if run.ended_at().is_none() {
        return quiescence(format!("a run has not ended: {run:?}"));
    }
    let keeps = |name: &str| {
        let place = machine.steps().find(name, run.list_version);
        let has_undo = place.is_some_and(|place| machine.steps().nodes[place].has_undo);
        !matches!(run.phase, Phase::Undone { .. }) || !has_undo
    };
    let is_in_doubt = |name: &String| {
        matches!(run.steps.get(name), Some(StepState::Requested { .. } | StepState::Retrying { .. }))
    };
    let expected: BTreeSet<String> = run
        .steps
        .iter()
        .filter(|(name, state)| match state {
            StepState::Completed { .. } => keeps(name),
            state => matches!(state, StepState::UndoRefused { .. }),
        })
        .map(|(name, _)| name.clone())
        .filter(|name| visible.contains(&name.as_str()))
        .collect();
    match expected.iter().eq(performed.iter().filter(|name| !is_in_doubt(name))) {
        true => Ok(()),
        false => violated(format!("{performed:?} are in effect instead of {expected:?}: {run:?}")),
    }
}

fn violated(detail: String) -> CheckResult {
    Err(Violation { invariant: Invariant::Application, detail })
}

fn quiescence(detail: String) -> CheckResult {
    Err(Violation { invariant: Invariant::Quiescence, detail })
}
