//! The simulator on the functions as shipped: nothing is violated, every point was met by every fault, and planted
//! defects are found.

use searches::simulation::Searches;
use simulation::{Call, Config, Coverage, Fault, Mode, Phase, Range, Summary, run_many, simulate, survivors};

/// Schedules of each mode: 100,000 altogether. More of them are a matter of `dev simulate`.
const SEEDS: u64 = 50_000;

/// The most schedules that a defect may survive.
const MUTANT_SEEDS: u64 = 10_000;

fn run(mode: Mode) -> Summary {
    let config = Config::new(mode);
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    let summary = run_many(&Searches, &config, &range, &|_| ());
    if let Some((seed, violation)) = &summary.first {
        let outcome = simulate(&Searches, &Config { trace: true, ..config }, *seed);
        panic!("seed {seed} in {mode:?} mode violates {violation}\n{}", outcome.trace.join("\n"));
    }
    assert_eq!(summary.schedules, SEEDS);
    // The checks are of no worth when nothing happens.
    let stats = summary.stats;
    assert!(stats.completed > SEEDS / 2 && stats.failed > SEEDS / 10, "{stats:?}");
    assert!(stats.faults > SEEDS && stats.stale > SEEDS, "{stats:?}");
    assert!(
        stats.outages > SEEDS / 4 && stats.unreadable > SEEDS / 50 && stats.requeued > SEEDS / 200,
        "{stats:?}"
    );
    summary
}

#[test]
fn every_invariant_holds_and_every_fault_was_met_everywhere() {
    let mut coverage: Coverage = run(Mode::Ledger).coverage;
    coverage.add(&run(Mode::Optimistic).coverage);
    for call in [Call::SAGA_LOAD, Call::LEDGER_CLAIM, Call::QUEUE_SEND] {
        assert!(
            coverage.of(call, Phase::Before, Fault::Outage) > 0,
            "{call:?} never met an outage\n{coverage}"
        );
    }
    // An outage begins at few calls; those after it fail as well.
    for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::Outage) {
        assert_eq!(coverage.missed(fault), [], "{fault:?} was not met there\n{coverage}");
    }
    assert_eq!(coverage.unmet(), [""; 0], "{coverage}");
    assert_eq!(coverage.of(Call::HOST_SLEEP, Phase::After, Fault::Crash), 0, "there is no such point");
}

#[test]
fn every_planted_defect_is_found() {
    assert_eq!(survivors(&Searches, MUTANT_SEEDS, |found| println!("{found}")), []);
}
