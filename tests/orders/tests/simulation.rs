//! The simulator on orders: no invariant is violated, and the planted defects of the engine are also found on this
//! application.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::path::Path;

use orders::workload::Customers;
use rstest::rstest;
use simulation::{Config, Mode, Range, hunt_all, run_many, simulate};
use testing::proof;

/// The maximum number of schedules that a planted defect may survive.
const MUTANT_SEEDS: u64 = 40_000;

#[rstest]
fn every_invariant_holds(#[values(Mode::Ledger, Mode::Optimistic)] mode: Mode) {
    let config = Config::new(mode);
    let schedules = proof::size(1_000, 100_000);
    let range = Range { first_seed: proof::fresh_seed(), count: schedules, threads: 2, stop_at_first: true };
    let summary = run_many(&Customers, &config, &range, &|_| ());
    if let Some((seed, violation)) = &summary.first {
        let outcome = simulate(&Customers, &Config { trace: true, ..config }, *seed);
        panic!("seed {seed} in {mode:?} mode violates {violation}\n{}", outcome.trace.join("\n"));
    }
    // The checks are meaningful only if the schedules have effects.
    let stats = summary.stats;
    assert!(stats.completed > schedules / 4 && stats.failed > schedules / 10, "{stats:?}");
    assert!(stats.faults > schedules && stats.stale > schedules, "{stats:?}");
}

#[test]
fn planted_defects_are_all_found() {
    let mut result = hunt_all(&Customers, include_str!("seeds.txt"), MUTANT_SEEDS);
    result.update(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds.txt")).unwrap();
    assert_eq!(result.survivors, []);
    assert_eq!(result.outdated, [], "their seeds find them no more: run `make seeds`");
}
