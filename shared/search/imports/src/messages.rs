//! What travels, and what it says.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use messages::{Token, messages};
use saga::SAGA;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use writers::{Format, Source};

use crate::duplicates::StudyAt;
use crate::exports::{ExportId, Which};
use crate::ids::{FileId, ProjectId, TimeoutId};
use crate::job::Counts;
use crate::key::ObjectKey;
use crate::manifest::Manifest;
use crate::queues::{EVENTS, PARSE};

messages! {
    /// What can happen to a search.
    pub enum SearchEvent of "search-import" to SAGA {
        /// A search was announced.
        SearchUploadStarted(SearchUploadStarted) = 1,
        /// A file of a search was stored.
        SearchUploadSaved(SearchUploadSaved) = 1,
        /// A file was read to its end.
        ReferenceFileParsingCompleted(ReferenceFileParsingCompleted) = 1,
        /// A file was refused or could not be read.
        ReferenceFileFaulted(ReferenceFileFaulted) = 1,
        /// A parse command never succeeded.
        StartParsingFaulted(StartParsingFaulted) = 1,
        /// The files of a search did not arrive in time.
        UploadTimeout(UploadTimeout) = 1,
        /// The store was looked through for files that nobody told of.
        UploadsFound(UploadsFound) = 1,
        /// The files of a search were not read in time.
        ParseTimeout(ParseTimeout) = 1,
        /// A search was withdrawn by whoever announced it.
        SearchWithdrawn(SearchWithdrawn) = 1,
    }
}

messages! {
    /// Commands for whoever reads the uploaded files.
    pub enum ParseCommand of "search-import" to PARSE {
        /// Read one file.
        StartParsing(StartParsing) = 1,
        /// Look which files of a search are stored.
        LookForUploads(LookForUploads) = 1,
        /// Take back what is stored of a search's files.
        TakeBackFiles(TakeBackFiles) = 1,
        /// Make an export of a search's studies.
        MakeExport(MakeExport) = 1,
        /// Compare studies anew, of which somebody has said something.
        CompareStudies(CompareStudies) = 1,
    }
}

messages! {
    /// Announcements of how an import ended, for other systems.
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
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// The files to expect.
    pub manifest: Manifest,
}

/// See [`SearchEvent::SearchUploadSaved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchUploadSaved {
    /// The review that the search is for, from the object's key.
    pub project_id: ProjectId,
    /// Which of the search's files was stored, from the object's key.
    pub file_id: FileId,
    /// The file's name, from the object's key.
    pub file_name: String,
    /// Where its bytes are.
    pub object: ObjectRef,
    /// The object's user metadata as stored, at most 2 KB by S3's limit; read by
    /// [`crate::UploadMetadata::from_map`].
    pub metadata: BTreeMap<String, String>,
}

impl SearchUploadSaved {
    /// What is to be told of a stored object of this key.
    pub fn of(key: &ObjectKey, object: ObjectRef, metadata: BTreeMap<String, String>) -> Self {
        let (project_id, file_id, file_name) = (key.project, key.file, key.name.clone());
        Self { project_id, file_id, file_name, object, metadata }
    }
}

/// One stored object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ObjectRef {
    /// The name of the bucket it is in.
    pub bucket: String,
    /// Its key, not URL-encoded.
    pub key: String,
    /// Its version, in a bucket that keeps versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// See [`SearchEvent::ReferenceFileParsingCompleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceFileParsingCompleted {
    /// Which of the search's files was read.
    pub file_id: FileId,
    /// What was found in it.
    pub counts: Counts,
}

/// See [`SearchEvent::ReferenceFileFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReferenceFileFaulted {
    /// Which of the search's files has failed.
    pub file_id: FileId,
    /// Why, in words for the reviewer.
    pub reason: String,
}

/// See [`SearchEvent::StartParsingFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartParsingFaulted {
    /// The file that the command was for.
    pub file_id: FileId,
    /// Why, in words for the reviewer.
    pub reason: String,
}

/// See [`SearchEvent::UploadTimeout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadTimeout {
    /// Which scheduled timeout this is; one that is not the saga's current one is ignored.
    pub timeout_id: TimeoutId,
}

/// See [`SearchEvent::UploadsFound`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadsFound {
    /// Which look it answers; an answer to any other than the saga's current one is ignored.
    pub look_id: TimeoutId,
    /// What a notification would have told of each file, one entry for a file.
    pub files: Vec<SearchUploadSaved>,
}

/// See [`SearchEvent::ParseTimeout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ParseTimeout {
    /// Which scheduled timeout this is; one that is not the saga's current one is ignored.
    pub timeout_id: TimeoutId,
}

/// See [`SearchEvent::SearchWithdrawn`]. It may overtake the announcement, and so says itself what was announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchWithdrawn {
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// What was announced.
    pub manifest: Manifest,
}

impl ParseCommand {
    /// The token that the reply must carry, where releases before the envelope had one put it.
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

/// See [`ParseCommand::StartParsing`]. It carries all that the parser needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StartParsing {
    /// The review that the studies are for.
    pub project_id: ProjectId,
    /// The file to read; part of the ids of its studies.
    pub file_id: FileId,
    /// Its name, for the reviewer.
    pub file_name: String,
    /// Its place among the search's files, from 0; studies are listed in this order.
    pub position: u32,
    /// Where its bytes are.
    pub object: ObjectRef,
    /// When the search was announced; none in what releases before sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Timestamp>,
    /// The token that the reply must carry, as releases before the envelope had one look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Token>,
}

/// See [`ParseCommand::LookForUploads`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LookForUploads {
    /// Names the look: the timeout that ends it.
    pub look_id: TimeoutId,
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// The files that are known to be stored.
    pub known: BTreeSet<FileId>,
}

/// See [`ParseCommand::TakeBackFiles`]. Nobody waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakeBackFiles {
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// The files; none of them is read any more.
    pub files: BTreeSet<FileId>,
    /// Whether the search is to be forgotten: its uploaded files go too, and readers see it no more.
    pub forget: bool,
}

/// See [`ParseCommand::CompareStudies`]. Nobody waits for an answer: whoever has asked sees the marks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CompareStudies {
    /// The review that the studies are of.
    pub project_id: ProjectId,
    /// The studies.
    pub studies: Vec<StudyAt>,
}

/// See [`ParseCommand::MakeExport`]. Nobody waits for an answer: whoever has asked looks for the object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MakeExport {
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// Names the object.
    pub export_id: ExportId,
    /// The files whose studies it has; all of them were read to their end.
    pub files: BTreeSet<FileId>,
    /// What it is written in.
    #[serde(default)]
    pub format: Format,
    /// Which of their studies.
    #[serde(default)]
    pub studies: Which,
    /// Where the files come from, as it was known when the export was asked for: so a command that comes twice writes the
    /// same.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<FileId, Source>,
}

/// See [`ImportEvent::SearchImportCompleted`] and [`ImportEvent::SearchImportFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchImportEnded {
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// How many studies are stored, of all files together.
    pub studies: u64,
    /// Why it failed, in words for the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}
