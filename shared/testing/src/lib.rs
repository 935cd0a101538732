//! What every adapter has to keep, as tests that any adapter can run.
//!
//! - [`host`]: a [`messages::Host`] whose time a test decides;
//! - [`Seen`]: a [`messages::Observe`] that keeps decisions;
//! - [`fixtures`]: what earlier releases stored and sent, for every adapter to read;
//! - [`proof`]: how much a run proves: on every change, or every night;
//! - [`sample`]: documents, entries, views and studies to store;
//! - [`saga`], [`sessions`], [`views`], [`ledger`], [`processed`], [`queues`], [`failures`],
//!   [`history`]: the engine's suites, one for each group of its ports. They know no application: their partitions are those of a made-up system.
//! - [`studies`], [`progress`], [`objects`], [`exports`]: the suites of the search import.
//!
//! A suite is a `Ports` that names what is under test, one function for each promise, and `all`, which checks one
//! promise after the other. A promise that is broken panics at the assertion; a port that fails is an error.
//!
//! # Stores that are not empty
//! Ids are fresh ([`messages::Host::fresh_id`]), so the suites may run against a store in use. The queues must
//! be nobody else's for the while: the suite empties them first.
//!
//! # Time
//! Suites let time pass by [`messages::Host::sleep`]: with [`ManualHost`] that takes no time at all, and with
//! the host of a real machine, for a real server, it really waits. So they wait for seconds and never for hours,
//! where the adapter has a clock of its own; where a port is told the time, they may tell it any.
//! Times are whole seconds, since not every store keeps more than milliseconds.

pub mod exports;
pub mod failures;
pub mod fixtures;
pub mod history;
pub mod host;
pub mod ledger;
pub mod objects;
pub mod outboxes;
pub mod processed;
pub mod progress;
pub mod proof;
pub mod queues;
pub mod reading;
pub mod saga;
pub mod sample;
pub mod seen;
pub mod sessions;
pub mod studies;
pub mod views;

pub use host::ManualHost;
pub use seen::Seen;

/// How a check ends, unless it panics because a promise is broken: well, or with the error of a port.
pub type Checked = Result<(), Box<dyn std::error::Error + Send + Sync>>;
