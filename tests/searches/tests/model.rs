//! A search of two files in every interleaving: the faults of each configuration break no invariant.

use mimalloc::MiMalloc;
use model::{Budget, check, sometimes};
use searches::model::{properties, protocol};

/// The exploration allocates constantly; the system's allocator would take half of the processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[test]
fn crash_and_lost_lease_keep_invariants() {
    let budget = Budget { crashes: 1, expiries: 1, ..Budget::NONE };
    check("a crash and a lost lease", protocol(false, budget), properties());
}

#[test]
fn duplicates_and_lost_lease_keep_invariants() {
    let budget = Budget { copies: 1, expiries: 1, ..Budget::NONE };
    check("duplicates and a lost lease", protocol(false, budget), properties());
}

#[test]
fn announcement_and_crash_keep_invariants() {
    let budget = Budget { crashes: 1, ..Budget::NONE };
    check("an announcement and a crash", protocol(true, budget), properties());
}

#[test]
fn stale_read_and_lost_lease_keep_invariants() {
    let budget = Budget { stale: 1, expiries: 1, ..Budget::NONE };
    check("a stale load and a lost lease", protocol(false, budget), properties());
}

#[test]
fn concurrent_sweep_keeps_invariants() {
    let budget = Budget { crashes: 1, sweeps: 1, ..Budget::NONE };
    check("a crash and a sweep in addition to the workers", protocol(false, budget), properties());
}

#[test]
fn timeout_keeps_invariants() {
    let budget = Budget { duplicates: 1, timers: 1, ..Budget::NONE };
    check("a duplicate and a timeout", protocol(false, budget), properties());
}

#[test]
fn dead_lettered_file_keeps_invariants() {
    let mut properties = properties();
    properties.push(sometimes("a search fails", |_, system| {
        system.state().is_some_and(|state| state.name() == "Error")
    }));
    let budget = Budget { failures: 1, crashes: 1, ..Budget::NONE };
    check("an abandoned file and a crash", protocol(false, budget), properties);
}

#[test]
fn unreleased_claims_keep_invariants() {
    let left = Budget { keep: 4, ..Budget::NONE };
    check("claims are left, and a crash", protocol(false, Budget { crashes: 1, ..left }), properties());
    check(
        "claims are left, and a duplicate",
        protocol(false, Budget { duplicates: 1, ..left }),
        properties(),
    );
}

#[test]
fn concurrent_files_and_replies_keep_invariants() {
    let budget = Budget { groups: true, expiries: 1, ..Budget::NONE };
    check("groups and a lost lease", protocol(false, budget), properties());
}

/// Configurations whose exploration takes more than a minute.
mod deep {
    use super::*;

    #[test]
    fn crash_and_timeout_keep_invariants() {
        let budget = Budget { crashes: 1, timers: 1, ..Budget::NONE };
        check("a crash and a timeout", protocol(false, budget), properties());
    }

    /// The budget has one fault of each type and no timeout, because each further fault multiplies the number of
    /// states. The errand of `tests/model` has more faults and a timeout.
    #[test]
    fn crash_lost_lease_and_duplicate_keep_invariants() {
        let budget = Budget { crashes: 1, expiries: 1, duplicates: 1, ..Budget::NONE };
        check("a crash, a lost lease and a duplicate", protocol(false, budget), properties());
    }
}
