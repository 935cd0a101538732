//! Counts work as the number of bytes that are scanned for a record.
//!
//! A time limit depends on the machine: a record that exceeds it on one machine is read on another. The number of
//! scanned bytes depends on the record alone. Functions that scan a text count its length with [`spend`], once per run
//! of bytes, not per byte. Each function counts its own scans, so a text that is scanned twice is counted twice.
//!
//! [`within`] limits the work of a record. Once the budget is spent, [`spend`] returns `false`, and functions that
//! count return immediately. The caller of [`within`] learns that the budget was exceeded, and discards the result.
//!
//! The counter belongs to the thread. A record is read on one thread, so functions need not pass a counter.

use std::cell::Cell;

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// The work that is allowed per byte of a record. Records of real exports need about a tenth of it.
const PER_BYTE: u64 = 100;
/// The work that is allowed for every record, however short it is.
const FOR_ANY: u64 = 64 * 1024;

/// The budget for a record of this length in bytes.
#[must_use]
pub fn budget(bytes: usize) -> u64 {
    FOR_ANY.saturating_add(PER_BYTE.saturating_mul(bytes as u64))
}

/// The error for an exceeded budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "reading it takes far more steps than its size explains, as with thousands of brackets, quotes or commands that are not \
     closed; correct them and import the record again"
)]
pub struct BudgetExceeded;

/// Counts scanned bytes. Returns `false` if the budget is spent; the caller must then return immediately.
#[inline]
pub fn spend(bytes: usize) -> bool {
    let spent = SPENT.get().saturating_add(bytes as u64);
    SPENT.set(spent);
    spent <= LIMIT.get()
}

/// Calls a function, and returns its result and its work.
pub fn counted<T>(function: impl FnOnce() -> T) -> (T, u64) {
    let before = SPENT.get();
    let result = function();
    (result, SPENT.get() - before)
}

/// Calls a function with a budget.
///
/// # Errors
/// Returns an error if the function exceeded the budget. The same call fails again.
pub fn within<T>(budget: u64, function: impl FnOnce() -> T) -> Result<T, BudgetExceeded> {
    let outer = LIMIT.get();
    let limit = SPENT.get().saturating_add(budget).min(outer);
    LIMIT.set(limit);
    let result = function();
    LIMIT.set(outer);
    if SPENT.get() <= limit { Ok(result) } else { Err(BudgetExceeded) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beyond_the_budget_is_refused() {
        assert_eq!(within(10, || spend(4) && spend(6)), Ok(true));
        assert_eq!(within(10, || spend(4) && spend(7)), Err(BudgetExceeded));
        assert!(spend(1_000), "the budget ends with its function");
    }

    #[test]
    fn inner_budget_does_not_extend_outer() {
        let mut inner = Ok(true);
        assert_eq!(within(10, || inner = within(100, || spend(20))), Err(BudgetExceeded));
        assert_eq!(inner, Err(BudgetExceeded));
        assert_eq!(counted(|| spend(3)).1, 3);
    }
}
