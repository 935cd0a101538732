//! One attempt to read a file: its input, its deadline, its resume point and its errors.

use std::sync::Arc;

use imports::messages::StartParsing;
use imports::{ContentsError, FileFence};
use jiff::Timestamp;
use messages::{Host, Message, Reporter, StoreError};
use references::Checkpoint;
use references::work::Stop;
use serde::{Deserialize, Serialize};

use super::stats::FileStats;

/// One attempt to read the file of a command.
pub(super) struct FileRead<'a> {
    pub(super) message: &'a Message,
    pub(super) command: &'a StartParsing,
    pub(super) reporter: &'a Reporter,
    pub(super) deadline: Deadline<'a>,
    /// The right to write the file. It is replaced when this attempt deletes the stored records.
    pub(super) fence: FileFence,
}

impl FileRead<'_> {
    /// Returns the signal that stops reading at the deadline.
    pub(super) fn stop(&self) -> Stop {
        let (host, at) = (Arc::clone(&self.reporter.host), self.deadline.at);
        Stop::when(move || host.is_past(at))
    }
}

/// The time until which an invocation may start new work.
#[derive(Clone, Copy)]
pub(super) struct Deadline<'a> {
    pub(super) host: &'a dyn Host,
    /// `None` if the invocation is not limited.
    pub(super) at: Option<Timestamp>,
}

impl Deadline<'_> {
    pub(super) fn has_passed(&self) -> bool {
        self.host.is_past(self.at)
    }
}

/// The position from which an attempt resumes reading a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ResumePoint {
    /// The checkpoint of the reader, within the part or the unpacked file.
    #[serde(flatten)]
    pub(super) within: Checkpoint,
    /// The part that was being read, if the file is packed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) packed: Option<PartProgress>,
}

/// A part of a packed file, and the statistics of the parts before it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct PartProgress {
    /// The index among all entries of the container, from 0.
    pub(super) index: usize,
    /// The statistics of the parts before this part.
    pub(super) read: FileStats,
}

/// The outcome of an attempt that did not fail.
pub(super) enum AttemptOutcome {
    /// The file was read completely.
    Completed(FileStats),
    /// The deadline has passed. This many records and a checkpoint after them are stored.
    Paused(u64),
}

/// Reasons why a file was not read completely.
#[derive(Debug, thiserror::Error)]
pub(super) enum FileError {
    /// A store is unavailable; the attempt can be retried.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read; a retry would fail again.
    #[error(transparent)]
    Refused(#[from] references::Error),
    /// Hardly any record can be read, so the detected format is probably wrong.
    #[error(
        "{quarantined} of {records} records cannot be read, more than the {percent} % tolerated: {first}"
    )]
    Unreadable {
        quarantined: u64,
        records: u64,
        /// The maximum percentage of unreadable records.
        percent: u8,
        /// The first unreadable records, with their reasons.
        first: String,
    },
    /// The file is packed in a way that is not supported.
    #[error(transparent)]
    Packed(archives::Error),
    /// A file inside, or a sheet, cannot be read; a retry would fail again.
    #[error("{name:?}, which is inside: {error}")]
    Inside {
        /// The path of the file in the archive, or the name of the sheet.
        name: String,
        error: references::Error,
    },
    /// An archive contains an archive.
    #[error("{what} is packed itself; unpack it and upload the files inside")]
    Nested {
        /// The name of the inner archive; a description for the content of a gzip file.
        what: String,
    },
    /// The file contains more reference files than are read.
    #[error("it has more than {limit} reference files inside; upload them in several archives")]
    TooManyParts { limit: usize },
    /// The file is a document of an office program.
    #[error(
        "it is {kind}; {}export the references from the database or reference manager, for example as RIS, and upload that \
         file",
        spreadsheet_advice(kind)
    )]
    Document {
        /// The type of the document with its article: `"a Word document"`.
        kind: &'static str,
    },
    /// A packed file contains no reference file.
    #[error("it is {kind} with no reference file inside{reasons}")]
    NothingInside {
        /// The type of the file with its article: `"a ZIP archive"`.
        kind: &'static str,
        /// A colon and the reasons why the first entries were skipped, or nothing.
        reasons: String,
    },
    /// The object no longer exists.
    #[error("the uploaded file is gone")]
    Gone,
}

/// The advice for a document that may be a spreadsheet.
fn spreadsheet_advice(kind: &str) -> &'static str {
    let is_possible = kind.contains("OpenDocument") || kind.contains("Numbers");
    if is_possible { "save a spreadsheet as .xlsx and upload that, or " } else { "" }
}

impl From<ContentsError> for FileError {
    fn from(error: ContentsError) -> Self {
        match error {
            ContentsError::Store(error) => Self::Store(error),
            ContentsError::Refused(error) => Self::Packed(error),
            ContentsError::Gone => Self::Gone,
        }
    }
}
