//! A saga as small as can be: somebody asks a desk, and waits for an answer or until the patience ends. With everything
//! that a workload needs.

use std::time::Duration;

use async_trait::async_trait;
use dedup::{Asked, Done, Handler, HandlerError};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{PartitionKey, Queue, QueueSpec, Reporter, messages};
use outbox::session::CommitError;
use outbox::{Key, View};
use saga::{Decision, Engine, Event, Function, SAGA, Saga, Service, Source, System};
use serde::{Deserialize, Serialize};
use simulation::{Access, Call, Checked, Rest, Rng, Workload};
use uuid::Uuid;

const DESK: Queue = Queue::named("desk");

messages! {
    /// What happens to a question.
    pub(crate) enum Happened of "desk" to SAGA {
        Asked { number: u64 } = 1,
        Answered {} = 1,
        PatienceEnded {} = 1,
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
    },
    Over {
        number: u64,
        answered: bool,
        at: Timestamp,
    },
}

pub(crate) struct Question;

impl Saga for Question {
    const NAME: &'static str = "desk";
    type State = State;
    type Event = Happened;

    fn transition(&self, state: &State, event: &Event<'_, Happened>, now: Timestamp) -> Decision<State> {
        let over = |number, answered| Decision::to(State::Over { number, answered, at: now }, "over").show();
        match (state, event.body) {
            (State::New, Happened::Asked { number }) => {
                let ends = now + SignedDuration::from_mins(1);
                Decision::to(State::Waiting { number: *number }, "asked the desk")
                    .ask(&Request::Answer { number: *number })
                    .schedule("patience", ends, &Happened::PatienceEnded {})
                    .show()
                    .into()
            }
            (State::Waiting { number }, Happened::Answered {}) => {
                over(*number, true).cancel("patience").into()
            }
            (State::Waiting { number }, Happened::PatienceEnded {}) => over(*number, false).into(),
            _ => Decision::ignore("nothing to do"),
        }
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        if let State::Over { at, .. } = state { Some(*at) } else { None }
    }

    fn view(&self, partition: PartitionKey, state: &State) -> Option<View> {
        let ended = self.ended_at(state).is_some();
        let body = serde_json::to_value(state).ok()?;
        let created_at = Timestamp::UNIX_EPOCH;
        Some(View { partition, revision: 0, ended, list: Uuid::nil(), created_at, body })
    }
}

struct Desk;

#[async_trait]
impl Handler for Desk {
    type Command = Request;

    async fn handle(
        &self,
        _: &Asked<Request>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<Done, HandlerError> {
        Done::because("answered").reply(&Happened::Answered {})
    }
}

static RUNS: Function<Engine> = Function {
    name: "desk-saga",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, DESK],
    drains: &[],
    build: Some(|engine| engine.run("desk-saga", Question)),
};

static ANSWERS: Function<Engine> = Function {
    name: "desk",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(DESK),
    sends: &[SAGA],
    drains: &[],
    build: Some(|engine| engine.guard("desk", Desk)),
};

static SYSTEM: System<Engine> = System {
    name: "desk",
    queues: &[
        QueueSpec::worked(SAGA, Queue::named("saga-dead"), 20, 30, 10, 2),
        QueueSpec::kept(Queue::named("saga-dead")),
        QueueSpec::worked(DESK, Queue::named("desk-dead"), 20, 30, 10, 2),
        QueueSpec::kept(Queue::named("desk-dead")),
    ],
    functions: &[&RUNS, &ANSWERS],
};

/// The workload: with a defect of its own, or without.
#[derive(Clone, Copy, Default)]
pub(crate) struct Questions {
    /// Whether the clients give all questions one number.
    pub(crate) numbers_repeat: bool,
}

impl Workload for Questions {
    type Saga = Question;
    type Ports = Engine;
    type World = ();

    fn saga(&self) -> Question {
        Question
    }

    fn system(&self) -> &'static System<Engine> {
        &SYSTEM
    }

    fn ports(&self, engine: Engine, _: Access<()>) -> Engine {
        engine
    }

    fn patience(&self) -> Option<Duration> {
        Some(Duration::from_secs(60))
    }

    fn client(&self, engine: Engine, _: Access<()>, mut rng: Rng) -> BoxFuture<'static, ()> {
        let numbers_repeat = self.numbers_repeat;
        Box::pin(async move {
            for _ in 0..rng.between(1, 3) {
                ask(&engine, numbers_repeat).await;
            }
        })
    }

    fn unused(&self) -> &'static [Call] {
        &[Call::VIEWS_READ]
    }

    fn check(&self, rest: &Rest<'_, Self>) -> Checked {
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

/// Numbers a question and asks it. Two clients that number at the same time begin again.
async fn ask(engine: &Engine, numbers_repeat: bool) {
    let Ok(entry) = engine.entry_point("counter") else { return };
    let counter = Key::new("counter", "questions");
    for _ in 0..10 {
        let mut session = entry.session(PartitionKey::from_uuid(engine.host.fresh_id()));
        let Ok(found) = session.read(counter.clone()).await else { return };
        let last = found.and_then(|record| record.body.as_u64()).unwrap_or(0);
        let number = if numbers_repeat { 1 } else { last + 1 };
        session.write(counter.clone(), number.into());
        if session.send(&Happened::Asked { number }).is_err() {
            return;
        }
        match session.commit().await {
            Err(CommitError::Changed) => {}
            Ok(_) | Err(_) => return,
        }
    }
}
