//! A minimal saga: a client sends a question to a desk, and waits for an answer or a timeout. The test implements all
//! parts of a workload.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{DecisionRecord, PartitionKey, Queue, QueueSpec, Reporter, Verdict, messages};
use outbox::session::CommitError;
use outbox::{Key, View};
use saga::{Advance, Decision, Engine, Event, Function, Recurrence, SAGA, Saga, Service, Source, System};
use serde::{Deserialize, Serialize};
use simulation::{Access, Bounds, Call, Change, CheckResult, Mode, Rest, Rng, Scene, Workload};

const DESK: Queue = Queue::named("desk");

messages! {
    /// The events of a question.
    pub(crate) enum DeskEvent of "desk" to SAGA {
        Asked { number: u64 } = 1,
        Answered {} = 1,
        Reminded {} = 1,
        PatienceEnded {} = 1,
        Checked { due: Timestamp } = 1,
    }
}

messages! {
    /// Requests to the desk.
    pub(crate) enum Request of "desk" to DESK {
        Answer { number: u64 } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    #[default]
    New,
    Waiting {
        number: u64,
        /// The times at which a question that waits for months was checked.
        checks: Vec<Timestamp>,
    },
    Over {
        number: u64,
        answered: bool,
        at: Timestamp,
    },
}

/// The saga, with a defect or without.
#[derive(Default)]
pub(crate) struct Question {
    /// `true` if the next check depends only on the clock of the worker.
    checks_by_clock: bool,
}

/// The schedule of the checks of a question that waits for months.
const MONTHLY: Recurrence = Recurrence::every(SignedDuration::from_hours(24 * 30));

impl Saga for Question {
    const NAME: &'static str = "desk";
    type State = State;
    type Event = DeskEvent;

    fn transition(&self, state: &State, event: &Event<'_, DeskEvent>, now: Timestamp) -> Decision<State> {
        let over = |number, answered| Decision::to(State::Over { number, answered, at: now }, "over").show();
        match (state, event.body) {
            (State::New, DeskEvent::Asked { number }) => {
                let ends = now + patience(*number);
                let waiting = State::Waiting { number: *number, checks: Vec::new() };
                let asked = Decision::to(waiting, "asked the desk")
                    .ask(&Request::Answer { number: *number })
                    .schedule("patience", ends, &DeskEvent::PatienceEnded {})
                    .show();
                if is_kept(*number) { check_later(asked, now, None).into() } else { asked.into() }
            }
            (State::Waiting { number, checks }, DeskEvent::Checked { due }) => {
                let checks = checks.iter().copied().chain([*due]).collect();
                let checked = Decision::to(State::Waiting { number: *number, checks }, "it waits");
                check_later(checked, now, (!self.checks_by_clock).then_some(*due)).into()
            }
            (State::Waiting { number, .. }, DeskEvent::Answered {}) if is_doubtful(*number) => {
                Decision::ignore("the answer is doubtful")
            }
            (State::Waiting { number, .. }, DeskEvent::Answered {}) => {
                over(*number, true).cancel("patience").cancel("check").into()
            }
            (State::Waiting { number, .. }, DeskEvent::PatienceEnded {}) => {
                over(*number, false).cancel("check").into()
            }
            (State::New, DeskEvent::Reminded {}) => {
                Decision::postpone("postponed: the question is not known")
            }
            _ => Decision::ignore("nothing to do"),
        }
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        if let State::Over { at, .. } = state { Some(*at) } else { None }
    }

    fn view(&self, partition: PartitionKey, state: &State) -> Option<View> {
        View::of(partition, state, self.ended_at(state).is_some()).ok()
    }
}

fn check_later(advance: Advance<State>, now: Timestamp, last: Option<Timestamp>) -> Advance<State> {
    advance.repeat("check", &MONTHLY, now, last, |due| DeskEvent::Checked { due })
}

/// The question waits for months: the desk keeps it, and never answers.
fn is_kept(number: u64) -> bool {
    number.is_multiple_of(3)
}

/// The answer is ignored.
fn is_doubtful(number: u64) -> bool {
    number % 3 == 2
}

const MONTHS: SignedDuration = SignedDuration::from_hours(24 * 120);

fn patience(number: u64) -> SignedDuration {
    if is_kept(number) { MONTHS } else { SignedDuration::from_mins(1) }
}

struct Desk;

#[async_trait]
impl Handler for Desk {
    type Command = Request;

    async fn handle(
        &self,
        asked: &CommandMessage<Request>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        match asked.command {
            Request::Answer { number } if is_kept(number) => Ok(HandlerResult::completed("kept")),
            Request::Answer { .. } => HandlerResult::completed("answered").reply(&DeskEvent::Answered {}),
        }
    }
}

static RUNS: Function<Engine> = Function {
    name: "desk-saga",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, DESK],
    drains: &[],
    build: Some(|engine| engine.run("desk-saga", Question::default())),
};

static RUNS_BY_CLOCK: Function<Engine> = Function {
    name: "desk-saga",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, DESK],
    drains: &[],
    build: Some(|engine| engine.run("desk-saga", Question { checks_by_clock: true })),
};

static ANSWERS: Function<Engine> = Function {
    name: "desk",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(DESK),
    sends: &[SAGA],
    drains: &[],
    build: Some(|engine| engine.guard("desk", Desk)),
};

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::with_consumer(SAGA, Queue::named("saga-dead"), 20, 30, 10, 2),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::with_consumer(DESK, Queue::named("desk-dead"), 20, 30, 10, 2),
    QueueSpec::without_consumer(Queue::named("desk-dead")),
];

static SYSTEM: System<Engine> = System { name: "desk", queues: &QUEUES, functions: &[&RUNS, &ANSWERS] };

/// The system whose saga repeats its checks by the clock of the worker alone.
static SYSTEM_BY_CLOCK: System<Engine> =
    System { name: "desk", queues: &QUEUES, functions: &[&RUNS_BY_CLOCK, &ANSWERS] };

/// The reminders of questions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reminders {
    committed: BTreeSet<PartitionKey>,
    decided: BTreeSet<PartitionKey>,
}

/// The workload, with or without its own defect.
#[derive(Clone, Copy, Default)]
pub(crate) struct Questions {
    /// `true` if the clients give all questions the same number.
    pub(crate) numbers_repeat: bool,
    /// `true` if the next check of a question depends only on the clock of the worker.
    pub(crate) checks_by_clock: bool,
}

impl Workload for Questions {
    type Saga = Question;
    type Ports = Engine;
    type World = Reminders;

    fn saga(&self) -> Question {
        Question { checks_by_clock: self.checks_by_clock }
    }

    fn system(&self) -> &'static System<Engine> {
        if self.checks_by_clock { &SYSTEM_BY_CLOCK } else { &SYSTEM }
    }

    fn ports(&self, engine: Engine, _: Access<Reminders>) -> Engine {
        engine
    }

    fn patience(&self) -> Option<Duration> {
        Some(MONTHS.unsigned_abs())
    }

    fn bounds(&self, _: &Reminders, _: PartitionKey) -> Bounds {
        // The answer, the timeout and the next check.
        Bounds { awaited: 3, ..Bounds::default() }
    }

    fn client(&self, engine: Engine, access: Access<Reminders>, mut rng: Rng) -> BoxFuture<'static, ()> {
        let numbers_repeat = self.numbers_repeat;
        // Without a ledger, a duplicate is recognized only while the documents exist.
        let may_wait = access.mode() == Mode::Ledger;
        Box::pin(async move {
            for _ in 0..rng.between(1, 3) {
                let asked = ask(&engine, numbers_repeat, may_wait).await;
                if let Some(question) = asked.filter(|_| rng.one_in(3))
                    && remind(&engine, question).await
                {
                    access.with(|scene| scene.committed.insert(question));
                }
            }
        })
    }

    fn unused(&self) -> &'static [Call] {
        &[Call::VIEWS_READ, Call::RECORDS_ADVANCE]
    }

    fn changed(&self, change: &Change<'_, Question>) -> CheckResult {
        let State::Waiting { checks, .. } = change.after else { return Ok(()) };
        if checks.is_sorted_by(|earlier, later| earlier < later) {
            return Ok(());
        }
        Err(format!("a question is checked twice at one time: {checks:?}").into())
    }

    fn observed(&self, scene: &mut Scene<'_, Reminders>, observation: &DecisionRecord) -> CheckResult {
        let is_final =
            !matches!(observation.verdict, Verdict::Retried | Verdict::Rejected | Verdict::Dispatched);
        if let Some(question) =
            observation.partition.filter(|_| is_final && observation.message == "Reminded")
        {
            scene.decided.insert(question);
        }
        Ok(())
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        if let Some(question) = rest.committed.difference(&rest.decided).next() {
            return Err(format!("the reminder of question {question} is lost").into());
        }
        let states = rest.partitions().into_iter().filter_map(|partition| rest.state(partition));
        let mut numbers: Vec<u64> = states
            .filter_map(|state| if let State::Over { number, .. } = state { Some(*number) } else { None })
            .collect();
        let count = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() < count { Err("two questions have one number".to_owned().into()) } else { Ok(()) }
    }

    fn succeeded(&self, state: &State) -> bool {
        matches!(state, State::Over { answered: true, .. })
    }
}

/// Numbers a question and asks it. Two clients that choose a number concurrently start again.
async fn ask(engine: &Engine, numbers_repeat: bool, may_wait: bool) -> Option<PartitionKey> {
    let Ok(entry) = engine.entry_point("counter") else { return None };
    let counter = Key::new("counter", "questions");
    for _ in 0..10 {
        let question = PartitionKey::from_uuid(engine.host.fresh_id());
        let mut session = entry.session(question);
        let Ok(found) = session.read(counter.clone()).await else { return None };
        let last = found.and_then(|record| record.body.as_u64()).unwrap_or(0);
        let next = if is_kept(last + 1) && !may_wait { last + 2 } else { last + 1 };
        let number = if numbers_repeat { 1 } else { next };
        session.write(counter.clone(), number.into());
        if session.send(&DeskEvent::Asked { number }).is_err() {
            return None;
        }
        match session.commit().await {
            Err(CommitError::Changed) => {}
            Ok(_) => return Some(question),
            Err(_) => return None,
        }
    }
    None
}

/// Sends an event that changes nothing, and is postponed if it overtakes its question. Returns `true` if it is certainly
/// sent.
async fn remind(engine: &Engine, question: PartitionKey) -> bool {
    let Ok(entry) = engine.entry_point("counter") else { return false };
    let mut session = entry.session(question);
    session.send(&DeskEvent::Reminded {}).is_ok() && session.commit().await.is_ok()
}
