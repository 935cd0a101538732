//! The delivery protocol, checked exhaustively: every interleaving of two workers and a sweeper on one search of two
//! files, with duplicates, crashes after every step, and leases that run out at the worst moment.
//!
//! The steps call what is shipped: `saga::transition` (through `worker::plan::decide`), `dedup::ledger::Item::claim`
//! and `release`. Only the stores and queues around them are modelled, each call as one atomic step.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]
#![allow(clippy::print_stdout, reason = "the number of states is worth knowing")]

mod inputs;
mod properties;
mod steps;
mod system;

use std::time::Instant;

use stateright::{Checker, Model};

use crate::system::{Budget, Protocol};

/// Checks a model whole and prints what it took.
fn check(name: &str, budget: Budget) {
    let began = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let checker = Protocol { budget }.checker().threads(threads).spawn_bfs().join();
    println!(
        "{name}: {} states, {} different, depth {}, {:.1} s",
        checker.state_count(),
        checker.unique_state_count(),
        checker.max_depth(),
        began.elapsed().as_secs_f64()
    );
    checker.assert_properties();
}

/// Nothing goes wrong.
const QUIET: Budget = Budget { announced: false, crashes: 0, expiries: 0, copies: 0, sweeps: 0, timeouts: 0 };

#[test]
fn a_crash_and_a_lost_lease_break_no_invariant() {
    check("a crash and a lost lease", Budget { crashes: 1, expiries: 1, ..QUIET });
}

#[test]
fn duplicates_and_a_lost_lease_break_no_invariant() {
    check("duplicates and a lost lease", Budget { copies: 1, expiries: 1, ..QUIET });
}

#[test]
fn an_announcement_and_a_crash_break_no_invariant() {
    check("an announcement and a crash", Budget { announced: true, crashes: 1, ..QUIET });
}

#[test]
fn a_sweep_beside_the_workers_breaks_no_invariant() {
    check("a crash and a sweep beside the workers", Budget { crashes: 1, sweeps: 1, ..QUIET });
}

#[test]
fn a_timeout_breaks_no_invariant() {
    check("a crash and a timeout", Budget { crashes: 1, timeouts: 1, ..QUIET });
}
