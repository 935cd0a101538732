//! Messages, and the queues they travel through.
//!
//! A message is opaque in transit: a name, a version, data as JSON, and an envelope (CloudEvents) with its partition,
//! its cause and its tokens. Only its handler reads it, as a [`Payload`] that the application defines with
//! [`messages!`](macro@crate::messages). Earlier versions are upgraded when they are read; newer ones wait for the
//! version of the program that knows them.
//!
//! In reading order:
//! - [`ids`]: identifiers and tokens;
//! - [`message`]: the envelope and the body of a message;
//! - [`reply_address`]: the destination of a reply that goes to another partition;
//! - [`json`]: data that is passed on unread;
//! - [`payload`]: an application's messages, their versions, and reading them;
//! - [`queue`]: queues, their specifications, and the ports to send and receive;
//! - [`delivery`]: a delivery of a message, and the answer to it; [`consumer`]: the code that answers;
//! - [`panics`]: containing a panic so that it affects only its message;
//! - [`host`]: the port for time, sleep and randomness;
//! - [`observe`]: the decisions about messages, for logs and metrics;
//! - [`trace`]: the trace context of messages;
//! - [`naming`]: names that derive from the name of a system;
//! - [`escape`]: escaping untrusted text for terminals and logs;
//! - [`store`]: the error that every store reports.
//!
//! # Guarantees
//!
//! - A message that was encoded can be decoded: encoding fails if it is larger than a queue accepts.
//! - Data that this version does not know stays unchanged on its way through it.
//! - A message of an earlier version is upgraded when it is read, and one of a newer version is reported as such, so that
//!   it can wait.
//!
//! The crate neither delivers messages nor deduplicates them.
//!
//! # Example
//!
//! ```
//! use messages::{Message, MessageId, PartitionKey, Payload, Queue, messages};
//!
//! const CARDS: Queue = Queue::named("cards");
//!
//! messages! {
//!     /// Commands to the payment service.
//!     pub enum Command of "shop" to CARDS {
//!         /// Charges a card.
//!         Charge { cents: u64 } = 1,
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (order, now) = (PartitionKey::named("orders", "7"), jiff::Timestamp::UNIX_EPOCH);
//! let id = MessageId::from_uuid(uuid::Uuid::from_u128(1));
//! let message = Message::new(id, "shop", order, now, Command::Charge { cents: 1_200 }.body()?);
//! let received = Message::decode(&message.encode()?)?;
//! let Command::Charge { cents } = received.read()?;
//! assert_eq!((received.id, cents), (id, 1_200));
//! # Ok(())
//! # }
//! ```

#![warn(clippy::missing_errors_doc)]

// The macros refer to this crate by its path, also inside it.
extern crate self as messages;

pub mod consumer;
pub mod delivery;
pub mod escape;
pub mod host;
pub mod ids;
pub mod json;
pub mod message;
pub mod naming;
pub mod observe;
pub mod panics;
pub mod payload;
pub mod queue;
mod queue_name;
pub mod reply_address;
pub mod store;
pub mod trace;

pub use consumer::{Consumer, deliver};
pub use delivery::{Backoff, DEADLINE_NEAR, Delivery, Disposition};
pub use host::Host;
pub use ids::{AttemptId, MessageId, PartitionKey, SessionId, Token};
pub use json::Json;
pub use message::{Body, DecodeError, EncodeError, Message};
pub use observe::{DecisionRecord, DecisionSink, Metric, RecordedVerdict, Reporter, Verdict};
pub use panics::PanicError;
pub use payload::{EventTypes, Kind, Payload, ReadError};
pub use queue::{
    Depth, InspectQueues, Outgoing, Presence, Queue, QueueSpec, ReceiveMessages, ReceivedMessage, SendError,
    SendMessages, send_one,
};
pub use reply_address::ReplyAddress;
pub use store::StoreError;
pub use trace::Traceparent;

#[doc(hidden)]
pub mod macros {
    //! The items that the macros of this crate expand to.
    pub use {schemars, serde, serde_json, uuid};
}
