//! The simulator on orders: nothing is violated, and the engine's planted defects are found on this application too.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use orders::workload::Customers;
use rstest::rstest;
use simulation::{Config, Mode, Mutant, Range, run_many, simulate};

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
        let summary = run_many(&Customers, &config, &range, &|_| ());
        let (seed, violation) = summary
            .first
            .unwrap_or_else(|| panic!("{mutant:?} survives {MUTANT_SEEDS} schedules in {mode:?} mode"));
        println!("{mutant:?} in {mode:?} mode: seed {seed} violates {violation}");
    }
}
