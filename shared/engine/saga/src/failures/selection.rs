//! Filters for failures, and their grouping by cause.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use messages::PartitionKey;
use serde::{Deserialize, Serialize};

use super::ids::FailureId;
use super::record::{Failure, FailureStatus};

/// A filter for failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selection {
    /// Failures with this status.
    pub standing: FailureStatus,
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
    /// The ids of the selected failures; an empty set means no restriction.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub ids: BTreeSet<FailureId>,
}

impl Selection {
    /// Returns a filter for all failures with this status.
    pub fn of(standing: FailureStatus) -> Self {
        Self { standing, fingerprint: None, place: None, partition: None, until: None, ids: BTreeSet::new() }
    }

    /// Returns a time after the limit of the filter. A failure that was last seen at the returned time is excluded.
    pub(super) fn just_after(&self) -> Timestamp {
        let after = self.until.and_then(|until| until.checked_add(SignedDuration::from_nanos(1)).ok());
        after.unwrap_or(Timestamp::MIN)
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

/// The failures of a selection by cause.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Causes {
    /// The causes of the most failures, up to [`MAX_GROUPS`](super::store::MAX_GROUPS).
    pub groups: Vec<CauseGroup>,
    /// The number of failures of all causes.
    pub count: u64,
    /// The time at which the last failure of any cause was last found; `None` without failures.
    pub last_seen: Option<Timestamp>,
}

/// The failures of one cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CauseGroup {
    /// The cause.
    pub fingerprint: String,
    /// One of the reasons, as an example.
    pub reason: String,
    /// The names of the messages.
    pub messages: BTreeSet<String>,
    /// The number of failures.
    pub count: u64,
    /// The time at which the first of these failures was first found.
    pub first_seen: Timestamp,
    /// The time at which the last of these failures was last found.
    pub last_seen: Timestamp,
}
