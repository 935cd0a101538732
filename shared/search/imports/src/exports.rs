//! Exports that are too large for one response: objects that are created on request.
//!
//! An export is a snapshot. Its id contains the time of the request, and its object is the only stored state: the
//! export is ready once the object exists. An export that a damaged study prevents has an empty object instead, whose
//! key names the study.

use std::fmt;
use std::time::Duration;

use ::messages::{StoreError, uuid_ids};
use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use writers::Format;

use crate::vocabulary::StudyRef;
use crate::{FileId, ProjectId, SearchId};

/// The key prefix of exports, which uploads must not have.
pub const PREFIX: &str = "exports/";
/// The beginning of a key's end for an export that a damaged study prevents.
const DAMAGED: &str = "damaged.";
/// The end of a key for an export that was removed.
const REMOVED: &str = "removed";

uuid_ids! {
    /// One export of a search.
    ExportId,
}

impl ExportId {
    /// The maximum duration of creating an export; after it, the export counts as failed.
    pub const MAX_DURATION: SignedDuration = SignedDuration::from_hours(1);

    /// Returns `true` if an export with this id may still be in progress: it was requested shortly before `now`. An
    /// id that was not created by [`messages::Host::fresh_id`] is never in progress.
    pub fn is_awaited(&self, now: Timestamp) -> bool {
        let asked_at = self.as_uuid().get_timestamp().and_then(|at| {
            let (seconds, nanos) = at.to_unix();
            Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanos).ok()?).ok()
        });
        // The clock of the server that received the request may be ahead of this one.
        asked_at.is_some_and(|asked_at| now.duration_since(asked_at).abs() < Self::MAX_DURATION)
    }
}

/// The studies of an export.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Which")]
pub enum StudyFilter {
    /// All of them.
    #[default]
    All,
    /// Studies that do not repeat an earlier one.
    Unique,
    /// Studies that repeat an earlier one.
    Duplicates,
}

impl StudyFilter {
    /// Returns `Some(true)` for marked studies only, `Some(false)` for the others only, and `None` for all.
    pub const fn marked(self) -> Option<bool> {
        match self {
            Self::All => None,
            Self::Unique => Some(false),
            Self::Duplicates => Some(true),
        }
    }
}

/// The content of an export's object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportContent {
    /// The studies, in this format.
    Studies(Format),
    /// The export was not created, because this study is damaged.
    Damaged(StudyRef),
    /// The export was removed with a search of the review. Without this object, the export would count as being created.
    Removed,
}

impl ExportContent {
    /// Returns the media type of the object.
    pub const fn media_type(&self) -> &'static str {
        match self {
            Self::Studies(format) => format.media_type(),
            Self::Damaged(_) | Self::Removed => "application/octet-stream",
        }
    }

    /// Returns the content for the end of a key, see [`ExportKey`]; `None` for other text.
    fn read(ending: &str) -> Option<Self> {
        if ending == REMOVED {
            return Some(Self::Removed);
        }
        let Some(study) = ending.strip_prefix(DAMAGED) else {
            return Format::ALL.into_iter().find(|format| format.ending() == ending).map(Self::Studies);
        };
        let mut parts = study.split('.');
        let mut id = || parts.next().and_then(|id| Uuid::parse_str(id).ok());
        let (search_id, file_id) = (SearchId::from_uuid(id()?), FileId::from_uuid(id()?));
        let record = parts.next()?.parse().ok()?;
        Some(Self::Damaged(StudyRef { search_id, file_id, record }))
    }
}

impl fmt::Display for ExportContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Studies(format) => f.write_str(format.ending()),
            Self::Damaged(StudyRef { search_id, file_id, record }) => {
                write!(f, "{DAMAGED}{search_id}.{file_id}.{record}")
            }
            Self::Removed => f.write_str(REMOVED),
        }
    }
}

/// The folder of an export's object. Deleting a search empties its own folder and that of its review, so no export
/// contains studies of a deleted search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFolder {
    /// `exports/{project}/{search}/`, for exports of one search.
    Search(ProjectId, SearchId),
    /// `exports/{project}/review/`, for exports of several searches, and exports that are completed with values of
    /// duplicates in other searches.
    Review(ProjectId),
}

impl ExportFolder {
    /// Returns the folder of an export of this search, which contains values of other searches if `is_shared` is `true`.
    pub const fn of(project: ProjectId, search: SearchId, is_shared: bool) -> Self {
        if is_shared { Self::Review(project) } else { Self::Search(project, search) }
    }

    /// Returns the key prefix of an export, for any content.
    pub fn beginning(&self, export: ExportId) -> String {
        format!("{self}{export}.")
    }
}

impl fmt::Display for ExportFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Search(project, search) => write!(f, "{PREFIX}{project}/{search}/"),
            Self::Review(project) => write!(f, "{PREFIX}{project}/review/"),
        }
    }
}

/// The key of an export's object: its folder and `{export}.{ending}`, with the ending of its format,
/// `damaged.{search}.{file}.{record}`, or `removed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportKey {
    /// The folder.
    pub folder: ExportFolder,
    /// The export.
    pub export: ExportId,
    /// The content.
    pub content: ExportContent,
}

impl ExportKey {
    /// Returns the parts of the key of an export's object in this folder; `None` for another key.
    pub fn read(folder: ExportFolder, key: &str) -> Option<Self> {
        let (export, ending) = key.strip_prefix(&folder.to_string())?.split_once('.')?;
        let export = ExportId::from_uuid(Uuid::parse_str(export).ok()?);
        Some(Self { folder, export, content: ExportContent::read(ending)? })
    }

    /// Returns `true` if an export's object with this key contains studies.
    pub fn has_studies(key: &str) -> bool {
        let name = key.rsplit('/').next().unwrap_or_default();
        name.split_once('.').is_some_and(|(_, ending)| !ending.starts_with(DAMAGED) && ending != REMOVED)
    }
}

impl fmt::Display for ExportKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.folder.beginning(self.export), self.content)
    }
}

/// A temporary link to an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportLink {
    /// The URL; a GET returns the export without further credentials, so the link itself grants access.
    pub url: String,
    /// The size of the export in bytes.
    pub size_bytes: u64,
    /// The time at which the link expires.
    pub expires_at: Timestamp,
}

/// Returns the value of the header `Content-Disposition` that has a client save a response under a file name. The name
/// contains letters, digits, dots, hyphens and spaces only. Letters outside ASCII are in the second form of the name
/// (RFC 6266).
pub fn content_disposition(file_name: &str) -> String {
    if file_name.is_ascii() {
        return format!("attachment; filename=\"{file_name}\"");
    }
    let ascii: String = file_name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
    let encoded: String = file_name.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    });
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{encoded}")
}

/// The chunks of an export, as they are produced.
pub type Pieces<'a> = BoxStream<'a, Result<Vec<u8>, StoreError>>;

/// Stores exports and creates links to them.
#[async_trait]
pub trait KeepExports: Send + Sync {
    /// Stores an object under a key once `pieces` has ended, replacing an existing one, and returns its size in
    /// bytes. The object becomes visible only when it is complete.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable, or the error of `pieces`.
    async fn keep(&self, key: &ExportKey, pieces: Pieces<'_>) -> Result<u64, StoreError>;

    /// Returns a link that downloads an object under this file name, or `None` if the object does not exist.
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
    fn content_is_read_from_key() {
        let (project, search) =
            (ProjectId::from_uuid(Uuid::from_u128(1)), SearchId::from_uuid(Uuid::from_u128(2)));
        let export = ExportId::from_uuid(Uuid::from_u128(3));
        let file_id = FileId::from_uuid(Uuid::from_u128(4));
        let damaged = ExportContent::Damaged(StudyRef { search_id: search, file_id, record: 17 });
        let (own, review) = (ExportFolder::Search(project, search), ExportFolder::Review(project));
        let others = [damaged, ExportContent::Removed];
        for content in Format::ALL.map(ExportContent::Studies).into_iter().chain(others) {
            for (folder, other) in [(own, review), (review, own)] {
                let key = ExportKey { folder, export, content };
                let text = key.to_string();
                assert_eq!(ExportKey::read(folder, &text), Some(key), "{text}");
                assert_eq!(ExportKey::read(other, &text), None, "{text}");
                assert_eq!(ExportKey::has_studies(&text), !others.contains(&content), "{text}");
            }
        }
        for end in ["", "ris2", "damaged.", "damaged.x.y.1", &format!("damaged.{search}.{search}.x")] {
            let key = format!("{own}{export}.{end}");
            assert_eq!(ExportKey::read(own, &key), None, "{key}");
        }
    }

    #[test]
    fn non_ascii_file_name_is_encoded() {
        assert_eq!(content_disposition("Sleep-studies.ris"), "attachment; filename=\"Sleep-studies.ris\"");
        assert_eq!(
            content_disposition("Schläfrigkeit.ris"),
            "attachment; filename=\"Schl_frigkeit.ris\"; filename*=UTF-8''Schl%C3%A4frigkeit.ris"
        );
    }

    #[test]
    fn export_is_awaited_for_an_hour_despite_skew() {
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
