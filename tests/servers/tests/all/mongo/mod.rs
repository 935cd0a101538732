//! MongoDB.

mod application;
mod changes;
mod connecting;
mod documents;
mod expiry;
mod faults;
mod fixtures;
mod history;
mod plans;
mod race;
mod stepdown;
mod studies;
mod suites;
mod transactions;

pub(crate) use servers::TestResult;
pub(crate) use servers::mongo::{Scratch, Setup};
