//! The simulator on the functions as shipped: nothing is violated, every point was met by every fault, and planted
//! defects are found.

use rstest::rstest;
use searches::simulation::Searches;
use simulation::{Call, Config, Coverage, Fault, Mode, Mutant, Phase, Range, Summary, run_many, simulate};

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
    summary
}

#[test]
fn every_invariant_holds_and_every_fault_was_met_everywhere() {
    let mut coverage: Coverage = run(Mode::Ledger).coverage;
    coverage.add(&run(Mode::Optimistic).coverage);
    for fault in Fault::ALL {
        assert_eq!(coverage.missed(fault), [], "{fault:?} was not met there\n{coverage}");
    }
    assert_eq!(coverage.of(Call::HOST_SLEEP, Phase::After, Fault::Crash), 0, "there is no such point");
}

/// Each is planted by itself, and `MUTANT_SEEDS` schedules have to find it.
#[rstest]
#[case::no_version_check(Mutant::NoVersionCheck, &[Mode::Ledger, Mode::Optimistic])]
#[case::outbox_in_memory(Mutant::OutboxInMemory, &[Mode::Ledger, Mode::Optimistic])]
#[case::cleared_before_sending(Mutant::ClearedBeforeSending, &[Mode::Ledger, Mode::Optimistic])]
#[case::sent_before_persisted(Mutant::SentBeforePersisted, &[Mode::Ledger, Mode::Optimistic])]
// Without a ledger there are no tokens, no fence and no garbage.
#[case::tokens_minted_again(Mutant::TokensMintedAgain, &[Mode::Ledger])]
#[case::token_removed_at_claim(Mutant::TokenRemovedAtClaim, &[Mode::Ledger])]
#[case::garbage_without_persist(Mutant::GarbageWithoutPersist, &[Mode::Ledger])]
#[case::release_without_fence(Mutant::ReleaseWithoutFence, &[Mode::Ledger])]
#[case::random_effect_ids(Mutant::RandomEffectIds, &[Mode::Ledger, Mode::Optimistic])]
#[case::read_then_mark_claim(Mutant::ReadThenMarkClaim, &[Mode::Ledger, Mode::Optimistic])]
#[case::retry_on_every_error(Mutant::RetryOnEveryError, &[Mode::Ledger, Mode::Optimistic])]
fn a_planted_defect_is_found(#[case] mutant: Mutant, #[case] modes: &[Mode]) {
    for mode in modes {
        let config = Config { mutant: Some(mutant), ..Config::new(*mode) };
        let range = Range { first_seed: 0, count: MUTANT_SEEDS, threads: 2, stop_at_first: true };
        let summary = run_many(&Searches, &config, &range, &|_| ());
        let (seed, violation) = summary
            .first
            .unwrap_or_else(|| panic!("{mutant:?} survives {MUTANT_SEEDS} schedules in {mode:?} mode"));
        println!("{mutant:?} in {mode:?} mode: seed {seed} violates {violation}");
    }
}
