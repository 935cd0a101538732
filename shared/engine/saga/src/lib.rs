//! Durable sagas.
//!
//! A saga is a state machine with one instance for each partition. [`Saga::transition`] is pure: it returns the next
//! state and the effects as data. This crate carries them out so that every event takes effect once, in spite of
//! duplicates, delays, reordering and crashes. Each message passes these steps: *load* the document, *claim* the
//! partition, *decide*, *store* state and effects in one write, *send*, *release*.
//!
//! In reading order:
//! - [`state_machine`]: the trait that an application implements, [`Saga`], and its events;
//! - [`decision`]: the result of a transition, such as a new state with effects, or to postpone an early event;
//! - [`recurrence`]: the times of recurring timers;
//! - [`instance`]: the instances of sagas, and the messages between them; [`requester`]: the sender of a request;
//! - [`document`]: the stored form of a partition, and the ports that read and write it;
//! - [`plan`]: the work of one attempt at one group of messages, as a pure function;
//! - [`runner`]: the consumer of the saga's queue, which repeats attempts;
//! - [`settings`]: the runner's settings;
//! - [`views`]: up-to-date views for readers;
//! - [`ports`]: the ports of an installation and of a saga;
//! - [`engine`]: all ports of an installation, and the runners, handlers and sessions that are built from them;
//! - [`requests`]: requests whose response is stored under their idempotency key;
//! - [`operator`]: an operator's actions on exhausted effects; [`control`]: pausing, resuming and terminating an
//!   instance; [`intervention`]: the stored reason; [`send_event`]: an operator's event for an instance;
//! - [`failures`]: a store of all failures, and their retry;
//! - [`dead_letters`]: reports of dead-lettered commands to the sagas that requested them;
//! - [`history`]: a store of the decision about each message;
//! - [`sweeps`]: the time of the last outbox sweep;
//! - [`system`]: an application's queues and functions as one table; `functions`: the usual entries of it;
//! - [`Upkeep`]: an application's work in the background.
//!
//! # Guarantees
//!
//! - Each event changes the state once, however often and late it is delivered, and each effect of the change is
//!   performed.
//! - An event that no state expects is ignored explicitly, postponed, or rejected and kept.
//! - A document disappears after its retention, with its outbox and its ledger item. Views and records of the application
//!   remain.
//!
//! A transition has no access to stores or services: it may run several times for one event, so only its result counts.
//!
//! # Example
//!
//! ```
//! use jiff::Timestamp;
//! use messages::{Message, MessageId, PartitionKey, Payload, Queue, messages};
//! use saga::{Decision, Event, SAGA, Saga};
//! use serde::{Deserialize, Serialize};
//! use uuid::Uuid;
//!
//! messages! {
//!     /// The events of a parcel.
//!     pub enum Parcel of "post" to SAGA {
//!         /// It was posted.
//!         Posted {} = 1,
//!         /// It has arrived.
//!         Arrived {} = 1,
//!     }
//! }
//!
//! #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
//! enum State {
//!     #[default]
//!     New,
//!     Posted,
//!     Arrived(Timestamp),
//! }
//!
//! struct Parcels;
//!
//! impl Saga for Parcels {
//!     const NAME: &'static str = "parcels";
//!     type State = State;
//!     type Event = Parcel;
//!
//!     fn transition(&self, state: &State, event: &Event<'_, Parcel>, now: Timestamp) -> Decision<State> {
//!         match (state, event.body) {
//!             (State::New, Parcel::Posted {}) => Decision::to(State::Posted, "on its way").into(),
//!             (State::Posted, Parcel::Arrived {}) => Decision::to(State::Arrived(now), "arrived").into(),
//!             // Queues keep no order.
//!             (State::New, Parcel::Arrived {}) => Decision::postpone("not posted yet"),
//!             _ => Decision::ignore("it is known"),
//!         }
//!     }
//!
//!     fn ended_at(&self, state: &State) -> Option<Timestamp> {
//!         if let State::Arrived(at) = state { Some(*at) } else { None }
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Transitions are tested without an engine.
//! let (partition, now, posted) = (PartitionKey::named("parcels", "7"), Timestamp::UNIX_EPOCH, Parcel::Posted {});
//! let id = MessageId::from_uuid(Uuid::from_u128(1));
//! let message = Message::new(id, "post", partition, now, posted.body()?);
//! let event = Event::of(&message, &posted);
//! assert!(matches!(Parcels.transition(&State::New, &event, now), Decision::Advance(_)));
//! assert!(matches!(Parcels.transition(&State::Posted, &event, now), Decision::Ignore { .. }));
//! # Ok(())
//! # }
//! ```
//!
//! The crate leaves retries to the queue. Only a concurrency conflict is retried in place, because its cause has ended
//! by the time it is detected. The crate depends on neither a runtime nor a store.

#![warn(clippy::missing_errors_doc)]

pub mod control;
pub mod dead_letters;
pub mod decision;
mod declared;
pub mod document;
pub mod engine;
pub mod failures;
mod functions;
pub mod history;
pub mod instance;
pub mod intervention;
pub mod operator;
pub mod plan;
pub mod ports;
pub mod recurrence;
pub mod requester;
pub mod requests;
mod round;
pub mod runner;
pub mod send_event;
pub mod settings;
pub mod state_machine;
pub mod sweeps;
pub mod system;
mod upkeep;
pub mod views;

pub use control::{Control, ControlError, ControlOutcome};
pub use dead_letters::ReportDeadLetters;
pub use decision::{Advance, Decision, Effect};
pub use declared::WrongTable;
pub use document::{
    Content, Document, ExpectedMessage, ExpectedToken, LoadResult, Persist, PersistOutcome, ProcessedMessage,
    ReadDocuments, WriteDocuments, next_version,
};
pub use engine::{Engine, EntryPoint, OpenSession};
pub use failures::{Failures, KeepFailures};
pub use history::KeepHistory;
pub use instance::{Instance, SAGA};
pub use intervention::Intervention;
pub use operator::Operator;
pub use ports::{Outboxes, Partitions, Ports, Stores};
pub use recurrence::Recurrence;
pub use requester::Requester;
pub use requests::{IdempotentRequest, RequestError, RequestOutcome, Response};
pub use runner::run;
pub use send_event::{EventDelivery, OperatorEvent, SendEventError};
pub use settings::Settings;
pub use state_machine::{Event, Saga};
pub use sweeps::SweepHeartbeat;
pub use system::{AccessError, Function, MissingSetting, Service, Source, System};
pub use upkeep::Upkeep;
pub use views::Views;
