//! Both variants of the travel booking in the simulator: no invariant is violated, and planted defects are found.

use rstest::rstest;
use simulation::{Config, Mode, Range, Workload, assert_invariants, hunt_all, run_many};
use testing::proof;
use travel::planted::Defect;
use travel::workload::{ListTravellers, MachineTravellers};

/// The maximum number of schedules that a planted defect may survive.
const DEFECT_SEEDS: u64 = 40_000;

fn assert_clean<W: Workload>(workload: &W, mode: Mode) {
    let schedules = proof::size(600, 100_000);
    let range = Range { first_seed: proof::fresh_seed(), count: schedules, threads: 2, stop_at_first: true };
    let summary = assert_invariants(workload, &Config::new(mode), &range);
    // The checks prove something only if something happens.
    let stats = summary.stats;
    assert!(stats.completed > schedules / 5 && stats.failed > schedules / 5, "{stats:?}");
    assert!(stats.faults > schedules && stats.stale > schedules, "{stats:?}");
}

#[rstest]
fn no_invariant_of_the_state_machine_is_violated(#[values(Mode::Ledger, Mode::Optimistic)] mode: Mode) {
    assert_clean(&MachineTravellers::default(), mode);
}

#[rstest]
fn no_invariant_of_the_steps_is_violated(#[values(Mode::Ledger, Mode::Optimistic)] mode: Mode) {
    assert_clean(&ListTravellers::default(), mode);
}

/// Asserts that a schedule finds the planted defect. A recorded seed saves the search.
fn assert_found<W: Workload>(workload: &W, recorded: u64) {
    let finds = |first_seed, count| {
        let range = Range { first_seed, count, threads: 2, stop_at_first: true };
        run_many(workload, &Config::new(Mode::Ledger), &range, &|_| ()).first.is_some()
    };
    assert!(
        finds(recorded, 1) || finds(0, DEFECT_SEEDS),
        "the planted defect survived {DEFECT_SEEDS} schedules"
    );
}

#[test]
fn planted_saga_defects_are_found() {
    for defect in Defect::ALL {
        assert_found(&MachineTravellers { defect }, 0);
        assert_found(&ListTravellers { defect, ..ListTravellers::default() }, 0);
    }
}

#[rstest]
#[case(steps::Defect::KeepsCompleted, 0)]
#[case(steps::Defect::KeepsInDoubt, 0)]
#[case(steps::Defect::UndoesUnknownOutcome, 4_094)]
#[case(steps::Defect::IgnoresEarlySignals, 15)]
#[case(steps::Defect::UndoesOutOfOrder, 0)]
#[case(steps::Defect::IgnoresDeadlines, 3)]
fn planted_defects_of_the_crate_are_found(#[case] step_defect: steps::Defect, #[case] recorded: u64) {
    assert_found(&ListTravellers { step_defect, ..ListTravellers::default() }, recorded);
}

#[test]
fn planted_defects_are_all_found_on_machine() {
    hunt_all(&MachineTravellers::default(), include_str!("seeds-machine.txt"), DEFECT_SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds-machine.txt"));
}

#[test]
fn planted_defects_are_all_found_on_list() {
    hunt_all(&ListTravellers::default(), include_str!("seeds-list.txt"), DEFECT_SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds-list.txt"));
}
