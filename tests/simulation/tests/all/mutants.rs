//! Planted defects are found on the smallest saga too; `tests/searches` plants them on the search import.

use rstest::rstest;
use simulation::{Config, Invariant, Mode, Mutant, Range, run_many};

use crate::desk::Questions;

/// The most schedules that a defect may survive.
const SEEDS: u64 = 10_000;

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
        let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
        let summary = run_many(&Questions::default(), &config, &range, &|_| ());
        let (seed, violation) =
            summary.first.unwrap_or_else(|| panic!("{mutant:?} survives {SEEDS} schedules in {mode:?} mode"));
        println!("{mutant:?} in {mode:?} mode: seed {seed} violates {violation}");
    }
}

#[test]
fn a_defect_of_the_application_is_found() {
    let range = Range { first_seed: 0, count: SEEDS, threads: 2, stop_at_first: true };
    let workload = Questions { numbers_repeat: true };
    let (_, violation) =
        run_many(&workload, &Config::new(Mode::Ledger), &range, &|_| ()).first.expect("it is found");
    assert_eq!(violation.invariant, Invariant::Application);
}
