//! What Lambda's event sources do, for functions that run under a Lambda emulator such as `cargo lambda watch`.
//!
//! - [`source`]: which queue is behind which function, by the table of the application;
//! - [`answer`]: what an answer means for each message of a batch: a pure function;
//! - [`event`]: messages as the event that Lambda makes of them;
//! - [`invoke`]: invoking a function;
//! - [`poller`]: receives, invokes and deletes, and invokes on schedule.
//!
//! Visibility timeouts, receive counts and dead-letter queues are the queue's own, as they are behind Lambda: what is not
//! deleted comes again, and the queue's redrive policy says how often.

pub mod answer;
pub mod event;
pub mod invoke;
pub mod poller;
pub mod source;

pub use invoke::Functions;
pub use poller::{Invoked, Pump};
pub use source::Source;
