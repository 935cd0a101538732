//! A stored operation: the retry of a selection of failures.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use super::ids::{FailureId, OperationId};
use super::selection::Selection;

/// The retention of an operation that has ended.
pub const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);
/// The time after which the failures that went ahead are assessed, and assessed again while a worker handles them.
pub const CANARY_WAIT: SignedDuration = SignedDuration::from_mins(1);

/// An operation on failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// The id of the operation.
    pub id: OperationId,
    /// The operator who requested the operation.
    pub by: String,
    /// The time at which the operation began.
    pub begun_at: Timestamp,
    /// The failures that the operation retries.
    pub selection: Selection,
    /// The maximum number of failures; `None` for all.
    pub limit: Option<u64>,
    /// The rate in failures per second.
    pub per_second: u32,
    /// The number of failures that are retried first, as a canary.
    pub canary: u32,
    /// The failures that were retried first.
    pub canaries: Vec<FailureId>,
    /// The number of failures when the operation began.
    pub total: u64,
    /// The number of failures retried so far.
    pub retried: u64,
    /// The number of failures so far that can never be retried. These failures are open again, each with the reason.
    #[serde(default)]
    pub refused: u64,
    /// The phase.
    #[serde(flatten)]
    pub phase: Phase,
    /// The time at which the next step may be taken.
    pub next_step_at: Timestamp,
    /// The number of writes, beginning with 1.
    #[serde(skip)]
    pub revision: u64,
}

/// The phase of an operation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "phase")]
pub enum Phase {
    /// The operation retries failures.
    Running,
    /// The canary failures were retried, and the operation waits for their outcome.
    Watching {
        /// The time of the next assessment.
        until: Timestamp,
    },
    /// The operation has retried all failures that were not busy.
    Done {
        /// The time at which the operation ended.
        at: Timestamp,
    },
    /// The operation ended early.
    Stopped {
        /// The time at which the operation ended.
        at: Timestamp,
        /// The reason.
        why: String,
    },
}

impl Phase {
    /// Returns the phase in which the outcome of the failures that went ahead is awaited.
    pub(super) fn watching(now: Timestamp) -> Self {
        Self::Watching { until: now.checked_add(CANARY_WAIT).unwrap_or(Timestamp::MAX) }
    }

    /// Returns `true` if nothing is left to do.
    pub fn has_ended(&self) -> bool {
        matches!(self, Self::Done { .. } | Self::Stopped { .. })
    }
}

impl Operation {
    /// Returns when the operation may be removed; `None` while it is running.
    pub fn expires_at(&self) -> Option<Timestamp> {
        match &self.phase {
            Phase::Done { at } | Phase::Stopped { at, .. } => {
                Some(at.checked_add(RETENTION).unwrap_or(Timestamp::MAX))
            }
            Phase::Running | Phase::Watching { .. } => None,
        }
    }

    /// Returns the phase after the last failure.
    pub(super) fn end(&self, at: Timestamp) -> Phase {
        match self.refused {
            0 => Phase::Done { at },
            refused => {
                let why = format!("{refused} of {} cannot be retried; see their reasons", self.total);
                Phase::Stopped { at, why }
            }
        }
    }

    /// Returns `true` if failures went ahead, but fewer than the operation waits for before it assesses them.
    fn is_without_assessment(&self) -> bool {
        !self.canaries.is_empty() && self.canaries.len() < self.canary as usize
    }

    /// Returns the operation after the last failure. The operation waits for the outcome of its canaries, even if there
    /// were fewer failures than requested canaries.
    pub(super) fn after_last(&self, now: Timestamp) -> Self {
        if !self.is_without_assessment() {
            return Self { phase: self.end(now), ..self.clone() };
        }
        let canary = u32::try_from(self.canaries.len()).unwrap_or(u32::MAX);
        Self { canary, phase: Phase::watching(now), ..self.clone() }
    }

    /// Returns the number of failures for the next step.
    pub(super) fn share(&self) -> u64 {
        let left = self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.retried + self.refused));
        let ahead = u64::from(self.canary).saturating_sub(self.retried);
        let max = if ahead > 0 { ahead } else { u64::MAX };
        u64::from(self.per_second).min(left).min(max)
    }
}
