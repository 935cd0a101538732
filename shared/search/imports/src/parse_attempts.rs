//! Checkpoints of reading a file, from which the next attempt resumes, and the fence that stops outdated attempts
//! from storing records.

use ::messages::StoreError;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{FileId, SearchId};
use crate::vocabulary::Counts;

/// The state of the attempts to read a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AttemptState {
    /// Attempts since the last progress that were started and whose end was not recorded: those that crashed, and any in
    /// progress. The attempt that saved the last checkpoint is one of them.
    pub begun: u32,
    /// The status from which the next attempt resumes; `None` at the beginning of the file.
    pub place: Option<ReadingStatus>,
    /// The number of times that the stored records of the file were deleted. See [`FileFence`].
    pub fence: u64,
}

/// The right of one attempt to write a file, which ends when the stored records of the file are deleted.
///
/// The deletion increments the file's fence. A write with an earlier fence is refused, however late it arrives,
/// because its attempt relies on records that are deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFence {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file.
    pub file_id: FileId,
    /// The file's fence when the attempt started.
    pub fence: u64,
}

/// The error of an attempt with an outdated fence.
#[derive(Debug, thiserror::Error)]
#[error("the file's records were deleted concurrently, or the file was already completed or rejected")]
pub struct OutdatedFence;

impl ReadingStatus {
    /// Returns `true` if the file is no longer read.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::End { .. } | Self::Refused { .. })
    }
}

impl FileFence {
    /// Returns the error of a write that the fence refused. The next attempt starts with the new fence.
    pub fn overtaken(doing: impl Into<String>) -> StoreError {
        StoreError::unavailable(doing, OutdatedFence)
    }
}

/// The status of reading a file. All records before a checkpoint are stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadingStatus {
    /// A serialized [`references::Checkpoint`], possibly of another version whose reader counts differently.
    Within(Value),
    /// The end of the file. The reply may have been sent, so the file is never read again and the status is final.
    End {
        /// The counts of the file.
        counts: Counts,
        /// The last record whose studies were compared with others; from 0.
        #[serde(default)]
        compared: u64,
        /// The field in which earlier versions record their progress of marking duplicates.
        #[serde(default)]
        unmarked: LegacyUnmarked,
    },
    /// The file was rejected and nothing of it is stored. The reply may have been sent, so the status is final.
    Refused {
        /// The reason, as in the reply.
        reason: String,
        /// The index of the reply that reports the rejection.
        reply: usize,
        /// The last record whose candidates were compared again, if a completed file is being deleted; from 0. The
        /// maximum of a signed integer after its studies were deleted.
        #[serde(default)]
        compared: u64,
    },
}

impl ReadingStatus {
    /// Returns the end of the file, before any of its studies was compared.
    pub fn end(counts: Counts) -> Self {
        Self::compared(counts, 0)
    }

    /// Returns the end of the file, after its studies were compared up to this record.
    pub fn compared(counts: Counts, compared: u64) -> Self {
        Self::End { counts, compared, unmarked: LegacyUnmarked }
    }

    /// Returns a rejection, before any study was compared again.
    pub fn refused(reason: impl Into<String>, reply: usize) -> Self {
        Self::Refused { reason: reason.into(), reply, compared: 0 }
    }
}

/// The progress of marking as stored for earlier versions, which marked duplicates only within one search. It states
/// that all steps remain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Share>", into = "Vec<Share>")]
pub struct LegacyUnmarked;

/// A share of the keys, which those versions processed one after the other.
#[derive(Serialize, Deserialize)]
struct Share {
    divisor: u64,
    remainder: u64,
}

impl From<Vec<Share>> for LegacyUnmarked {
    fn from(_: Vec<Share>) -> Self {
        Self
    }
}

impl From<LegacyUnmarked> for Vec<Share> {
    fn from(_: LegacyUnmarked) -> Self {
        vec![Share { divisor: 1, remainder: 0 }]
    }
}

/// Records the attempts to read files.
#[async_trait]
pub trait ParseAttempts: Send + Sync {
    /// Records the start of an attempt by a reader of this version, and returns the previous state.
    ///
    /// A reader of another version may count records differently. Unless the file was completed or rejected, such an
    /// attempt starts over: the stored records are deleted first, as by [`WriteStudies::discard`].
    ///
    /// [`WriteStudies::discard`]: crate::WriteStudies::discard
    async fn start(&self, search: SearchId, file: FileId, reader: u32) -> Result<AttemptState, StoreError>;

    /// Replaces the status of a file. A checkpoint never overwrites `End` or `Refused`: a concurrent attempt has
    /// finished. With another status than the last one, at most one attempt still counts as begun: the file does not
    /// make every attempt crash at the same record.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable, and a retryable error if the file has another fence.
    async fn save(&self, file: &FileFence, place: &ReadingStatus) -> Result<(), StoreError>;

    /// Returns the last status of a file; `None` at its beginning.
    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<ReadingStatus>, StoreError>;

    /// Records that an attempt ended without a crash, whatever its outcome: no attempt counts as crashed any more. It
    /// is also called if it is unknown whether the start was recorded; without a record of the file, it changes
    /// nothing.
    async fn end(&self, search: SearchId, file: FileId) -> Result<(), StoreError>;
}
