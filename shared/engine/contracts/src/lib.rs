//! The contracts of the engine's ports, as tests that any adapter can run.
//!
//! - [`documents`], [`sessions`], [`views`], [`ledger`], [`processed`], [`queues`], [`failures`], [`history`]: the
//!   suites, one for each group of ports;
//! - [`sample`]: documents, entries and views to store, of a fictitious system;
//! - [`ManualHost`]: a [`messages::Host`] with manual time;
//! - [`RecordingSink`]: a [`messages::DecisionSink`] that stores decisions.
//!
//! A suite has a `Ports` with the adapter under test, a function for each guarantee, and `all`, which checks them in
//! sequence. A broken guarantee panics at the assertion; a failing port is an error.
//!
//! # Stores that are not empty
//! Ids are fresh ([`messages::Host::fresh_id`]), so the suites may run against a store in use. The queues must not be
//! used by another program at the same time: the suite empties them first.
//!
//! # Time
//! Suites let time pass with [`messages::Host::sleep`]: with [`ManualHost`] that takes no time, and with the host of a
//! real machine, for a real server, it waits. If the adapter has its own clock, the suites therefore wait for seconds
//! and never for hours; if the time is an argument of the port, they may pass any time. Times are whole seconds, since
//! not every store keeps more than milliseconds.

pub mod documents;
pub mod failures;
pub mod history;
pub mod host;
pub mod ledger;
pub mod outboxes;
pub mod processed;
pub mod queues;
pub mod recording_sink;
pub mod sample;
pub mod sessions;
pub mod views;

pub use host::ManualHost;
pub use recording_sink::RecordingSink;

/// The result of a check, unless it panics because a guarantee is broken: success, or the error of a port.
pub type CheckResult = Result<(), Box<dyn std::error::Error + Send + Sync>>;
