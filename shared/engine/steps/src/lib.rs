//! Sagas as lists of steps with compensation.
//!
//! A list says which steps run in sequence and which in parallel, on which conditions, within which time, and where the
//! run waits for a signal. Each step is performed by an [`Activity`], which can also undo it. If a step is refused, a
//! deadline passes or a client cancels, the completed steps are undone in reverse order.
//!
//! The list is data. [`StepMachine`] turns it into an ordinary [`saga::Saga`], so it has the guarantees of the engine:
//! every event takes effect once, and every command is sent and answered. The simulator checks the decisions of the
//! list without additional code of the application (module `checks`, feature `simulation`).
//!
//! ```
//! # use async_trait::async_trait;
//! # use jiff::SignedDuration;
//! # use messages::Queue;
//! # use serde::{Deserialize, Serialize};
//! # use steps::{Activity, ActivityError, Call, Phase, StepMachine, StepSaga, Steps, par, seq, step, wait};
//! # struct Reserve;
//! # #[async_trait]
//! # impl Activity for Reserve {
//! #     const SYSTEM: &'static str = "travel";
//! #     const PERFORM: &'static str = "Reserve";
//! #     const UNDO: &'static str = "Release";
//! #     type Input = String;
//! #     type Output = String;
//! #     async fn perform(&self, call: &Call<'_, String>) -> Result<String, ActivityError> { Ok(call.input.clone()) }
//! #     async fn undo(&self, _: &Call<'_, String>) -> Result<(), ActivityError> { Ok(()) }
//! # }
//! #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
//! struct Trip {
//!     flight: String,
//!     car: Option<String>,
//! }
//!
//! impl StepSaga for Trip {
//!     const NAME: &'static str = "trips";
//!     const SYSTEM: &'static str = "travel";
//!
//!     fn steps() -> Steps<Self> {
//!         seq([
//!             par([
//!                 step::<Reserve, Self>("flight", Queue::named("flights"), |trip| trip.flight.clone()),
//!                 step::<Reserve, Self>("car", Queue::named("cars"), |trip| trip.car.clone().unwrap_or_default())
//!                     .when(|trip| trip.car.is_some()),
//!             ])
//!             .within("reserving", SignedDuration::from_mins(15)),
//!             wait("approval").within("approving", SignedDuration::from_hours(24)),
//!         ])
//!     }
//! }
//!
//! assert!(StepMachine::new(Trip::steps()).is_ok());
//! ```
//!
//! In reading order: [`StepSaga`] is what an application implements for the input of its runs; [`list`] the list;
//! [`activity`] the interface for the work of a step, and [`worker`](mod@worker) its handler; [`run`] the state;
//! [`event`] the messages; [`machine`] and `turn` the transitions; `demand` the number of tokens; [`defect`] the
//! defects for tests; [`client`] the interface for clients.

pub mod activity;
#[cfg(feature = "simulation")]
pub mod checks;
pub mod client;
pub mod defect;
mod demand;
pub mod event;
pub mod list;
pub mod machine;
pub mod run;
mod turn;
pub mod worker;

use std::fmt::Debug;
use std::sync::Arc;

use async_trait::async_trait;
use messages::{Consumer, Queue};
use saga::engine::OpenSession;
use saga::system::Build;
use saga::{Advance, Engine, Function, MissingSetting, SAGA, Service, Source, System};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

pub use activity::{Activity, ActivityError, Call};
pub use client::{Client, ClientError};
pub use defect::Defect;
pub use event::{StepEvent, Verb};
pub use list::{InDoubt, RetryPolicy, Steps, par, seq, step, wait};
pub use machine::{InvalidSteps, StepMachine};
pub use run::{Context, Phase, Run, Signal, StepState};
pub use worker::Worker;

/// The input of a run, and the steps of runs with this input.
#[async_trait]
pub trait StepSaga: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The name of the saga.
    const NAME: &'static str;
    /// The system that the messages of the saga belong to.
    const SYSTEM: &'static str;
    /// The queue of its events. Each list of a system needs its own. The queue of an activity can serve several lists.
    const QUEUE: Queue = SAGA;
    /// The version of the input and of the list, from 1. A run follows the list of the version with which it started,
    /// to its end. A new step is [`Steps::since`] the new version, and a removed one [`Steps::until`] it.
    const VERSION: u16 = 1;

    /// Returns the steps of all versions.
    fn steps() -> Steps<Self>;

    /// Upgrades an input from version `from` to version `from + 1`.
    ///
    /// # Errors
    /// Returns the reason if that version is no longer supported.
    fn upcast(from: u16, _input: Value) -> Result<Value, String> {
        Err(format!("version {from} of the input is not supported"))
    }

    /// Returns the list in which readers find the run.
    fn list(&self) -> Uuid {
        Uuid::nil()
    }

    /// Returns further lists that contain the run, at most [`outbox::MAX_FURTHER_LISTS`].
    fn further_lists(&self) -> Vec<Uuid> {
        Vec::new()
    }

    /// Reads and writes the application's records in the transaction that starts the run. It is repeated after a
    /// conflict, so it may only use the session.
    ///
    /// # Errors
    /// Returns [`ClientError::Refused`] if the run must not start.
    async fn start(&self, _key: &str, _session: &mut OpenSession<'_>) -> Result<(), ClientError> {
        Ok(())
    }

    /// Adds effects to the end of a run, such as an announcement.
    fn ended(_run: &Run<Self>, end: Advance<Run<Self>>) -> Advance<Run<Self>> {
        end
    }
}

/// Returns the consumer of an activity's queue. It replies to the list that sent the command. `I` is the list of
/// commands that do not name one, which earlier versions sent.
pub fn worker<I: StepSaga, A: Activity>(
    engine: &Engine,
    function: &'static str,
    activity: A,
) -> Result<Arc<dyn Consumer>, MissingSetting> {
    engine.guard(function, Worker::<I, A>::new(activity))
}

/// One list, or a tuple of up to four lists, whose steps share the queue of an activity.
pub trait Lists {
    /// The queues of their events.
    const QUEUES: &'static [Queue];
}

impl<I: StepSaga> Lists for I {
    const QUEUES: &'static [Queue] = &[I::QUEUE];
}

impl<A: StepSaga, B: StepSaga> Lists for (A, B) {
    const QUEUES: &'static [Queue] = &[A::QUEUE, B::QUEUE];
}

impl<A: StepSaga, B: StepSaga, C: StepSaga> Lists for (A, B, C) {
    const QUEUES: &'static [Queue] = &[A::QUEUE, B::QUEUE, C::QUEUE];
}

impl<A: StepSaga, B: StepSaga, C: StepSaga, D: StepSaga> Lists for (A, B, C, D) {
    const QUEUES: &'static [Queue] = &[A::QUEUE, B::QUEUE, C::QUEUE, D::QUEUE];
}

/// Returns a function behind a queue that sends events to the sagas of the lists.
const fn function_of<L: Lists, P>(
    name: &'static str,
    services: &'static [Service],
    queue: Queue,
    build: Build<P>,
) -> Function<P> {
    Function {
        name,
        services,
        source: Source::Queue(queue),
        sends: L::QUEUES,
        drains: &[],
        build: Some(build),
    }
}

/// Returns the function of an activity's queue, which serves these lists; `build` calls [`worker()`].
pub const fn worker_function<L: Lists, P>(name: &'static str, queue: Queue, build: Build<P>) -> Function<P> {
    function_of::<L, P>(name, &[Service::DATABASE, Service::PROCESSED, Service::TOKENS], queue, build)
}

/// Returns the consumer of the dead-letter queue of an activity's queue. A dead-lettered command counts as a failed
/// attempt of its step, in the list that sent it. An undo, and a command whose outcome the run has to know, remain
/// failures for an operator. `I` is the list of commands that do not name one.
///
/// # Errors
/// Returns an error if a service that it uses is not configured, or the queue has no dead-letter queue.
pub fn report_dead_letters<I: StepSaga, A: Activity, P>(
    engine: &Engine,
    function: &'static str,
    system: &System<P>,
    queue: Queue,
) -> Result<Arc<dyn Consumer>, MissingSetting> {
    engine.report_dead_letters_of(queue, function, system, worker::DeadLetters::<I, A>::default())
}

/// Returns the function of a dead-letter queue, which reports to these lists; `build` calls [`report_dead_letters`].
pub const fn dead_letters_function<L: Lists, P>(
    name: &'static str,
    queue: Queue,
    build: Build<P>,
) -> Function<P> {
    function_of::<L, P>(name, &[Service::DATABASE, Service::LEDGER], queue, build)
}
