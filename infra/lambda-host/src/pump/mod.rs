//! A replacement for Lambda's event sources, for functions that run under a Lambda emulator such as `cargo lambda
//! watch`.
//!
//! - [`source`]: the queues and their functions, from the table of the application;
//! - [`answer`]: the meaning of a response for each message of a batch, as a pure function;
//! - [`event`]: messages in the form of Lambda's event;
//! - [`invoke`]: invoking a function;
//! - [`poller`]: receives, invokes and deletes, and invokes on schedule.
//!
//! Visibility timeouts, receive counts and dead-letter queues are the queue's own, as with Lambda. Messages that are
//! not deleted are redelivered, up to the receive limit of the queue's redrive policy.

pub mod answer;
pub mod event;
pub mod invoke;
pub mod poller;
pub mod source;

pub use invoke::Functions;
pub use poller::{Invocation, Pump};
pub use source::Source;
