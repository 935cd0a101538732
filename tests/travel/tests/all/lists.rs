//! Two lists of steps in one system, whose runs have the same key.

use std::sync::Arc;

use async_trait::async_trait;
use local::{FaultInjection, Runner};
use messages::{Queue, QueueSpec};
use outbox::session::CONTROL;
use saga::{Engine, Function, SAGA, System};
use serde::{Deserialize, Serialize};
use steps::{
    Activity, ActivityError, Call, Client, ClientError, StepMachine, StepSaga, Steps, step, worker,
    worker_function,
};
use system_host::SystemHost;

const VISAS: Queue = Queue::named("visas");
const OFFICES: Queue = Queue::named("offices");
const DESKS: Queue = Queue::named("desks");

/// A tour of a traveller, who needs a seat.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Tour(Option<String>);

impl StepSaga for Tour {
    const NAME: &'static str = "tours";
    const SYSTEM: &'static str = "agency";

    fn steps() -> Steps<Self> {
        step::<Desk, Self>("seat", DESKS, |_| "seat".to_owned())
    }
}

/// A visa of a traveller, which is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Visa(String);

impl StepSaga for Visa {
    const NAME: &'static str = "visas";
    const SYSTEM: &'static str = "agency";
    const QUEUE: Queue = VISAS;

    fn steps() -> Steps<Self> {
        step::<Desk, Self>("stamp", OFFICES, |_| "stamp".to_owned())
    }
}

struct Desk;

#[async_trait]
impl Activity for Desk {
    const SYSTEM: &'static str = "agency";
    const PERFORM: &'static str = "Grant";
    const UNDO: &'static str = "Withdraw";
    type Input = String;
    type Output = ();

    async fn perform(&self, call: &Call<'_, String>) -> Result<(), ActivityError> {
        match call.input.as_str() {
            "seat" => Ok(()),
            _ => Err(ActivityError::Refused("the passport is missing".to_owned())),
        }
    }

    async fn undo(&self, _: &Call<'_, String>) -> Result<(), ActivityError> {
        Ok(())
    }
}

static QUEUES: [QueueSpec; 10] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(VISAS, Queue::named("visas-dead")),
    QueueSpec::without_consumer(Queue::named("visas-dead")),
    QueueSpec::standard(DESKS, Queue::named("desks-dead")),
    QueueSpec::without_consumer(Queue::named("desks-dead")),
    QueueSpec::standard(OFFICES, Queue::named("offices-dead")),
    QueueSpec::without_consumer(Queue::named("offices-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 5] = [CONTROL, SAGA, VISAS, DESKS, OFFICES];
static TOURS: Function<Engine> = Function::saga::<StepMachine<Tour>>(&SENDS);
static VISAS_FUNCTION: Function<Engine> = Function::saga::<StepMachine<Visa>>(&SENDS);
static DESKS_FUNCTION: Function<Engine> =
    worker_function::<Tour, _>("desks", DESKS, |engine| worker::<Tour, _>(engine, "desks", Desk));
static OFFICES_FUNCTION: Function<Engine> =
    worker_function::<Visa, _>("offices", OFFICES, |engine| worker::<Visa, _>(engine, "offices", Desk));
static OUTBOX: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> = System {
    name: "agency",
    queues: &QUEUES,
    functions: &[&TOURS, &VISAS_FUNCTION, &DESKS_FUNCTION, &OFFICES_FUNCTION, &OUTBOX],
};

#[tokio::test(flavor = "multi_thread")]
async fn lists_with_their_own_queues_are_independent() {
    let dir = tempfile::tempdir().unwrap();
    let faults = FaultInjection { copies: 2, ..FaultInjection::default() };
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await.unwrap();
    let tours = Client::<Tour>::new(&runner.ports(), "web", StepMachine::default()).unwrap();
    let visas = Client::<Visa>::new(&runner.ports(), "web", StepMachine::default()).unwrap();
    let ends = async {
        assert!(matches!(tours.start("4712", &Tour(None)).await, Err(ClientError::Stage(_))), "it is null");
        tours.start("4711", &Tour(Some("Ada".to_owned()))).await.unwrap();
        visas.start("4711", &Visa("Ada".to_owned())).await.unwrap();
        runner.settled().await.unwrap();
        let state = |view: outbox::View| view.body["state"].as_str().unwrap_or_default().to_owned();
        [state(tours.run("4711").await.unwrap()), state(visas.run("4711").await.unwrap())]
    };
    assert_eq!(runner.run_until(ends).await.unwrap(), ["completed", "undone"]);
}
