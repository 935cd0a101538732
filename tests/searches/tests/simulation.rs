//! The simulator on the functions as shipped: no invariant is violated, every fault occurs at every point, and planted
//! defects are found.

use searches::simulation::Searches;
use simulation::{
    Call, Config, Coverage, Fault, Mode, Phase, Range, Summary, assert_invariants, hunt, hunt_all, planted,
};
use testing::proof;

/// The maximum number of schedules that a planted defect may survive. One defect needs 85,000.
const MUTANT_SEEDS: u64 = 100_000;
/// The maximum number of planted defects that no fresh schedule of a deep run may find.
const MAX_SURVIVORS: usize = 2;
/// The maximum number of points that a fault may miss on every change.
const MAX_MISSED: usize = 12;
/// The maximum number of situations that may remain unreached by the schedules of every change.
const MAX_UNMET: usize = 2;
/// The seeds that are known to find planted defects; `make seeds` writes them.
const KNOWN: &str = include_str!("seeds.txt");

fn run(config: &Config, first_seed: u64, schedules: u64) -> Summary {
    let range = Range { first_seed, count: schedules, threads: 2, stop_at_first: true };
    let summary = assert_invariants(&Searches, config, &range);
    assert_eq!(summary.schedules, schedules);
    summary
}

/// The schedules are always the same. In the run for each change, a fault may miss a few rare calls; a deep run has
/// enough schedules for every fault to occur at every call.
#[test]
fn schedules_keep_invariants_and_cover_faults() {
    let mut coverage = Coverage::default();
    for mode in Mode::ALL {
        let schedules = proof::size(2_000, 50_000);
        let Summary { coverage: met, stats, .. } = run(&Config::new(mode), 0, schedules);
        coverage.add(&met);
        // The checks are meaningful only if the schedules have effects.
        assert!(stats.completed > schedules / 2 && stats.failed > schedules / 10, "{stats:?}");
        assert!(stats.faults > schedules && stats.stale > schedules, "{stats:?}");
        assert!(
            stats.outages > schedules / 4
                && stats.unreadable > schedules / 50
                && stats.requeued > schedules / 200,
            "{stats:?}"
        );
    }
    for call in [Call::SAGA_LOAD, Call::LEDGER_CLAIM, Call::QUEUE_SEND] {
        assert!(
            coverage.of(call, Phase::Before, Fault::Outage) > 0,
            "{call:?} never met an outage\n{coverage}"
        );
    }
    // Outages begin at few calls, because the following calls fail as well.
    for fault in Fault::ALL.into_iter().filter(|fault| *fault != Fault::Outage) {
        let mut missed = coverage.missed(fault);
        // No session of the import is refused for good: conflicting ones are repeated.
        missed.retain(|(call, _)| *call != Call::LEDGER_REVOKE);
        assert!(missed.len() <= proof::size(MAX_MISSED, 0), "{fault:?} did not meet {missed:?}\n{coverage}");
    }
    assert!(coverage.unmet().len() <= proof::size(MAX_UNMET, 0), "{coverage}");
    assert_eq!(coverage.of(Call::HOST_SLEEP, Phase::After, Fault::Crash), 0, "there is no such point");
}

/// The schedules change every day.
#[test]
fn fresh_schedules_violate_nothing() {
    for mode in Mode::ALL {
        run(&Config::new(mode), proof::fresh_seed(), proof::size(600, 50_000));
    }
}

#[test]
fn planted_defects_are_all_found() {
    hunt_all(&Searches, KNOWN, MUTANT_SEEDS)
        .assert_complete(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds.txt"));
}

/// New seeds find most defects quickly, so the recorded seeds are not exceptional.
#[test]
fn fresh_schedules_find_most_planted_defects() {
    let schedules = proof::size(50, MUTANT_SEEDS);
    let range = Range { first_seed: proof::fresh_seed(), count: schedules, threads: 2, stop_at_first: true };
    let all = planted(&Searches);
    let found = all.iter().filter(|(mutant, mode)| hunt(&Searches, *mutant, *mode, &range).is_some()).count();
    // Half of the defects need more than 50 schedules: the first 50 of five days found 49 to 56 of 102.
    let least = proof::size(all.len() * 2 / 5, all.len() - MAX_SURVIVORS);
    assert!(found >= least, "{found} of {} planted defects are found by {schedules} schedules", all.len());
}
