//! Exports that are too large for one answer: objects of their own, made for whoever has asked.
//!
//! An export is a snapshot. Its id names the moment at which it was asked for, so that nothing has to be kept about it but
//! the object itself: whether it is there says whether it is made.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use messages::{StoreError, uuid_ids};
use serde::{Deserialize, Serialize};
use writers::Format;

use crate::{ProjectId, SearchId};

/// What the keys of exports begin with; those of uploads may not.
pub const PREFIX: &str = "exports/";

uuid_ids! {
    /// One export of a search.
    ExportId,
}

impl ExportId {
    /// How long an export may take to be made: after that it is not waited for.
    pub const PATIENCE: SignedDuration = SignedDuration::from_hours(1);

    /// Whether an export with this id may be about to be made: it was asked for not long before `now`. An id that no
    /// [`messages::Host::fresh_id`] has made is none of an export.
    pub fn is_awaited(&self, now: Timestamp) -> bool {
        let asked_at = self.as_uuid().get_timestamp().and_then(|at| {
            let (seconds, nanos) = at.to_unix();
            Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
        });
        // The clock of whoever was asked may be ahead of this one.
        asked_at.is_some_and(|asked_at| now.duration_since(asked_at).abs() < Self::PATIENCE)
    }
}

/// Which studies an export has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Which {
    /// All of them.
    #[default]
    All,
    /// Those that repeat no earlier one.
    Unique,
    /// Those that repeat an earlier one.
    Duplicates,
}

impl Which {
    /// Whether only those that are marked are wanted, or only the others; none when all are.
    pub const fn marked(self) -> Option<bool> {
        match self {
            Self::All => None,
            Self::Unique => Some(false),
            Self::Duplicates => Some(true),
        }
    }
}

/// The key of an export's object: `exports/{project}/{search}/{export}.{ending}`, with the ending of its format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportKey {
    /// The review.
    pub project: ProjectId,
    /// The search whose studies it has.
    pub search: SearchId,
    /// The export.
    pub export: ExportId,
    /// What it is written in.
    pub format: Format,
}

impl ExportKey {
    /// What the keys of all exports of a search begin with.
    pub fn folder(project: ProjectId, search: SearchId) -> String {
        format!("{PREFIX}{project}/{search}/")
    }

    /// What the key of an export begins with, whatever its format.
    pub fn beginning(project: ProjectId, search: SearchId, export: ExportId) -> String {
        format!("{}{export}.", Self::folder(project, search))
    }
}

impl fmt::Display for ExportKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let beginning = Self::beginning(self.project, self.search, self.export);
        write!(f, "{beginning}{}", self.format.ending())
    }
}

/// Where an export can be had, for a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLink {
    /// A GET of this answers with it, without further credentials: whoever has the link has the export.
    pub url: String,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Until when.
    pub expires_at: Timestamp,
}

/// The bytes of an export, as they are made.
pub type Pieces<'a> = BoxStream<'a, Result<Vec<u8>, StoreError>>;

/// Keeps exports, and gives out links to them.
#[async_trait]
pub trait KeepExports: Send + Sync {
    /// Stores an object under a key once `pieces` has ended, in place of what is there, and answers with its size in bytes.
    /// An object is there with all of its bytes or not at all.
    ///
    /// # Errors
    /// When the store does not answer, or what the pieces fail with.
    async fn keep(&self, key: &ExportKey, pieces: Pieces<'_>) -> Result<u64, StoreError>;

    /// A link to an object, under which it is downloaded as a file of this name; `None` when there is no such object.
    ///
    /// # Errors
    /// When the store does not answer, or the link cannot be signed.
    async fn link(
        &self,
        key: &ExportKey,
        file_name: &str,
        valid_for: Duration,
    ) -> Result<Option<ExportLink>, StoreError>;
}

#[cfg(test)]
mod tests {
    use uuid::Builder;

    use super::*;

    #[test]
    fn an_export_is_awaited_for_an_hour_whatever_the_clocks_say() {
        let asked_at: Timestamp = "2026-05-01T12:00:00Z".parse().unwrap();
        let millis = u64::try_from(asked_at.as_millisecond()).unwrap();
        let id = ExportId::from_uuid(Builder::from_unix_timestamp_millis(millis, &[7; 10]).into_uuid());
        for (minutes, awaited) in [(0, true), (59, true), (-9, true), (60, false), (10_000, false)] {
            let now = asked_at + SignedDuration::from_mins(minutes);
            assert_eq!(id.is_awaited(now), awaited, "after {minutes} minutes");
        }
        let made_up = ExportId::from_uuid(uuid::Uuid::from_u128(7));
        assert!(!made_up.is_awaited(asked_at));
    }
}
