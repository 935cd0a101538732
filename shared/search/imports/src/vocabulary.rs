//! The data types that the other modules share.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{FileId, SearchId};

/// A stored object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ObjectRef {
    /// The name of its bucket.
    pub bucket: String,
    /// Its key, not URL-encoded.
    pub key: String,
    /// Its version, in a bucket with versioning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// A file inside an uploaded file, or a sheet, that was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Part {
    /// Its path in the archive, or the name of the sheet; empty for the content of a gzip file.
    pub name: String,
    /// Its index among all entries of the container, from 0.
    pub index: usize,
    /// The number of its first record. Records are numbered consecutively across all parts.
    pub first: u64,
    /// Number of records, including unreadable ones.
    pub records: u64,
    /// The detected format, such as `RIS`.
    pub format: String,
    /// The detected encoding, such as `UTF-8`.
    pub encoding: String,
}

impl Part {
    /// Returns the part that contains a record.
    pub fn of(parts: &[Self], record: u64) -> Option<&Self> {
        parts.iter().find(|part| (part.first..part.first + part.records).contains(&record))
    }
}

/// The counts of a completed file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counts {
    /// The detected format, such as `RIS`.
    pub format: String,
    /// Confidence in the format, such as `certain`; empty in views that earlier versions wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_certainty: String,
    /// The detected encoding, such as `UTF-8`.
    pub encoding: String,
    /// Confidence in the encoding, with the same values as for the format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encoding_certainty: String,
    /// Number of records in the file, including unreadable ones.
    pub records: u64,
    /// Number of stored studies.
    pub studies: u64,
    /// Number of records that could not be read.
    pub quarantined: u64,
    /// The files of an archive, or the sheets of a workbook, that were read, up to [`MAX_PARTS`](crate::MAX_PARTS);
    /// empty if the file is not packed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Notes for the reviewer, in sentences: skipped content, and fields that are missing in many records. Up to
    /// about twenty, of a few hundred characters each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// A file that was read completely.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedFile {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file's id, unique within the search.
    pub file_id: FileId,
    /// The position among the files of the search, from 0.
    pub position: u32,
    /// The file name without a path, as uploaded.
    pub name: String,
    /// The location of its bytes while they are stored.
    pub object: ObjectRef,
    /// The parts that were read if the file is packed. Locations of records refer to their part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The time at which its search was announced; absent in records that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Timestamp>,
}

impl ParsedFile {
    /// Returns the sort key of one of its studies in the order of the project. Searches without an announcement time
    /// come first, because an earlier version that did not store the time has read them.
    pub fn order(&self, record: u64) -> (Option<Timestamp>, SearchId, u32, u64) {
        (self.announced_at, self.search_id, self.position, record)
    }

    /// Returns the location of one of its studies.
    pub fn study(&self, record: u64) -> StudyRef {
        StudyRef { search_id: self.search_id, file_id: self.file_id, record }
    }
}

/// A file of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct FileRef {
    /// The search.
    pub search_id: SearchId,
    /// The file, one of its files.
    pub file_id: FileId,
}

impl FileRef {
    /// Returns the reference of a file of a search.
    pub const fn new(search_id: SearchId, file_id: FileId) -> Self {
        Self { search_id, file_id }
    }
}

/// The location of a study.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
#[schemars(rename = "StudyAt")]
pub struct StudyRef {
    /// The search that contains it.
    pub search_id: SearchId,
    /// The file that contains it.
    pub file_id: FileId,
    /// The record number in the file, from 1.
    pub record: u64,
}

impl StudyRef {
    /// Returns the study's id.
    pub fn id(&self) -> StudyId {
        StudyId::of(self.search_id, self.file_id, self.record)
    }

    /// Returns the file that contains the study.
    pub const fn file(&self) -> FileRef {
        FileRef::new(self.search_id, self.file_id)
    }
}

/// The id of a study. It is derived from search, file and record, so storing a study twice is idempotent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StudyId(Uuid);

impl StudyId {
    /// Returns the id of the study from record `record` (from 1) of `file`.
    pub fn of(search: SearchId, file: FileId, record: u64) -> Self {
        let file = Uuid::new_v5(&search.as_uuid(), file.as_uuid().as_bytes());
        Self(Uuid::new_v5(&file, &record.to_be_bytes()))
    }

    /// The UUID itself.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}
