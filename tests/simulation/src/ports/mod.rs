//! The engine's ports in memory. Each call is atomic, as the contract suites demand of an adapter; the scheduler
//! interleaves the calls.

pub(crate) mod documents;
pub(crate) mod failures;
pub(crate) mod ledger;
pub(crate) mod outboxes;
pub(crate) mod processed;
pub(crate) mod queues;
pub(crate) mod sessions;
pub(crate) mod views;
