//! Counts work as the number of bytes that are scanned for a record.
//!
//! A time limit depends on the machine: a record that exceeds it on one machine is read on another. The number of
//! scanned bytes depends on the record alone. Functions that scan a text count its length with [`spend`], once per run
//! of bytes, not per byte. Each function counts its own scans, so a text that is scanned twice is counted twice.
//!
//! [`within`] limits the work of a record. Once the budget is spent, [`spend`] returns `false`, and functions that
//! count return immediately. The caller of [`within`] learns that the budget was exceeded, and discards the result.
//!
//! [`until`] also stops in the middle of a record, once a signal is given. The signal is checked at the beginning and
//! after every [`PERIOD`] bytes of counted work, so this module needs no clock.
//!
//! The counter belongs to the thread. A record is read on one thread, so functions need not pass a counter.

use std::{
    cell::{Cell, RefCell},
    fmt,
    sync::Arc,
};

thread_local! {
    static SPENT: Cell<u64> = const { Cell::new(0) };
    static LIMIT: Cell<u64> = const { Cell::new(u64::MAX) };
    static STOP: RefCell<Option<Stop>> = const { RefCell::new(None) };
    /// The work at which the signal is checked next.
    static CHECK: Cell<u64> = const { Cell::new(u64::MAX) };
    static STOPPED: Cell<bool> = const { Cell::new(false) };
    /// The lesser of `LIMIT` and `CHECK`.
    static FREE: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// The work between two checks of a signal.
pub const PERIOD: u64 = 1 << 18;

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

/// A signal to stop reading, such as a deadline that has passed.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Creates a signal that is given once the function returns `true`. The function should be fast: it is called after
    /// every [`PERIOD`] bytes of counted work.
    #[must_use]
    pub fn when(is_given: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_given))
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop").finish_non_exhaustive()
    }
}

/// Counts scanned bytes. Returns `false` if the budget is spent, or if the signal to stop was given; the caller must
/// then return immediately.
#[inline]
pub fn spend(bytes: usize) -> bool {
    let spent = SPENT.get().saturating_add(bytes as u64);
    SPENT.set(spent);
    spent <= FREE.get() || may_continue(spent, bytes)
}

/// Checks the budget and the signal.
#[cold]
fn may_continue(spent: u64, bytes: usize) -> bool {
    if spent > LIMIT.get() {
        return false;
    }
    let is_given = || STOP.with_borrow(|stop| stop.as_ref().is_some_and(|Stop(is_given)| is_given()));
    if is_stopped() || is_given() {
        STOPPED.set(true);
        // The work is not done.
        SPENT.set(spent - bytes as u64);
        return false;
    }
    set_bounds(LIMIT.get(), spent.saturating_add(PERIOD));
    true
}

fn set_bounds(limit: u64, check: u64) {
    LIMIT.set(limit);
    CHECK.set(check);
    FREE.set(limit.min(check));
}

/// Returns `true` if the innermost [`until`] of this thread was stopped.
pub(crate) fn is_stopped() -> bool {
    STOPPED.get()
}

/// The signal of an enclosing call. It applies again once this value is dropped, also after a panic.
struct Signal {
    stop: Option<Stop>,
    check: u64,
    is_stopped: bool,
}

impl Drop for Signal {
    fn drop(&mut self) {
        STOP.set(self.stop.take());
        STOPPED.set(self.is_stopped);
        set_bounds(LIMIT.get(), self.check);
    }
}

/// The limit of an enclosing call. It applies again once this value is dropped, also after a panic.
struct Limit(u64);

impl Drop for Limit {
    fn drop(&mut self) {
        set_bounds(self.0, CHECK.get());
    }
}

/// Calls a function that stops as soon as the signal is given. Returns `None` if it was stopped: the result may then be
/// incomplete.
pub fn until<T>(stop: &Stop, function: impl FnOnce() -> T) -> Option<T> {
    let _outer = Signal {
        stop: STOP.replace(Some(stop.clone())),
        check: CHECK.get(),
        is_stopped: STOPPED.replace(false),
    };
    set_bounds(LIMIT.get(), SPENT.get());
    let result = function();
    (!is_stopped()).then_some(result)
}

/// All work that was counted on this thread.
#[must_use]
pub fn spent() -> u64 {
    SPENT.get()
}

/// Calls a function, and returns its result and its work.
pub fn counted<T>(function: impl FnOnce() -> T) -> (T, u64) {
    let before = spent();
    let result = function();
    (result, spent() - before)
}

/// Calls a function with a budget.
///
/// # Errors
/// Returns an error if the function exceeded the budget. A repetition of the call fails in the same way.
pub fn within<T>(budget: u64, function: impl FnOnce() -> T) -> Result<T, BudgetExceeded> {
    let outer = Limit(LIMIT.get());
    let limit = SPENT.get().saturating_add(budget).min(outer.0);
    set_bounds(limit, CHECK.get());
    let result = function();
    if SPENT.get() <= limit { Ok(result) } else { Err(BudgetExceeded) }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::catch_unwind,
        sync::atomic::{AtomicU32, Ordering},
    };

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

    /// A signal that is given at its third check.
    fn third_check() -> Stop {
        let checks = AtomicU32::new(0);
        Stop::when(move || checks.fetch_add(1, Ordering::Relaxed) == 2)
    }

    #[test]
    fn signal_stops_after_whole_periods_of_work() {
        let piece = 1 << 10;
        let pieces = || (0..u64::MAX).take_while(|_| spend(piece)).count() as u64;
        let mut done = 0;
        assert_eq!(until(&third_check(), || done = pieces()), None);
        assert!((2 * PERIOD..3 * PERIOD).contains(&(done * piece as u64)), "{done}");
        assert!(spend(10 * piece), "the signal ends with its function");
    }

    #[test]
    fn signal_is_checked_across_budgets() {
        let half = usize::try_from(PERIOD / 2).unwrap() + 1;
        let record = || within(PERIOD, || spend(half));
        let mut all = Vec::new();
        assert_eq!(until(&third_check(), || all.extend((0..5).map(|_| record()))), None);
        assert_eq!(all, [Ok(true), Ok(true), Ok(true), Ok(true), Ok(false)]);
        assert_eq!(until(&Stop::when(|| false), record), Some(Ok(true)));
        assert_eq!(until(&Stop::when(|| true), record), None);
    }

    /// A reading thread outlives a file whose reading panics.
    #[test]
    fn bounds_end_with_a_panic() {
        let panics =
            || within(10, || until(&Stop::when(|| true), || assert!(spend(11), "beyond the budget")));
        assert!(catch_unwind(panics).is_err());
        assert!(spend(usize::try_from(PERIOD).unwrap()) && !is_stopped());
    }

    #[test]
    fn exceeded_budget_is_no_signal() {
        let exceed = || within(10, || spend(11));
        assert_eq!(until(&Stop::when(|| false), exceed), Some(Err(BudgetExceeded)));
    }
}
