//! Defects for tests of the invariants.

/// Defects that can be planted in this crate, to prove that the simulator finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defect {
    /// None.
    #[default]
    None,
    /// Completed steps are not undone.
    KeepsCompleted,
    /// Steps in doubt are not undone.
    KeepsInDoubt,
    /// A failed step is undone without knowledge of its outcome.
    UndoesUnknownOutcome,
    /// A signal that overtakes the start is ignored.
    IgnoresEarlySignals,
    /// A step is undone before its successors.
    UndoesOutOfOrder,
    /// The timers of deadlines are not set.
    IgnoresDeadlines,
}
