//! Messages, and the queues they travel through.
//!
//! A message is opaque while it travels: a name, a version, data as JSON, and an envelope (CloudEvents) with its
//! partition, its cause and its tokens. Only its handler reads it, as a [`Payload`] that the application defines with
//! [`messages!`](macro@crate::messages). An older version is brought up to date on the way; a newer one waits for the release that knows it.
//!
//! In reading order:
//! - [`ids`]: who and what things are, tokens included;
//! - [`message`]: the envelope, and what a message says;
//! - [`json`]: data that is passed on unread;
//! - [`payload`]: an application's messages, their versions, and reading them;
//! - [`queue`]: queues, what is agreed about each, and the ports to send and receive;
//! - [`delivery`]: one received copy of a message, what is to become of it, and who decides that;
//! - [`panics`]: what keeps a panic from costing more than its message;
//! - [`host`]: time, sleep and randomness, which the rest of the code receives instead of reaching for;
//! - [`observe`]: what is told about each message;
//! - [`trace`]: which trace a message belongs to;
//! - [`shown`]: text of others on its way to a terminal or a log;
//! - [`store`]: how every store reports a failure.
//!
//! What the crate does not do: it delivers nothing, and it tells no copy of a message from another.

// The macros name this crate by its path, here too.
extern crate self as messages;

pub mod delivery;
pub mod host;
pub mod ids;
pub mod json;
pub mod message;
pub mod observe;
pub mod panics;
pub mod payload;
pub mod queue;
pub mod shown;
pub mod store;
pub mod trace;

pub use delivery::{Backoff, Consumer, Delivery, Disposition, deliver};
pub use host::Host;
pub use ids::{AttemptId, MessageId, PartitionKey, SessionId, Token};
pub use json::Json;
pub use message::{Body, DecodeError, EncodeError, Message};
pub use observe::{Measure, Noted, Observation, Observe, Reporter, Verdict};
pub use panics::Panicked;
pub use payload::{Kind, Payload, ReadError};
pub use queue::{
    Depth, InspectQueues, Outgoing, Presence, Queue, QueueSpec, ReceiveMessages, Received, SendError,
    SendMessages, send_one,
};
pub use store::StoreError;
pub use trace::Traceparent;

#[doc(hidden)]
pub mod macros {
    //! What the macros of this crate expand to.
    pub use {schemars, serde, serde_json, uuid};
}
