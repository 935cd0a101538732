//! The engine's ports in memory. Each performs its call in one piece, as the contract suites demand of an adapter; what
//! lies between two calls is the scheduler's.

pub(crate) mod documents;
pub(crate) mod failures;
pub(crate) mod ledger;
pub(crate) mod outboxes;
pub(crate) mod processed;
pub(crate) mod queues;
pub(crate) mod sessions;
pub(crate) mod views;
