//! Two sagas in every interleaving, with messages between them.
//!
//! - `exchange`: a request, its reply, and an event;
//! - `child`: a saga starts another one, and receives its result.

mod child;
mod exchange;

use mimalloc::MiMalloc;
use model::Budget;

/// The exploration allocates and frees memory constantly. With the system's allocator, allocation takes half of the
/// processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Checks both pairs under the same faults.
fn check(name: &str, budget: Budget) {
    exchange::keeps_invariants(name, budget);
    child::keeps_invariants(name, budget);
}

#[test]
fn crashes_keep_invariants() {
    let budget = Budget { crashes: 1, duplicates: 1, ..Budget::NONE };
    check("a crash and a duplicate", budget);
}

#[test]
fn lost_leases_keep_invariants() {
    let budget = Budget { expiries: 1, duplicates: 1, ..Budget::NONE };
    check("a lost lease and a duplicate", budget);
}

#[test]
fn earlier_documents_and_sweeps_keep_invariants() {
    let budget = Budget { stale: 1, duplicates: 1, ..Budget::NONE };
    check("a stale load and a duplicate", budget);
    let budget = Budget { sweeps: 1, duplicates: 1, ..Budget::NONE };
    check("a sweep in addition to the workers, and a duplicate", budget);
}

#[test]
fn delayed_grants_keep_invariants() {
    let budget = Budget { delayed_grants: 1, crashes: 1, ..Budget::NONE };
    check("a delayed grant and a crash", budget);
}

#[test]
fn dead_lettered_requests_keep_invariants() {
    let budget = Budget { failures: 1, duplicates: 1, ..Budget::NONE };
    check("a permanent failure and a duplicate", budget);
}

#[test]
fn timers_keep_invariants() {
    let budget = Budget { timers: 1, duplicates: 1, ..Budget::NONE };
    check("a timer and a duplicate", budget);
}

#[test]
fn kept_claims_keep_invariants() {
    let budget = Budget { keep: 2, duplicates: 1, ..Budget::NONE };
    check("claims are left, and a duplicate", budget);
}

mod deep {
    use super::*;

    #[test]
    fn combined_faults_keep_invariants() {
        let combined = [
            Budget { crashes: 1, expiries: 1, duplicates: 1, ..Budget::NONE },
            Budget { timers: 1, expiries: 1, duplicates: 1, ..Budget::NONE },
            Budget { delayed_grants: 1, expiries: 1, duplicates: 1, ..Budget::NONE },
            Budget { failures: 1, crashes: 1, ..Budget::NONE },
            Budget { keep: 2, crashes: 1, duplicates: 1, ..Budget::NONE },
        ];
        for faults in combined {
            check(&format!("{faults:?}"), faults);
        }
    }
}
