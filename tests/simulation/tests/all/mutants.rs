//! Planted defects are found.

use simulation::{Config, Invariant, Mode, Mutant, Range, run_many};

/// The most schedules that a defect may survive.
const SEEDS: u64 = 10_000;

fn first_violation(mode: Mode, mutant: Mutant) -> Invariant {
    let config = Config { mutant: Some(mutant), ..Config::new(mode) };
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    let summary = run_many(&config, &range, &|_| ());
    let (_, violation) = summary.first.unwrap_or_else(|| panic!("{mutant:?} survives in {mode:?} mode"));
    violation.invariant
}

#[test]
fn a_write_that_ignores_the_version_is_found_in_ledger_mode() {
    first_violation(Mode::Ledger, Mutant::NoVersionCheck);
}

#[test]
fn a_write_that_ignores_the_version_is_found_in_optimistic_mode() {
    first_violation(Mode::Optimistic, Mutant::NoVersionCheck);
}

#[test]
fn a_claim_in_two_steps_is_found() {
    for mode in [Mode::Ledger, Mode::Optimistic] {
        assert_eq!(first_violation(mode, Mutant::ReadThenMarkClaim), Invariant::EffectsTakeEffectOnce);
    }
}
