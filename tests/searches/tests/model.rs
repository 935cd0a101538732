//! A search of two files in every interleaving: what goes wrong in each configuration, and that nothing comes of it.

use mimalloc::MiMalloc;
use model::{Budget, check, sometimes};
use searches::model::{properties, protocol};

/// Exploring takes and returns memory all the time: with the system's allocator that is half of the processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[test]
fn a_crash_and_a_lost_lease_break_no_invariant() {
    let budget = Budget { crashes: 1, expiries: 1, ..Budget::NONE };
    check("a crash and a lost lease", protocol(false, budget), properties());
}

#[test]
fn duplicates_and_a_lost_lease_break_no_invariant() {
    let budget = Budget { copies: 1, expiries: 1, ..Budget::NONE };
    check("duplicates and a lost lease", protocol(false, budget), properties());
}

#[test]
fn an_announcement_and_a_crash_break_no_invariant() {
    let budget = Budget { crashes: 1, ..Budget::NONE };
    check("an announcement and a crash", protocol(true, budget), properties());
}

#[test]
fn a_load_of_an_earlier_version_and_a_lost_lease_break_no_invariant() {
    let budget = Budget { stale: 1, expiries: 1, ..Budget::NONE };
    check("a stale load and a lost lease", protocol(false, budget), properties());
}

#[test]
fn a_sweep_beside_the_workers_breaks_no_invariant() {
    let budget = Budget { crashes: 1, sweeps: 1, ..Budget::NONE };
    check("a crash and a sweep in addition to the workers", protocol(false, budget), properties());
}

#[test]
fn a_timeout_breaks_no_invariant() {
    let budget = Budget { crashes: 1, timers: 1, ..Budget::NONE };
    check("a crash and a timeout", protocol(false, budget), properties());
}

/// One of each, and no timeout, for the sake of time: each more makes several times as many states. The errand of
/// `tests/model` has more of them, and a timeout besides.
#[test]
fn a_crash_a_lost_lease_and_a_duplicate_together_break_no_invariant() {
    let budget = Budget { crashes: 1, expiries: 1, duplicates: 1, ..Budget::NONE };
    check("a crash, a lost lease and a duplicate", protocol(false, budget), properties());
}

#[test]
fn a_file_that_the_parser_gives_up_breaks_no_invariant() {
    let mut properties = properties();
    properties.push(sometimes("a search fails", |_, system| {
        system.state().is_some_and(|state| state.name() == "Error")
    }));
    let budget = Budget { failures: 1, crashes: 1, ..Budget::NONE };
    check("an abandoned file and a crash", protocol(false, budget), properties);
}

#[test]
fn claims_that_are_left_to_the_next_one_break_no_invariant() {
    let left = Budget { keep: 4, ..Budget::NONE };
    check("claims are left, and a crash", protocol(false, Budget { crashes: 1, ..left }), properties());
    check(
        "claims are left, and a duplicate",
        protocol(false, Budget { duplicates: 1, ..left }),
        properties(),
    );
}

#[test]
fn files_and_replies_that_come_together_break_no_invariant() {
    let budget = Budget { groups: true, expiries: 1, ..Budget::NONE };
    check("groups and a lost lease", protocol(false, budget), properties());
}
