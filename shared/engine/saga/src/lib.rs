//! Durable sagas.
//!
//! A saga is a state machine for each partition: [`Saga::transition`] says what an event changes and what is to be done
//! about it, as data, and does nothing itself. This crate does it, so that every event takes effect once, whatever is
//! delivered twice, late or out of order, and whatever crashes in between. One message goes this way: *claim* the
//! partition while *loading* its document, *decide*, *store* state and effects in one write, *send*, *release*.
//!
//! In reading order:
//! - [`state_machine`]: what an application writes: [`Saga`], and the events that it gets;
//! - [`decision`]: what a transition answers;
//! - [`document`]: what is stored of a partition, and the ports to it;
//! - [`plan`]: what one attempt at one group of messages is going to do, as a pure function;
//! - [`runner`]: the saga behind its queue, attempt by attempt;
//! - [`settings`]: the numbers;
//! - [`views`]: what readers see, as of now;
//! - [`engine`]: all ports of an installation, and what is built of them: runner, guarded handlers, sessions;
//! - [`operator`]: what an operator does with effects that were given up;
//! - [`failures`]: everything that was given up, in one place, and putting it back to work;
//! - [`history`]: what was decided about each message, kept where it can be looked up;
//! - [`sweeps`]: when outboxes were swept, for whoever wants to know;
//! - [`system`]: an application's queues and functions as one table.
//!
//! What the crate does not do: it does not retry what a queue retries better. Only a concurrency conflict is tried again
//! in place, because the reason for it is gone the moment it is noticed. It knows neither a runtime nor a store.

pub mod decision;
pub mod document;
pub mod engine;
pub mod failures;
pub mod history;
pub mod operator;
pub mod plan;
mod round;
pub mod runner;
pub mod settings;
pub mod state_machine;
pub mod sweeps;
pub mod system;
pub mod views;

pub use decision::{Advance, Decision, Effect};
pub use document::{
    Awaited, Content, Document, Expected, Loaded, Persist, Persisted, Processed, ReadDocuments,
    WriteDocuments,
};
pub use engine::{Engine, EntryPoint, Partitions, SAGA, Stores};
pub use failures::{Failures, KeepFailures};
pub use history::KeepHistory;
pub use operator::Operator;
pub use runner::{Ports, run};
pub use settings::Settings;
pub use state_machine::{Event, Saga};
pub use sweeps::Sweeps;
pub use system::{Function, Missing, Service, Source, System};
pub use views::Views;
