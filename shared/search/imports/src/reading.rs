//! How far the reading of a file has got, so that the next attempt goes on from there, and who may still store what it
//! reads.

use async_trait::async_trait;
use messages::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{FileId, SearchId};
use crate::job::Counts;

/// What is known of the attempts at reading a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reading {
    /// Attempts that were begun, and of which nobody has said how they ended: those that crashed, and any under way.
    pub begun: u32,
    /// Where the next attempt goes on; none for the file's beginning.
    pub place: Option<Place>,
    /// How often what was stored of the file has been taken back. See [`Fenced`].
    pub fence: u64,
}

/// A file as one attempt may write it: for as long as nobody has taken back what is stored of it.
///
/// Whoever takes it back raises the file's fence. A write under an earlier one is refused, however late it arrives: the
/// attempt that made it knows of records that are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fenced {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file.
    pub file_id: FileId,
    /// The file's fence when the attempt began.
    pub fence: u64,
}

/// What an attempt is told whose file has another fence.
#[derive(Debug, thiserror::Error)]
#[error("what was stored of the file was taken back meanwhile, or it was read to its end or refused")]
pub struct Overtaken;

impl Place {
    /// Whether nothing is read of the file any more.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::End { .. } | Self::Refused { .. })
    }
}

impl Fenced {
    /// The failure of a write that the fence refused. The next attempt begins under the new one.
    pub fn overtaken(doing: impl Into<String>) -> StoreError {
        StoreError::unavailable(doing, Overtaken)
    }
}

/// A place in a file. Everything before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A [`references::Checkpoint`], as it was written: perhaps by another release, whose reader counts otherwise.
    Within(Value),
    /// Its end. The answer may be on its way, so it is never read again, and stays what it was.
    End {
        /// What was found in it.
        counts: Counts,
        /// Up to which record its studies were compared with others; from 0.
        #[serde(default)]
        compared: u64,
        /// What releases before look for, which counted that otherwise.
        #[serde(default)]
        unmarked: Unmarked,
    },
    /// It was refused, and nothing of it is stored. That stays so, as the answer may be on its way.
    Refused {
        /// Why, as the answer says.
        reason: String,
        /// Which of the command's replies says so.
        reply: usize,
        /// Up to which record those alike its studies were compared anew, of a file that was read to its end and is taken
        /// back; from 0.
        #[serde(default)]
        compared: u64,
    },
}

impl Place {
    /// The end, before any of its studies was compared.
    pub fn end(counts: Counts) -> Self {
        Self::compared(counts, 0)
    }

    /// The end, when its studies were compared up to this record.
    pub fn compared(counts: Counts, compared: u64) -> Self {
        Self::End { counts, compared, unmarked: Unmarked }
    }

    /// A refusal, before any study was compared anew.
    pub fn refused(reason: impl Into<String>, reply: usize) -> Self {
        Self::Refused { reason: reason.into(), reply, compared: 0 }
    }
}

/// For releases before, which marked duplicates within a search: all of that is left to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Share>", into = "Vec<Share>")]
pub struct Unmarked;

/// A share of what studies can have in common, of which those releases did one after the other.
#[derive(Serialize, Deserialize)]
struct Share {
    divisor: u64,
    remainder: u64,
}

impl From<Vec<Share>> for Unmarked {
    fn from(_: Vec<Share>) -> Self {
        Self
    }
}

impl From<Unmarked> for Vec<Share> {
    fn from(_: Unmarked) -> Self {
        vec![Share { divisor: 1, remainder: 0 }]
    }
}

/// Keeps track of the attempts at reading files.
#[async_trait]
pub trait TrackReading: Send + Sync {
    /// Notes that an attempt begins, by a reader of this version; returns what was known before.
    ///
    /// A reader of another version than the last one may count the records otherwise. Unless the file was read to its end
    /// or refused, such an attempt begins it anew: what is stored of it is taken back first, as [`WriteStudies::discard`] does.
    ///
    /// [`WriteStudies::discard`]: crate::WriteStudies::discard
    ///
    /// # Errors
    /// When the store does not answer, or holds something else.
    async fn begin(&self, search: SearchId, file: FileId, reader: u32) -> Result<Reading, StoreError>;

    /// Remembers a place of a file, in place of the one before. A place within replaces neither the end nor a refusal:
    /// another attempt was there meanwhile.
    ///
    /// # Errors
    /// When the store does not answer; retryable when the file has another fence.
    async fn reach(&self, file: &Fenced, place: &Place) -> Result<(), StoreError>;

    /// The place of a file that was remembered last; none for its beginning.
    ///
    /// # Errors
    /// As [`TrackReading::begin`].
    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<Place>, StoreError>;

    /// Notes that an attempt ended by itself, whatever came of it: none counts as crashed any more. Also for one of which
    /// nobody knows whether it was noted when it began; where nothing is known of a file, this changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn pause(&self, search: SearchId, file: FileId) -> Result<(), StoreError>;
}
