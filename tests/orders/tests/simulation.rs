//! The simulator on orders: nothing is violated, and the engine's planted defects are found on this application too.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use orders::workload::Customers;
use rstest::rstest;
use simulation::{Config, Mode, Range, run_many, simulate, survivors};

/// Schedules of each mode. More of them are a matter of `dev simulate --workload orders`.
const SEEDS: u64 = 5_000;
/// The most schedules that a defect may survive.
const MUTANT_SEEDS: u64 = 20_000;

#[rstest]
fn every_invariant_holds(#[values(Mode::Ledger, Mode::Optimistic)] mode: Mode) {
    let config = Config::new(mode);
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    let summary = run_many(&Customers, &config, &range, &|_| ());
    if let Some((seed, violation)) = &summary.first {
        let outcome = simulate(&Customers, &Config { trace: true, ..config }, *seed);
        panic!("seed {seed} in {mode:?} mode violates {violation}\n{}", outcome.trace.join("\n"));
    }
    // The checks are of no worth when nothing happens.
    let stats = summary.stats;
    assert!(stats.completed > SEEDS / 4 && stats.failed > SEEDS / 10, "{stats:?}");
    assert!(stats.faults > SEEDS && stats.stale > SEEDS, "{stats:?}");
}

#[test]
fn every_planted_defect_is_found() {
    assert_eq!(survivors(&Customers, MUTANT_SEEDS, |found| println!("{found}")), []);
}
