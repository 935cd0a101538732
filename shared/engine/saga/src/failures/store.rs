//! The port to the store of failures.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use serde::{Deserialize, Serialize};

use super::record::{Act, Failure, FailureId, Standing};
use super::retry::{Operation, OperationId};

/// The maximum number of causes in one result; those with the most failures are returned.
pub const MAX_GROUPS: usize = 100;

/// A filter for failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Failures with this status.
    pub standing: Standing,
    /// Failures of this cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// Failures from this dead-letter queue, or from the outbox (`outbox`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Failures of this partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKey>,
    /// Failures that were last seen at this moment or before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Only these failures; an empty set means no restriction.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ids: BTreeSet<FailureId>,
}

impl Selection {
    /// Returns a filter for all failures with this status.
    pub fn of(standing: Standing) -> Self {
        Self { standing, fingerprint: None, place: None, partition: None, until: None, ids: BTreeSet::new() }
    }

    /// Returns `true` if the filter includes a failure.
    pub fn has(&self, failure: &Failure) -> bool {
        let is =
            |wanted: &Option<String>, found: &str| wanted.as_deref().is_none_or(|wanted| wanted == found);
        failure.state.standing() == self.standing
            && is(&self.fingerprint, &failure.fingerprint)
            && is(&self.place, failure.origin.place())
            && self.partition.is_none_or(|partition| failure.partition == Some(partition))
            && self.until.is_none_or(|until| failure.last_seen <= until)
            && (self.ids.is_empty() || self.ids.contains(&failure.id))
    }
}

/// The cursor after a page of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When the last failure of the page was last seen.
    pub last_seen: Timestamp,
    /// Its id.
    pub id: FailureId,
}

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

/// The failures of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The cause.
    pub fingerprint: String,
    /// One of the reasons, as an example.
    pub reason: String,
    /// The names of the messages.
    pub messages: BTreeSet<String>,
    /// The number of failures.
    pub count: u64,
    /// When the first of them was first seen.
    pub first_seen: Timestamp,
    /// When the last of them was last seen.
    pub last_seen: Timestamp,
}

/// Stores failures, the operations on them, and the audit entries.
#[async_trait]
pub trait KeepFailures: Send + Sync {
    /// Returns these failures, in order; `None` for each that does not exist.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not a failure.
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError>;

    /// Makes each change whose condition holds. Returns whether each was made, in order.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Some of the changes may have been made.
    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError>;

    /// Returns up to `limit` failures of a selection after a cursor, the last seen first. Served by an index of status,
    /// or of status and cause.
    ///
    /// # Errors
    /// As [`KeepFailures::failures`].
    async fn select(
        &self,
        selection: &Selection,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError>;

    /// Returns the causes of a selection, those with the most failures first, at most [`MAX_GROUPS`].
    ///
    /// # Errors
    /// As [`KeepFailures::failures`].
    async fn groups(&self, selection: &Selection) -> Result<Vec<Group>, StoreError>;

    /// Returns an operation.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not an operation.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError>;

    /// Returns up to `limit` operations, the latest first.
    ///
    /// # Errors
    /// As [`KeepFailures::operation`].
    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError>;

    /// Returns the running operation; there is never more than one.
    ///
    /// # Errors
    /// As [`KeepFailures::operation`].
    async fn running(&self) -> Result<Option<Operation>, StoreError>;

    /// Stores the next revision of an operation if the stored one has this revision (0: there is none), and if no other
    /// operation is running while this one is. Returns `true` if it is stored.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The operation may have been stored.
    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError>;

    /// Stores an audit entry.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable.
    async fn note(&self, act: &Act) -> Result<(), StoreError>;

    /// Returns the latest `limit` audit entries, the latest first.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not an audit entry.
    async fn acts(&self, limit: usize) -> Result<Vec<Act>, StoreError>;
}
