//! Planted defects are also found on the smallest saga; `tests/searches` plants them in the search import.

use simulation::{Config, Invariant, Mode, Mutant, Range, hunt_all, run_many};

use crate::desk::Questions;
use crate::parcels::Shipments;

/// The maximum number of schedules that a defect may survive.
const SEEDS: u64 = 20_000;

#[test]
fn planted_defects_are_all_found() {
    hunt_all(&Questions::default(), include_str!("seeds.txt"), SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/seeds.txt"));
}

#[test]
fn planted_defects_of_two_sagas_are_all_found() {
    hunt_all(&Shipments, include_str!("parcels.txt"), SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/parcels.txt"));
}

#[test]
fn defects_of_waiting_and_dropping_are_found() {
    for mutant in Mutant::OF_SOME {
        let invariant = match mutant {
            Mutant::ItemForgottenAfterMonth => Invariant::TokensAreKept,
            _ => Invariant::Bounded,
        };
        let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
        let config = Config { mutant: Some(mutant), ..Config::new(Mode::Ledger) };
        let (found, violation) =
            run_many(&Questions::default(), &config, &range, &|_| ()).first.expect("it is found");
        println!("{mutant:?} {found} {violation}");
        assert_eq!(violation.invariant, invariant, "{mutant:?}, seed {found}");
    }
}

#[test]
fn application_defect_is_found() {
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    for workload in [
        Questions { numbers_repeat: true, ..Questions::default() },
        Questions { checks_by_clock: true, ..Questions::default() },
    ] {
        let (_, violation) =
            run_many(&workload, &Config::new(Mode::Ledger), &range, &|_| ()).first.expect("it is found");
        assert_eq!(violation.invariant, Invariant::Application);
    }
}
