//! Planted defects are found on the smallest saga too; `tests/searches` plants them on the search import.

use simulation::{Config, Invariant, Mode, Range, run_many, survivors};

use crate::desk::Questions;

/// The most schedules that a defect may survive.
const SEEDS: u64 = 10_000;

#[test]
fn every_planted_defect_is_found() {
    assert_eq!(survivors(&Questions::default(), SEEDS, |found| println!("{found}")), []);
}

#[test]
fn a_defect_of_the_application_is_found() {
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    let workload = Questions { numbers_repeat: true };
    let (_, violation) =
        run_many(&workload, &Config::new(Mode::Ledger), &range, &|_| ()).first.expect("it is found");
    assert_eq!(violation.invariant, Invariant::Application);
}
