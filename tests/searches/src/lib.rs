//! The search import as a workload of the checkers: the events of a search, the replies of the other functions, and the
//! invariants.
//!
//! - [`model`]: one small search in every interleaving;
//! - [`simulation`]: one or two searches with their environment, in interleavings and with faults that are generated
//!   from seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

pub mod model;
pub mod simulation;
