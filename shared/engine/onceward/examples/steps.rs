//! A saga as a list of steps: a flight, then a hotel. If the hotel is full, the flight is released. Every message is
//! delivered three times.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{LazyLock, Mutex, PoisonError};

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use onceward::steps::{
    Activity, ActivityError, Call, Client, StepMachine, StepSaga, Steps, seq, step, worker, worker_function,
};
use serde::{Deserialize, Serialize};

const SUPPLIERS: Queue = Queue::named("suppliers");

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Trip {
    city: String,
}

impl StepSaga for Trip {
    const NAME: &'static str = "trips";
    const SYSTEM: &'static str = "travel";

    fn steps() -> Steps<Self> {
        seq([
            step::<Reserve, Self>("flight", SUPPLIERS, |trip| format!("flight to {}", trip.city)),
            step::<Reserve, Self>("hotel", SUPPLIERS, |trip| format!("hotel in {}", trip.city)),
        ])
    }
}

/// The books of the suppliers, by idempotency key.
static BOOKS: LazyLock<Mutex<BTreeSet<String>>> = LazyLock::new(Mutex::default);

struct Reserve;

#[async_trait]
impl Activity for Reserve {
    const SYSTEM: &'static str = "travel";
    const PERFORM: &'static str = "Reserve";
    const UNDO: &'static str = "Release";
    type Input = String;
    type Output = ();

    async fn perform(&self, call: &Call<'_, String>) -> Result<(), ActivityError> {
        if call.input == "hotel in Atlantis" {
            return Err(ActivityError::Refused("there is no such hotel".to_owned()));
        }
        BOOKS.lock().unwrap_or_else(PoisonError::into_inner).insert(call.key.to_owned());
        Ok(())
    }

    async fn undo(&self, call: &Call<'_, String>) -> Result<(), ActivityError> {
        BOOKS.lock().unwrap_or_else(PoisonError::into_inner).remove(call.key);
        Ok(())
    }
}

static QUEUES: [QueueSpec; 6] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(SUPPLIERS, Queue::named("suppliers-dead")),
    QueueSpec::without_consumer(Queue::named("suppliers-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 3] = [CONTROL, SAGA, SUPPLIERS];
static TRIPS: Function<Engine> = Function::saga::<StepMachine<Trip>>(&SENDS);
static RESERVE: Function<Engine> = worker_function::<Trip, _>("suppliers", SUPPLIERS, |engine| {
    worker::<Trip, _>(engine, "suppliers", Reserve)
});
static OUTBOX: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> =
    System { name: "travel", queues: &QUEUES, functions: &[&TRIPS, &RESERVE, &OUTBOX] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, faults) = (tempfile::tempdir()?, FaultInjection { copies: 3, ..FaultInjection::default() });
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await?;
    let client = Client::<Trip>::new(&runner.ports(), "agency", StepMachine::default())?;
    let request = async {
        let mut ends = Vec::new();
        for city in ["Lisbon", "Atlantis"] {
            client.start(city, &Trip { city: city.to_owned() }).await?;
            runner.settled().await?;
            ends.push(client.run(city).await?.body["state"].as_str().unwrap_or_default().to_owned());
        }
        Ok::<_, Box<dyn Error>>(ends)
    };
    let ends = runner.run_until(request).await??;
    let remaining = BOOKS.lock()?.len();
    println!("Lisbon is {}, Atlantis is {}, and {remaining} reservations remain", ends[0], ends[1]);
    Ok(())
}
