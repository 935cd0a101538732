//! Where failures are kept.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use serde::{Deserialize, Serialize};

use super::record::{Act, Failure, FailureId, Standing};
use super::retry::{Operation, OperationId};

/// The most causes that are told apart in one answer; those with the most failures.
pub const MAX_GROUPS: usize = 100;

/// Which failures are meant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// In this state.
    pub standing: Standing,
    /// Of this cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// From this dead-letter queue, or `outbox`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// Of this partition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<PartitionKey>,
    /// Seen last at this moment or before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
    /// Of these alone, where there are any.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ids: BTreeSet<FailureId>,
}

impl Selection {
    /// All that are in this state.
    pub fn of(standing: Standing) -> Self {
        Self { standing, fingerprint: None, place: None, partition: None, until: None, ids: BTreeSet::new() }
    }

    /// Whether a failure is meant.
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

/// Where a page of failures ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// When the last one of the page was seen last.
    pub last_seen: Timestamp,
    /// Its id.
    pub id: FailureId,
}

/// A change of one failure. It holds only as long as the failure is as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The failure.
    pub id: FailureId,
    /// Its revision as it was read; 0 when there was none.
    pub revision: u64,
    /// The failure from now on, which has the next revision; none when it is gone.
    pub next: Option<Failure>,
}

/// The failures of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The cause.
    pub fingerprint: String,
    /// One of the reasons, as an example.
    pub reason: String,
    /// The names of their messages.
    pub messages: BTreeSet<String>,
    /// How many there are.
    pub count: u64,
    /// When the first one was seen first.
    pub first_seen: Timestamp,
    /// When the last one was seen last.
    pub last_seen: Timestamp,
}

/// Keeps failures, the operations on them, and who did what.
#[async_trait]
pub trait KeepFailures: Send + Sync {
    /// These failures, each in its place; none where there is none.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a failure.
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError>;

    /// Makes each change that still holds, and tells which those were.
    ///
    /// # Errors
    /// When the store does not answer; some of them may be made.
    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError>;

    /// Up to `limit` of a selection, those seen last first, from after a place on. Served by an index of states, or of
    /// states and causes.
    ///
    /// # Errors
    /// As [`KeepFailures::failures`].
    async fn select(
        &self,
        selection: &Selection,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError>;

    /// The causes of a selection, those with the most failures first, at most [`MAX_GROUPS`].
    ///
    /// # Errors
    /// As [`KeepFailures::failures`].
    async fn groups(&self, selection: &Selection) -> Result<Vec<Group>, StoreError>;

    /// An operation.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not an operation.
    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError>;

    /// Up to `limit` operations, the latest first.
    ///
    /// # Errors
    /// As [`KeepFailures::operation`].
    async fn operations(&self, limit: usize) -> Result<Vec<Operation>, StoreError>;

    /// The operation that is running; there is never more than one.
    ///
    /// # Errors
    /// As [`KeepFailures::operation`].
    async fn running(&self) -> Result<Option<Operation>, StoreError>;

    /// Stores an operation as its next revision, if the stored one has this revision (0: there is none), and no other
    /// operation is running when this one is. Tells whether it did.
    ///
    /// # Errors
    /// When the store does not answer; it may be stored.
    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError>;

    /// Writes down what somebody did.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn note(&self, act: &Act) -> Result<(), StoreError>;

    /// The latest `limit` acts, the latest first.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not an act.
    async fn acts(&self, limit: usize) -> Result<Vec<Act>, StoreError>;
}
