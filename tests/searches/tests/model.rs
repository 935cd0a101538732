//! A search of two files in every interleaving: what goes wrong in each configuration, and that nothing comes of it.

use model::{Budget, check};
use searches::model::{properties, protocol};

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
    check("a crash and a sweep beside the workers", protocol(false, budget), properties());
}

#[test]
fn a_timeout_breaks_no_invariant() {
    let budget = Budget { crashes: 1, timers: 1, ..Budget::NONE };
    check("a crash and a timeout", protocol(false, budget), properties());
}
