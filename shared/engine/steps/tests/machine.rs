//! The transitions of lists of steps: order, retries, signals, the pivot, versions, and mistakes in lists.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{Message, MessageId, Payload, Queue};
use proptest::prelude::*;
use rstest::rstest;
use saga::{Decision, Effect, Event, Saga};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steps::StepEvent::*;
use steps::{
    Activity, ActivityError, Call, InDoubt, Phase, RetryPolicy, Run, StepMachine, StepSaga, StepState, Steps,
    par, seq, step, wait,
};
use uuid::Uuid;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Input {
    flag: bool,
}

impl StepSaga for Input {
    const NAME: &'static str = "tests";
    const SYSTEM: &'static str = "test";
    const VERSION: u16 = 2;

    fn steps() -> Steps<Self> {
        seq([one("old").until(2), one("new").since(2), one("both")])
    }

    fn upcast(_: u16, mut input: Value) -> Result<Value, String> {
        input["flag"] = true.into();
        Ok(input)
    }
}

struct Work;

#[async_trait]
impl Activity for Work {
    const SYSTEM: &'static str = "test";
    const PERFORM: &'static str = "Do";
    const UNDO: &'static str = "Undo";
    type Input = String;
    type Output = ();

    async fn perform(&self, _: &Call<'_, String>) -> Result<(), ActivityError> {
        Ok(())
    }

    async fn undo(&self, _: &Call<'_, String>) -> Result<(), ActivityError> {
        Ok(())
    }
}

fn one(name: &'static str) -> Steps<Input> {
    step::<Work, Input>(name, Queue::named("work"), move |run| {
        let outputs: Vec<String> = ["a", "b"].iter().filter_map(|step| run.run.output(step)).collect();
        format!("{name}{}", outputs.concat())
    })
}

fn machine(steps: Steps<Input>) -> StepMachine<Input> {
    StepMachine::new(steps).unwrap()
}

fn decide(
    machine: &StepMachine<Input>,
    run: &Run<Input>,
    event: &steps::StepEvent<Input>,
) -> Decision<Run<Input>> {
    let id = MessageId::from_uuid(Uuid::nil());
    let event = Event::new(id, StepMachine::<Input>::partition("k"), event);
    machine.transition(run, &event, Timestamp::UNIX_EPOCH)
}

/// Applies an event. Returns the requests and timers as text.
fn next(machine: &StepMachine<Input>, run: &mut Run<Input>, event: &steps::StepEvent<Input>) -> Vec<String> {
    let Decision::Advance(advance) = decide(machine, run, event) else {
        panic!("{event:?} changed nothing: {:?}", decide(machine, run, event))
    };
    *run = *advance.next;
    let waits = |effect: &Effect| matches!(effect, Effect::Request { .. } | Effect::Schedule { .. });
    assert!(
        run.ended_at().is_none() || !advance.effects.iter().any(waits),
        "it could receive nothing: {run:?}"
    );
    let effects = advance.effects.iter().filter_map(|effect| match effect {
        Effect::Request { body, .. } => {
            Some(format!("{} {}", body.name, body.data.value()["step"].as_str()?))
        }
        Effect::Schedule { timer, due_at, .. } => Some(format!("{timer} in {} s", due_at.as_second())),
        Effect::Cancel { timer } => Some(format!("no {timer}")),
        _ => None,
    });
    effects.collect()
}

fn started() -> steps::StepEvent<Input> {
    let input = Input { flag: false };
    Started { key: "k".to_owned(), input, at: Timestamp::UNIX_EPOCH, list_version: None }
}

fn completed(step: &str) -> steps::StepEvent<Input> {
    StepCompleted { step: step.to_owned(), output: json!(format!("+{step}")) }
}

fn undone(step: &str) -> steps::StepEvent<Input> {
    StepUndone { step: step.to_owned() }
}

fn refused(step: &str) -> steps::StepEvent<Input> {
    StepRefused { step: step.to_owned(), reason: "full".to_owned() }
}

fn failed(step: &str, attempt: u32, after_seconds: Option<u32>) -> steps::StepEvent<Input> {
    StepFailed { step: step.to_owned(), attempt, reason: "503".to_owned(), after_seconds }
}

fn cancelled() -> steps::StepEvent<Input> {
    Cancelled { reason: "changed my mind".to_owned() }
}

fn is_ignored(machine: &StepMachine<Input>, run: &Run<Input>, event: &steps::StepEvent<Input>) -> bool {
    matches!(decide(machine, run, event), Decision::Ignore { .. })
}

fn is_rejected(machine: &StepMachine<Input>, run: &Run<Input>, event: &steps::StepEvent<Input>) -> bool {
    matches!(decide(machine, run, event), Decision::Reject { .. })
}

#[test]
fn undo_reverses_sequences_and_keeps_parallelism() {
    let machine = machine(seq([one("a"), par([one("b"), seq([one("c"), one("d")])]), one("e")]));
    let mut run = Run::default();
    assert_eq!(next(&machine, &mut run, &started()), ["Do a"]);
    assert_eq!(next(&machine, &mut run, &completed("a")), ["Do b", "Do c"]);
    assert_eq!(next(&machine, &mut run, &completed("c")), ["Do d"]);
    assert_eq!(next(&machine, &mut run, &completed("d")), [] as [&str; 0]);
    // The reply for b is awaited, because it is in doubt.
    assert_eq!(next(&machine, &mut run, &cancelled()), ["Undo d"]);
    assert_eq!(next(&machine, &mut run, &completed("b")), ["Undo b"]);
    assert_eq!(next(&machine, &mut run, &undone("d")), ["Undo c"]);
    assert_eq!(next(&machine, &mut run, &undone("c")), [] as [&str; 0]);
    assert_eq!(next(&machine, &mut run, &undone("b")), ["Undo a"]);
    assert_eq!(next(&machine, &mut run, &undone("a")), [] as [&str; 0]);
    assert!(matches!(run.phase, Phase::Undone { .. }), "{run:?}");
    assert!(is_ignored(&machine, &run, &completed("a")));
}

#[test]
fn steps_use_the_outputs_of_earlier_steps() {
    let machine = machine(seq([one("a"), one("c")]));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    let Decision::Advance(advance) = decide(&machine, &run, &completed("a")) else { panic!() };
    let Effect::Request { body, .. } = &advance.effects[0] else { panic!("{:?}", advance.effects) };
    assert_eq!(body.data.value(), json!({ "step": "c", "reply_to": "saga", "input": "c+a" }));
}

#[test]
fn step_in_doubt_is_undone_if_configured() {
    let machine = machine(seq([one("a"), par([one("b"), one("c")]).in_doubt(InDoubt::Undo)]));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    next(&machine, &mut run, &completed("a"));
    assert_eq!(next(&machine, &mut run, &refused("b")), ["Undo c"]);
    assert_eq!(run.steps["c"], StepState::Undoing { in_doubt: true });
    assert!(is_ignored(&machine, &run, &completed("c")), "the reply is too late");
    assert_eq!(next(&machine, &mut run, &undone("c")), ["Undo a"]);
}

#[test]
fn failed_step_is_retried_then_undone() {
    let seconds = SignedDuration::from_secs;
    let retry = RetryPolicy { max_attempts: 4, initial_interval: seconds(10), max_interval: seconds(15) };
    let machine = machine(one("a").retry(retry).in_doubt(InDoubt::Undo));
    let again = RetryDue { step: "a".to_owned() };
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    assert_eq!(next(&machine, &mut run, &failed("a", 1, None)), ["retry:a in 10 s"]);
    assert_eq!(next(&machine, &mut run, &again), ["Do a"]);
    assert!(is_ignored(&machine, &run, &failed("a", 1, None)), "a duplicate of the earlier attempt");
    assert!(is_ignored(&machine, &run, &again));
    assert_eq!(
        next(&machine, &mut run, &failed("a", 2, Some(60))),
        ["retry:a in 60 s"],
        "the service asked for it"
    );
    next(&machine, &mut run, &again);
    assert_eq!(next(&machine, &mut run, &failed("a", 3, None)), ["retry:a in 15 s"], "the maximum");
    next(&machine, &mut run, &again);
    assert_eq!(next(&machine, &mut run, &failed("a", 4, None)), ["Undo a"]);
    assert_eq!(run.steps["a"], StepState::Undoing { in_doubt: true });
}

/// An attempt that timed out may take effect after an undo that found nothing.
#[test]
fn failed_step_is_undone_after_its_outcome() {
    let second = SignedDuration::from_secs(1);
    let retry = RetryPolicy { max_attempts: 2, initial_interval: second, max_interval: second };
    let machine = machine(one("a").retry(retry));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    next(&machine, &mut run, &failed("a", 1, None));
    let mut cancelled_run = run.clone();
    next(&machine, &mut run, &RetryDue { step: "a".to_owned() });
    let mut stopped_run = run.clone();
    assert_eq!(next(&machine, &mut run, &failed("a", 2, None)), ["Do a"], "after the last attempt");
    assert!(matches!(run.phase, Phase::Undoing { .. }), "{run:?}");
    assert!(is_ignored(&machine, &run, &failed("a", 2, None)), "a duplicate");
    let mut refused_run = run.clone();
    assert_eq!(next(&machine, &mut run, &completed("a")), ["Undo a"]);
    assert_eq!(run.steps["a"], StepState::Undoing { in_doubt: false });
    assert_eq!(next(&machine, &mut refused_run, &refused("a")), [] as [&str; 0]);
    assert!(matches!(refused_run.phase, Phase::Undone { .. }), "{refused_run:?}");

    assert_eq!(next(&machine, &mut cancelled_run, &cancelled()), ["no retry:a", "Do a"]);
    assert_eq!(next(&machine, &mut stopped_run, &cancelled()), [] as [&str; 0], "the reply is awaited");
    assert_eq!(
        repetition(&machine, &stopped_run, 2),
        json!({ "step": "a", "until_outcome": true, "reply_to": "saga", "input": "a" })
    );
}

/// Returns the command that follows a failed attempt of step a.
fn repetition(machine: &StepMachine<Input>, run: &Run<Input>, attempt: u32) -> Value {
    let Decision::Advance(advance) = decide(machine, run, &failed("a", attempt, None)) else { panic!() };
    let Effect::Request { body, .. } = &advance.effects[0] else { panic!("{:?}", advance.effects) };
    body.data.value().clone()
}

#[test]
fn dead_lettered_step_without_policy_stops_the_run() {
    let machine = machine(par([one("a"), one("b").in_doubt(InDoubt::Undo)]));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    assert_eq!(next(&machine, &mut run, &failed("b", 1, None)), ["Undo b"]);
    assert!(matches!(run.phase, Phase::Undoing { .. }), "{run:?}");
    let repeated = json!({ "step": "a", "until_outcome": true, "reply_to": "saga", "input": "a" });
    assert_eq!(repetition(&machine, &run, 1), repeated, "its outcome has to be known");
    assert_eq!(next(&machine, &mut run, &failed("a", 1, None)), ["Do a"], "reported after the run stopped");
    assert!(is_ignored(&machine, &run, &failed("a", 1, None)), "a duplicate");
}

#[test]
fn cancellation_stops_the_retry_timer() {
    let second = SignedDuration::from_secs(1);
    let retry = RetryPolicy { max_attempts: 2, initial_interval: second, max_interval: second };
    let machine = machine(one("a").retry(retry).in_doubt(InDoubt::Undo));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    next(&machine, &mut run, &failed("a", 1, None));
    assert_eq!(next(&machine, &mut run, &cancelled()), ["no retry:a", "Undo a"]);
}

#[test]
fn deadline_spans_first_to_last_step() {
    let minute = SignedDuration::from_mins(1);
    let machine = machine(seq([one("a"), par([one("b"), one("c")]).within("soon", minute), one("d")]));
    let mut run = Run::default();
    assert_eq!(next(&machine, &mut run, &started()), ["Do a"]);
    assert_eq!(next(&machine, &mut run, &completed("a")), ["Do b", "Do c", "deadline:soon in 60 s"]);
    next(&machine, &mut run, &completed("b"));
    let passed = DeadlinePassed { deadline: "soon".to_owned() };
    let mut late = run.clone();
    assert_eq!(next(&machine, &mut late, &passed), ["Undo b", "no deadline:soon"]);
    assert_eq!(next(&machine, &mut run, &completed("c")), ["Do d", "no deadline:soon"]);
    assert!(is_ignored(&machine, &run, &passed));
}

#[test]
fn signals_are_kept_until_their_turn() {
    let machine = machine(seq([one("a"), wait("approval"), one("d")]));
    let approved = Resolved { step: "approval".to_owned(), value: json!("bob") };
    let rejected = Rejected { step: "approval".to_owned(), reason: "too expensive".to_owned() };
    let mut early = Run::default();
    next(&machine, &mut early, &approved);
    assert_eq!(next(&machine, &mut early, &started()), ["Do a"]);
    assert_eq!(next(&machine, &mut early, &completed("a")), ["Do d"]);
    assert_eq!(early.output::<String>("approval").as_deref(), Some("bob"));
    assert!(is_ignored(&machine, &early, &rejected), "it is settled");

    let mut waiting = Run::default();
    next(&machine, &mut waiting, &started());
    next(&machine, &mut waiting, &completed("a"));
    assert_eq!(waiting.steps["approval"], StepState::Waiting);
    let mut stopped = waiting.clone();
    assert_eq!(next(&machine, &mut stopped, &rejected), ["Undo a"]);
    assert_eq!(next(&machine, &mut waiting, &approved), ["Do d"]);

    for stop in [cancelled(), rejected] {
        let mut run = Run::default();
        next(&machine, &mut run, &stop);
        next(&machine, &mut run, &started());
        assert!(matches!(run.phase, Phase::Undone { .. }), "nothing was performed: {run:?}");
    }
    assert!(is_rejected(&machine, &waiting, &Resolved { step: "b".to_owned(), value: Value::Null }));
    assert!(is_rejected(&machine, &waiting, &Resolved { step: "a".to_owned(), value: Value::Null }));
}

#[test]
fn early_rejection_prevents_parallel_requests() {
    for is_first in [true, false] {
        let (ship, consent) = (one("ship"), wait("consent"));
        let parallel = if is_first { par([consent, ship]) } else { par([ship, consent]) };
        let machine = machine(seq([one("pay").pivot(), parallel]));
        let mut run = Run::default();
        next(&machine, &mut run, &started());
        let rejected = Rejected { step: "consent".to_owned(), reason: "no".to_owned() };
        next(&machine, &mut run, &rejected);
        assert_eq!(next(&machine, &mut run, &completed("pay")), [] as [&str; 0]);
        assert!(matches!(run.phase, Phase::Failed { .. }) && !run.steps.contains_key("ship"), "{run:?}");
    }
}

#[test]
fn choice_performs_one_of_two_parts() {
    let steps = || {
        let (yes, no) = (one("b").when(|run| run.flag), one("c").when(|run| !run.flag));
        seq([one("a"), par([yes, no]), one("d")])
    };
    let machine = machine(steps());
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    assert_eq!(next(&machine, &mut run, &completed("a")), ["Do c"]);
    assert_eq!(run.steps["b"], StepState::Skipped);
    assert_eq!(next(&machine, &mut run, &completed("c")), ["Do d"]);
    next(&machine, &mut run, &completed("d"));
    assert!(run.is_completed());
}

#[test]
fn steps_performed_at_the_start_are_only_undone() {
    let machine = machine(seq([one("a").performed_at_start(), one("b")]));
    let mut run = Run::default();
    assert_eq!(next(&machine, &mut run, &started()), ["Do b"]);
    assert_eq!(next(&machine, &mut run, &refused("b")), ["Undo a"]);
}

#[test]
fn nothing_is_undone_after_the_pivot() {
    let machine = machine(seq([one("a"), one("pay").pivot(), wait("delivery")]));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    let mut early = run.clone();
    assert_eq!(next(&machine, &mut early, &cancelled()), [] as [&str; 0], "the reply for a is awaited");
    assert_eq!(next(&machine, &mut run, &completed("a")), ["Do pay"]);
    assert!(is_ignored(&machine, &run, &cancelled()), "the pivot is requested");
    let mut refused_run = run.clone();
    assert_eq!(next(&machine, &mut refused_run, &refused("pay")), ["Undo a"]);
    let rejected = Rejected { step: "delivery".to_owned(), reason: "lost".to_owned() };
    let mut kept = run.clone();
    next(&machine, &mut kept, &rejected);
    assert_eq!(next(&machine, &mut kept, &completed("pay")), [] as [&str; 0]);
    assert!(matches!(&kept.phase, Phase::Failed { reason, .. } if reason.contains("lost")), "{kept:?}");
    next(&machine, &mut run, &completed("pay"));
    assert!(is_ignored(&machine, &run, &cancelled()));
    assert_eq!(next(&machine, &mut run, &rejected), [] as [&str; 0]);
    assert!(matches!(run.phase, Phase::Failed { .. }), "{run:?}");
}

#[test]
fn irreversible_pivot_in_doubt_fails_run() {
    let second = SignedDuration::from_secs(1);
    let retry = RetryPolicy { max_attempts: 1, initial_interval: second, max_interval: second };
    let machine = machine(seq([one("a"), one("pay").pivot().without_undo().retry(retry)]));
    let mut run = Run::default();
    next(&machine, &mut run, &started());
    next(&machine, &mut run, &completed("a"));
    assert_eq!(next(&machine, &mut run, &failed("pay", 1, None)), [] as [&str; 0]);
    assert!(matches!(run.phase, Phase::Failed { .. }), "a was not undone: {run:?}");
}

#[test]
fn run_follows_the_list_of_its_version() {
    let machine = StepMachine::<Input>::default();
    let stored = json!({
        "key": "k", "input": {}, "list_version": 1, "started_at": "1970-01-01T00:00:00Z", "state": "running",
        "steps": { "old": { "is": "requested", "attempt": 1 } },
    });
    let mut run: Run<Input> = serde_json::from_value(machine.upcast_state(1, stored).unwrap()).unwrap();
    assert_eq!(next(&machine, &mut run, &completed("old")), ["Do both"]);
    let mut run = Run::default();
    assert_eq!(next(&machine, &mut run, &started()), ["Do new"]);
}

/// A deployment may happen between the start of a run and its first event.
#[test]
fn run_started_by_earlier_version_follows_its_list() {
    let data = json!({ "key": "k", "input": {}, "at": "1970-01-01T00:00:00Z" });
    let (system, name) = ("test".to_owned(), "Started".to_owned());
    let body = messages::Body { system, name, version: 1, data: data.into() };
    let (id, partition) = (MessageId::from_uuid(Uuid::nil()), StepMachine::<Input>::partition("k"));
    let message = Message::new(id, "web", partition, Timestamp::UNIX_EPOCH, body);
    let started = message.read::<steps::StepEvent<Input>>().unwrap();
    let mut run = Run::default();
    assert_eq!(next(&StepMachine::default(), &mut run, &started), ["Do old"]);
    assert_eq!(run.list_version, 1);
}

#[test]
fn event_for_removed_step_is_rejected() {
    let mut run = Run::default();
    next(&machine(par([one("a"), one("b")])), &mut run, &started());
    assert!(is_rejected(&machine(one("a")), &run, &completed("a")));
}

#[rstest]
#[case::twice(seq([one("a"), one("a")]), "version 1 has two steps a")]
#[case::deadlines(
    seq([one("a").within("d", SignedDuration::from_secs(1)), one("b").within("d", SignedDuration::from_secs(1))]),
    "two deadlines are named d"
)]
#[case::empty(seq([]), "version 1 has no steps")]
#[case::late_start(seq([one("a"), one("b").performed_at_start()]), "b is performed at the start")]
#[case::pivots(seq([one("a").pivot(), one("b").pivot()]), "two pivots, a and b")]
#[case::parallel(par([one("a").pivot(), one("b")]), "b runs in parallel to the pivot a")]
#[case::signal(wait("a").pivot(), "the pivot a waits for a signal")]
#[case::deadline(
    seq([one("a").pivot(), wait("b")]).within("d", SignedDuration::from_secs(1)),
    "the deadline d includes the pivot a and steps after it"
)]
#[case::attempts(
    one("a").retry(RetryPolicy {
        max_attempts: 0,
        initial_interval: SignedDuration::ZERO,
        max_interval: SignedDuration::ZERO
    }),
    "a has no attempts"
)]
fn mistakes_in_a_list_are_reported(#[case] steps: Steps<Input>, #[case] fault: &str) {
    let invalid = StepMachine::new(steps).err().unwrap();
    assert!(invalid.faults.iter().any(|found| found.contains(fault)), "{invalid}");
}

#[test]
fn outline_describes_every_step() {
    let outline = machine(seq([
        one("a").performed_at_start(),
        par([one("b").when(|run| run.flag), wait("w")]).within("soon", SignedDuration::from_mins(5)),
        one("c").without_undo().since(2),
    ]))
    .outline();
    let expected = "\
tests version 2
a: Do to work, performed at start
b after a: Do to work, conditional
w after a: signal
c after b, w: Do to work, without undo, since version 2
deadline soon of 5m: b, w
";
    assert_eq!(outline, expected);
}

#[test]
fn commands_have_the_names_of_their_activity() {
    let machine = machine(one("a"));
    let mut run = Run::default();
    let Decision::Advance(advance) = decide(&machine, &run, &started()) else { panic!() };
    let Effect::Request { to, body } = &advance.effects[0] else { panic!("{:?}", advance.effects) };
    assert_eq!((to.name(), body.system.as_str(), body.name.as_str()), ("work", "test", "Do"));
    let id = MessageId::from_uuid(Uuid::nil());
    let partition = StepMachine::<Input>::partition("k");
    let message = Message::new(id, "tests", partition, Timestamp::UNIX_EPOCH, body.clone());
    let command: steps::event::Command<Work> = message.read().unwrap();
    assert_eq!(command.body().unwrap(), *body);
    next(&machine, &mut run, &started());
    assert_eq!(run.key, "k");
}

#[test]
fn minted_tokens_suffice_for_every_event() {
    let minute = SignedDuration::from_mins(1);
    let steps = seq([
        one("a").performed_at_start(),
        par([one("b"), one("c").when(|run| !run.flag), wait("w")]).within("soon", minute),
        seq([one("d"), one("e")]),
    ]);
    let machine = machine(steps);
    let approved = Resolved { step: "w".to_owned(), value: Value::Null };
    let happy = [started(), completed("b"), approved, completed("c"), completed("d")];
    for stop in 0..=happy.len() {
        let mut run = Run::default();
        let mut events = happy[..stop].to_vec();
        events.push(cancelled());
        events.extend(["e", "d", "c", "b", "a"].map(undone));
        for event in &events {
            if !matches!(decide(&machine, &run, event), Decision::Advance(_)) {
                continue;
            }
            let effects = next(&machine, &mut run, event);
            let needed = effects.iter().filter(|effect| !effect.starts_with("no ")).count();
            assert!(machine.tokens(&[event]) >= needed, "{event:?} needs {needed}: {effects:?}");
        }
    }
}

/// A list of steps without names.
#[derive(Debug, Clone)]
enum Shape {
    Step { option: u8 },
    Wait,
    All { parts: Vec<Shape>, is_parallel: bool },
}

const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];

fn shapes() -> impl Strategy<Value = Shape> {
    let one = prop_oneof![2 => (0..8_u8).prop_map(|option| Shape::Step { option }), 1 => Just(Shape::Wait)];
    one.prop_recursive(3, 12, 4, |part| {
        (prop::collection::vec(part, 1..4), any::<bool>())
            .prop_map(|(parts, is_parallel)| Shape::All { parts, is_parallel })
    })
}

/// Builds a list; `None` if it has too many steps.
fn built(shape: &Shape, names: &mut impl Iterator<Item = &'static str>) -> Option<Steps<Input>> {
    let second = SignedDuration::from_secs(1);
    let policy = RetryPolicy { max_attempts: 2, initial_interval: second, max_interval: second };
    Some(match shape {
        Shape::Wait => wait(names.next()?),
        Shape::Step { option } => {
            let step = one(names.next()?);
            match option {
                0 => step.pivot(),
                1 => step.retry(policy),
                2 => step.retry(policy).in_doubt(InDoubt::Undo),
                3 => step.without_undo(),
                4 => step.when(|run| run.flag),
                _ => step,
            }
        }
        Shape::All { parts, is_parallel } => {
            let parts: Option<Vec<_>> = parts.iter().map(|part| built(part, names)).collect();
            if *is_parallel { par(parts?) } else { seq(parts?) }
        }
    })
}

/// Returns an event that may arrive at a run of a list with `count` steps, and that settles its first open step if
/// `choice` is 0.
fn event_for(run: &Run<Input>, count: usize, choice: u8) -> Option<steps::StepEvent<Input>> {
    let any_step = NAMES[usize::from(choice / 8) % count].to_owned();
    match choice % 8 {
        5 => return Some(cancelled()),
        6 => return Some(Resolved { step: any_step, value: Value::Null }),
        7 => return Some(Rejected { step: any_step, reason: "no".to_owned() }),
        _ => {}
    }
    let is_running = run.phase == Phase::Running;
    let has_timer = |state: &StepState| is_running || !matches!(state, StepState::Retrying { .. });
    let open = run.steps.iter().filter(|(_, state)| has_timer(state));
    let open: Vec<_> = open.filter_map(|(step, state)| reply(step, state, choice % 8)).collect();
    let place = usize::from(choice / 8) % open.len().max(1);
    open.into_iter().nth(place)
}

/// Returns the reply or timer that an open step waits for.
fn reply(step: &str, state: &StepState, choice: u8) -> Option<steps::StepEvent<Input>> {
    Some(match (state, choice) {
        (StepState::Requested { .. }, 1 | 2) => refused(step),
        (StepState::Requested { attempt }, 3 | 4) => failed(step, *attempt, None),
        (StepState::Requested { .. }, _) => completed(step),
        (StepState::Undoing { .. }, 1) => UndoRefused { step: step.to_owned(), reason: "late".to_owned() },
        (StepState::Undoing { .. }, _) => undone(step),
        (StepState::Retrying { .. }, _) => RetryDue { step: step.to_owned() },
        (StepState::Waiting, _) => Resolved { step: step.to_owned(), value: Value::Null },
        _ => return None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever happens in a run, it ends once its open steps are settled, and waits for nothing afterwards.
    #[test]
    fn every_list_of_steps_ends(shape in shapes(), choices in prop::collection::vec(any::<u8>(), 0..24)) {
        let mut names = NAMES.into_iter();
        let steps = built(&shape, &mut names);
        let Some(machine) = steps.and_then(|steps| StepMachine::new(steps).ok()) else { return Ok(()) };
        let count = NAMES.len() - names.len();
        let mut run = Run::default();
        let late_start = choices.first().is_some_and(|choice| choice % 2 == 0);
        let events = choices.into_iter().skip(1).chain(std::iter::repeat_n(0, 100));
        if !late_start {
            next(&machine, &mut run, &started());
        }
        for (n, choice) in events.enumerate() {
            if n == 2 && late_start {
                next(&machine, &mut run, &started());
            }
            let Some(event) = event_for(&run, count, choice) else { continue };
            if matches!(decide(&machine, &run, &event), Decision::Advance(_)) {
                next(&machine, &mut run, &event);
            }
        }
        prop_assert!(run.ended_at().is_some(), "{shape:?} does not end: {run:?}");
    }
}
