//! The engine violates no invariant under any fault.

use simulation::{Call, Config, Coverage, Fault, Mode, Range, Summary, Workload, assert_invariants};

use testing::proof;

use crate::desk::Questions;
use crate::parcels::Shipments;

/// The maximum number of calls that a fault may miss on every change.
const MAX_MISSED: usize = 3;

fn run(workload: &impl Workload, mode: Mode) -> Summary {
    let schedules = proof::size(1_500, 100_000);
    let range = Range { first_seed: 0, count: schedules, threads: 2, stop_at_first: true };
    let summary = assert_invariants(workload, &Config::new(mode), &range);
    let stats = summary.stats;
    assert!(
        stats.completed > schedules / 2 && stats.failed > 0 && stats.redriven > schedules / 100,
        "{stats:?}"
    );
    summary
}

fn assert_covered(coverage: &Coverage) {
    for fault in Fault::ALL {
        let missed = coverage.missed(fault);
        assert!(missed.len() <= proof::size(MAX_MISSED, 0), "{fault:?} did not meet {missed:?}\n{coverage}");
    }
}

#[test]
fn small_saga_keeps_invariants_and_covers_faults() {
    let questions = Questions::default();
    let mut coverage: Coverage = run(&questions, Mode::Ledger).coverage;
    coverage.add(&run(&questions, Mode::Optimistic).coverage);
    assert_covered(&coverage);
}

#[test]
fn sagas_with_messages_between_them_keep_invariants() {
    let mut coverage: Coverage = run(&Shipments, Mode::Ledger).coverage;
    coverage.add(&run(&Shipments, Mode::Optimistic).coverage);
    assert_covered(&coverage);
}

#[test]
fn calls_of_workload_are_distinguished() {
    assert!(Questions::default().calls().is_empty());
    let own = [Call::own(0, "shelf.look"), Call::own(1, "shelf.put")];
    assert!(own[0] != own[1] && !Call::ENGINE.contains(&own[0]));
    assert_eq!(own[1].name(), "shelf.put");
}
