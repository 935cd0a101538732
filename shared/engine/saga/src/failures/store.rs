//! The port to the store of failures.

use async_trait::async_trait;
use jiff::SignedDuration;
use messages::StoreError;

use super::ids::{FailureId, OperationId};
use super::operation::Operation;
use super::record::{AuditEntry, Failure, FailureCursor};
use super::selection::{Causes, Selection};

/// The maximum number of causes in one result. The causes of the most failures are returned.
pub const MAX_GROUPS: usize = 100;

/// The time for which audit entries are kept: more than a year, so that a yearly review finds all of them.
pub const AUDIT_RETENTION: SignedDuration = SignedDuration::from_hours(400 * 24);

/// A change of one failure, on condition of its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The failure.
    pub id: FailureId,
    /// The revision that was read; 0 if there was none.
    pub revision: u64,
    /// The failure with the next revision; `None` to delete it.
    pub next: Option<Failure>,
}

/// Stores failures, the operations on them, and the audit entries.
#[async_trait]
pub trait KeepFailures: Send + Sync {
    /// Returns these failures, in order; `None` for each that does not exist.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not a failure. A retry helps only in the
    /// first case.
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError>;

    /// Makes each change whose condition holds. Returns `true` for each write that was made, in the order of the
    /// writes.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Some of the changes may have been made.
    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError>;

    /// Returns up to `limit` failures of a selection after a cursor, the last seen first. Served by an index of status,
    /// or of status and cause. A value that is not a failure is logged with its id and skipped. Only the last page has
    /// fewer than `limit` failures.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn select(
        &self,
        selection: &Selection,
        after: Option<FailureCursor>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError>;

    /// Returns the causes of a selection, beginning with the causes of the most failures. The counts may include values
    /// that are not failures.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn causes(&self, selection: &Selection) -> Result<Causes, StoreError>;

    /// Returns an operation.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not an operation. A retry helps only in
    /// the first case.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError>;

    /// Returns up to `limit` operations, the latest first.
    ///
    /// # Errors
    /// Returns the errors of [`KeepFailures::operation`].
    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError>;

    /// Returns the running operation; there is never more than one.
    ///
    /// # Errors
    /// Returns the errors of [`KeepFailures::operation`].
    async fn running(&self) -> Result<Option<Operation>, StoreError>;

    /// Stores the next revision of an operation if the stored operation has this revision (0: there is none). A running
    /// operation is stored only if no other operation is running. Returns `true` if it is stored.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The operation may have been stored.
    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError>;

    /// Stores an audit entry.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. A repeated call may store the entry twice.
    async fn note(&self, entry: &AuditEntry) -> Result<(), StoreError>;

    /// Returns the latest `limit` audit entries, the latest first.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not an audit entry. A retry helps only in
    /// the first case.
    async fn audit_entries(&self, limit: usize) -> Result<Vec<AuditEntry>, StoreError>;
}
