//! Two lists of steps in one system, whose runs have the same key, and whose steps share an activity.

use std::sync::Arc;

use async_trait::async_trait;
use local::{FaultInjection, Runner};
use messages::{Queue, QueueSpec};
use outbox::session::CONTROL;
use saga::{Engine, Function, SAGA, System};
use serde::{Deserialize, Serialize};
use steps::{
    Activity, ActivityError, Call, Client, ClientError, InDoubt, StepEvent, StepMachine, StepSaga, Steps,
    dead_letters_function, report_dead_letters, step, worker, worker_function,
};
use system_host::SystemHost;

const VISAS: Queue = Queue::named("visas");
const DESKS: Queue = Queue::named("desks");
const DESKS_DEAD: Queue = Queue::named("desks-dead");
const FAULTS_DEAD: Queue = Queue::named("desk-faults-dead");

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

/// A visa of a traveller, which is refused or makes the desk crash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Visa(String);

impl StepSaga for Visa {
    const NAME: &'static str = "visas";
    const SYSTEM: &'static str = "agency";
    const QUEUE: Queue = VISAS;

    fn steps() -> Steps<Self> {
        step::<Desk, Self>("stamp", DESKS, |run| run.input.0.clone()).in_doubt(InDoubt::Undo)
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
            "crash" => panic!("the desk crashes"),
            _ => Err(ActivityError::Refused("the passport is missing".to_owned())),
        }
    }

    async fn undo(&self, _: &Call<'_, String>) -> Result<(), ActivityError> {
        Ok(())
    }
}

static QUEUES: [QueueSpec; 9] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(VISAS, Queue::named("visas-dead")).with_events::<StepEvent<Visa>>(),
    QueueSpec::without_consumer(Queue::named("visas-dead")),
    QueueSpec::standard(DESKS, DESKS_DEAD),
    QueueSpec::standard(DESKS_DEAD, FAULTS_DEAD),
    QueueSpec::without_consumer(FAULTS_DEAD),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 4] = [CONTROL, SAGA, VISAS, DESKS];
static TOURS: Function<Engine> = Function::saga::<StepMachine<Tour>>(&SENDS);
static VISAS_FUNCTION: Function<Engine> = Function::saga::<StepMachine<Visa>>(&SENDS);
static DESKS_FUNCTION: Function<Engine> =
    worker_function::<(Tour, Visa), _>("desks", DESKS, |engine| worker::<Tour, _>(engine, "desks", Desk));
static FAULTS: Function<Engine> =
    dead_letters_function::<(Tour, Visa), _>("desk-faults", DESKS_DEAD, |engine| {
        report_dead_letters::<Tour, Desk, _>(engine, "desk-faults", &SYSTEM, DESKS)
    });
static OUTBOX: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> = System {
    name: "agency",
    queues: &QUEUES,
    functions: &[&TOURS, &VISAS_FUNCTION, &DESKS_FUNCTION, &FAULTS, &OUTBOX],
};

#[tokio::test(flavor = "multi_thread")]
async fn lists_that_share_an_activity_are_independent() {
    let dir = tempfile::tempdir().unwrap();
    let faults = FaultInjection { copies: 2, ..FaultInjection::default() };
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await.unwrap();
    let tours = Client::<Tour>::new(&runner.ports(), "web", StepMachine::default()).unwrap();
    let visas = Client::<Visa>::new(&runner.ports(), "web", StepMachine::default()).unwrap();
    let ends = async {
        assert!(matches!(tours.start("4712", &Tour(None)).await, Err(ClientError::Stage(_))), "it is null");
        tours.start("4711", &Tour(Some("Ada".to_owned()))).await.unwrap();
        visas.start("4711", &Visa("stamp".to_owned())).await.unwrap();
        visas.start("4713", &Visa("crash".to_owned())).await.unwrap();
        runner.settled().await.unwrap();
        let state = |view: outbox::View| view.body["state"].as_str().unwrap_or_default().to_owned();
        let [refused, crashed] = ["4711", "4713"].map(|key| visas.run(key));
        [tours.run("4711").await, refused.await, crashed.await].map(|run| state(run.unwrap()))
    };
    assert_eq!(runner.run_until(ends).await.unwrap(), ["completed", "undone", "undone"]);
}
