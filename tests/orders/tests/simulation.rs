//! The simulator on orders: no invariant is violated, and the planted defects of the engine are also found on this
//! application.

use orders::workload::Customers;
use rstest::rstest;
use simulation::{Config, Mode, Range, assert_invariants, hunt_all};
use testing::proof;

/// The maximum number of schedules that a planted defect may survive.
const MUTANT_SEEDS: u64 = 100_000;

#[rstest]
fn every_invariant_holds(#[values(Mode::Ledger, Mode::Optimistic)] mode: Mode) {
    let schedules = proof::size(1_000, 100_000);
    let range = Range { first_seed: proof::fresh_seed(), count: schedules, threads: 2, stop_at_first: true };
    let summary = assert_invariants(&Customers, &Config::new(mode), &range);
    // The checks are meaningful only if the schedules have effects.
    let stats = summary.stats;
    assert!(stats.completed > schedules / 4 && stats.failed > schedules / 10, "{stats:?}");
    assert!(stats.faults > schedules && stats.stale > schedules, "{stats:?}");
}

#[test]
fn planted_defects_are_all_found() {
    hunt_all(&Customers, include_str!("seeds.txt"), MUTANT_SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds.txt"));
}
