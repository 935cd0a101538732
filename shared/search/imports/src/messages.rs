//! The messages of the application.

use std::collections::{BTreeMap, BTreeSet};

use ::messages::{Token, messages};
use ::saga::SAGA;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use writers::{Format, Source};

use crate::exports::{ExportId, StudyFilter};
use crate::ids::{FileId, ProjectId, SearchId, TimeoutId};
use crate::key::ObjectKey;
use crate::manifest::Manifest;
use crate::queues::{EVENTS, PARSE};
use crate::vocabulary::{Counts, StudyRef};

pub use crate::vocabulary::ObjectRef;

messages! {
    /// Events of a search.
    pub enum SearchEvent of "search-import" to SAGA {
        /// A search was announced.
        SearchUploadStarted(SearchUploadStarted) = 1,
        /// A file of a search was stored.
        SearchUploadSaved(SearchUploadSaved) = 1,
        /// A file was read completely.
        ReferenceFileParsingCompleted(ReferenceFileParsingCompleted) = 1,
        /// A file was refused or could not be read.
        ReferenceFileFaulted(ReferenceFileFaulted) = 1,
        /// A parse command never succeeded.
        StartParsingFaulted(StartParsingFaulted) = 1,
        /// The files of a search did not arrive in time.
        UploadTimeout(UploadTimeout) = 1,
        /// The bucket was scanned for files without a notification.
        UploadsFound(UploadsFound) = 1,
        /// The files of a search were not read in time.
        ParseTimeout(ParseTimeout) = 1,
        /// A client cancelled a search.
        SearchWithdrawn(SearchWithdrawn) = 1,
    }
}

messages! {
    /// Commands for the parser.
    pub enum ParseCommand of "search-import" to PARSE {
        /// Read one file.
        StartParsing(StartParsing) = 1,
        /// Scan the bucket for files of a search.
        LookForUploads(LookForUploads) = 1,
        /// Delete the stored records of a search's files.
        TakeBackFiles(TakeBackFiles) = 1,
        /// Create an export of a search's studies.
        MakeExport(MakeExport) = 3,
        /// Compare studies again after a reviewer's decision about them.
        CompareStudies(CompareStudies) = 1,
    }
    upcast earlier_export
}

/// Version 1 of `MakeExport` selected studies of one search and without a text, which the defaults of the new fields
/// express. A worker of that version would ignore the new fields and make an incomplete export. Version 2 selected
/// studies that contain the text as it is, and merged none. A worker of that version would make another export.
fn earlier_export(name: &str, from: u16, data: Value) -> Result<Value, String> {
    if name != "MakeExport" || !(1..=2).contains(&from) {
        return Err(format!("version {from} of {name} is not supported"));
    }
    Ok(data)
}

messages! {
    /// Notifications of ended imports, for other systems.
    pub enum ImportEvent of "search-import" to EVENTS {
        /// Every file of a search was read.
        SearchImportCompleted(SearchImportEnded) = 1,
        /// A search failed.
        SearchImportFailed(SearchImportEnded) = 1,
    }
}

/// See [`SearchEvent::SearchUploadStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchUploadStarted {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The files to expect.
    pub manifest: Manifest,
}

/// See [`SearchEvent::SearchUploadSaved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchUploadSaved {
    /// The review that the search belongs to, from the object's key.
    pub project_id: ProjectId,
    /// The id of the stored file, from the object's key.
    pub file_id: FileId,
    /// The file's name, from the object's key.
    pub file_name: String,
    /// The location of its bytes.
    pub object: ObjectRef,
    /// The object's user metadata as stored, up to 2 KB by S3's limit; parsed by [`crate::UploadMetadata::from_map`].
    pub metadata: BTreeMap<String, String>,
}

impl SearchUploadSaved {
    /// Returns the message for a stored object with this key.
    pub fn of(key: &ObjectKey, object: ObjectRef, metadata: BTreeMap<String, String>) -> Self {
        let (project_id, file_id, file_name) = (key.project, key.file, key.name.clone());
        Self { project_id, file_id, file_name, object, metadata }
    }
}

/// See [`SearchEvent::ReferenceFileParsingCompleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceFileParsingCompleted {
    /// The id of the file.
    pub file_id: FileId,
    /// The counts of the file.
    pub counts: Counts,
}

/// See [`SearchEvent::ReferenceFileFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceFileFaulted {
    /// The id of the failed file.
    pub file_id: FileId,
    /// The reason, in plain language for the reviewer.
    pub reason: String,
}

/// See [`SearchEvent::StartParsingFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartParsingFaulted {
    /// The file that the command was for.
    pub file_id: FileId,
    /// The reason, in plain language for the reviewer.
    pub reason: String,
}

/// See [`SearchEvent::UploadTimeout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadTimeout {
    /// The id of the timeout; only the saga's current one has an effect.
    pub timeout_id: TimeoutId,
    /// `true` if a restore of the database may have lost the result of a bucket scan, so that the scan is repeated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeats_scan: bool,
}

impl UploadTimeout {
    /// Returns the event of a timer.
    pub fn of_timer(timeout_id: TimeoutId) -> Self {
        Self { timeout_id, repeats_scan: false }
    }
}

/// See [`SearchEvent::UploadsFound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadsFound {
    /// The scan that this answers; only the saga's current one has an effect.
    pub look_id: TimeoutId,
    /// The messages that notifications would have caused, one for each file.
    pub files: Vec<SearchUploadSaved>,
}

/// See [`SearchEvent::ParseTimeout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParseTimeout {
    /// The id of the timeout; only the saga's current one has an effect.
    pub timeout_id: TimeoutId,
}

/// See [`SearchEvent::SearchWithdrawn`]. It may overtake the announcement, so it repeats the manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchWithdrawn {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The manifest of the announcement.
    pub manifest: Manifest,
}

impl ParseCommand {
    /// Returns the reply token from the field that versions without a token in the envelope used.
    pub fn earlier_reply_token(&self) -> Option<Token> {
        match self {
            Self::StartParsing(command) => command.reply_token.clone(),
            Self::LookForUploads(_)
            | Self::TakeBackFiles(_)
            | Self::MakeExport(_)
            | Self::CompareStudies(_) => None,
        }
    }
}

/// See [`ParseCommand::StartParsing`]. It contains everything that the parser needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartParsing {
    /// The review that the studies belong to.
    pub project_id: ProjectId,
    /// The file to read; the ids of its studies are derived from it.
    pub file_id: FileId,
    /// The file name, for the reviewer.
    pub file_name: String,
    /// The position among the search's files, from 0; studies are listed in this order.
    pub position: u32,
    /// The location of its bytes.
    pub object: ObjectRef,
    /// The time at which the search was announced; absent in messages of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Timestamp>,
    /// The reply token, in the field that versions without a token in the envelope read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Token>,
}

/// See [`ParseCommand::LookForUploads`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookForUploads {
    /// The id of the scan, which is that of the timeout that ends it.
    pub look_id: TimeoutId,
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The files that are known to be stored.
    pub known: BTreeSet<FileId>,
}

/// See [`ParseCommand::TakeBackFiles`]. It has no reply.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakeBackFiles {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The files, which must not be read any more.
    pub files: BTreeSet<FileId>,
    /// `true` if the whole search is deleted: its uploaded files and its view are deleted too.
    pub forget: bool,
}

/// See [`ParseCommand::CompareStudies`]. It has no reply; the result is visible in the marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompareStudies {
    /// The review that the studies belong to.
    pub project_id: ProjectId,
    /// The studies.
    pub studies: Vec<StudyRef>,
}

/// See [`ParseCommand::MakeExport`]. It has no reply; the result is the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MakeExport {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The id of the export.
    pub export_id: ExportId,
    /// The files whose studies are exported; all of them were read completely.
    pub files: BTreeSet<FileId>,
    /// The format of the export.
    #[serde(default)]
    pub format: Format,
    /// The selected studies.
    #[serde(default)]
    pub studies: StudyFilter,
    /// Selects studies that contain the words of this text; see [`crate::WordQuery`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Other searches of the review whose studies follow, in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<SearchToExport>,
    /// `true` to complete studies with the values of their duplicates.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merged: bool,
    /// The sources of the files when the export was requested, so that a redelivered command writes the same object.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<FileId, Source>,
}

impl MakeExport {
    /// Returns `true` if the export contains values of several searches.
    pub fn is_shared(&self) -> bool {
        self.merged || !self.others.is_empty()
    }
}

/// A search of an export with several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchToExport {
    /// The search.
    pub search_id: SearchId,
    /// The files whose studies are exported; all of them were read completely.
    pub files: BTreeSet<FileId>,
}

/// See [`ImportEvent::SearchImportCompleted`] and [`ImportEvent::SearchImportFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchImportEnded {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// Number of stored studies of all files.
    pub studies: u64,
    /// The reason of the failure, in plain language for the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[cfg(test)]
mod tests {
    use ::messages::Message;
    use serde_json::json;

    use super::*;

    #[test]
    fn earlier_export_selects_one_search_without_a_text() {
        let id = "019b76da-a800-700a-8000-000000000001";
        let of_version = |version: u16| {
            let message = json!({
                "specversion": "1.0", "id": id, "source": "/search-import/start-upload",
                "type": format!("search-import.MakeExport.v{version}"), "time": "2026-01-01T00:01:00Z",
                "datacontenttype": "application/json", "correlationid": id,
                "data": { "project_id": id, "export_id": id, "files": [id] },
            });
            Message::decode(&message.to_string()).unwrap().read::<ParseCommand>()
        };
        let Ok(ParseCommand::MakeExport(export)) = of_version(1) else { panic!("version 1 is not readable") };
        assert_eq!((export.text.as_deref(), export.others.as_slice()), (None, &[][..]));
        for later in [2, 3] {
            assert_eq!(of_version(later).unwrap(), ParseCommand::MakeExport(export.clone()));
        }
        assert!(of_version(4).unwrap_err().awaits_upgrade());
    }
}
