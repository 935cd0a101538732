//! The search import as a workload of the checkers: what happens to a search, what the functions around it answer, and
//! what must come of it.
//!
//! - [`model`]: one small search in every interleaving;
//! - [`simulation`]: a search or two with everything around them, in interleavings and faults drawn from seeds.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

pub mod model;
pub mod simulation;
