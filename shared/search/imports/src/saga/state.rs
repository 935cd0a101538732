//! The state of a search between two messages.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::messages::ObjectRef;
use crate::{FileId, Job, JobFile, JobState, Outcome, ProjectId, SearchId, TimeoutId};

/// The state of one search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Nothing is known about the search; nothing is stored.
    #[default]
    Initial,
    /// Files are expected, and their number is known.
    Uploading(Import),
    /// Files have arrived, but the search was not announced yet.
    Uploaded(Import),
    /// All files have arrived, and each has a parse command.
    Parsing(Import),
    /// Every file was read.
    Completed(EndedSearch),
    /// The search failed permanently.
    Error(EndedSearch),
}

/// The data of an unfinished search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The search's name, once it is known from the announcement or an upload.
    pub name: Option<String>,
    /// Number of its files, once it is known from the announcement or an upload.
    pub expected_files: Option<usize>,
    /// `true` if the manifest was received, so that `files` is complete.
    pub announced: bool,
    /// The files known so far. The ids of the files sort in the order of the manifest.
    pub files: BTreeMap<FileId, File>,
    /// The running timeout, for the arrival of the files or for the results of reading them. `None` in documents of
    /// earlier versions whose files are being read.
    pub timeout: Option<TimeoutId>,
    /// The scan in progress for files without a notification.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<BucketScan>,
    /// The search that this search repairs, if the announcement names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
    /// The time at which its first message was handled.
    pub created_at: Timestamp,
}

/// A scan of the bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketScan {
    /// The timeout that was scheduled with the scan.
    pub id: TimeoutId,
    /// `true` if the search ends when nothing new is found; `false` once a file has arrived in the meantime.
    pub decides: bool,
}

/// The data of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// The name; `None` until the manifest or the file arrives.
    pub name: Option<String>,
    /// The announced size in bytes.
    pub announced_bytes: Option<u64>,
    /// The location, once the file has arrived.
    pub object: Option<ObjectRef>,
    /// The result, once the file was parsed.
    pub outcome: Option<Outcome>,
}

/// A search that has ended. It is kept for a while so that late duplicates are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedSearch {
    /// The data at the end.
    pub import: Import,
    /// The time at which the search ended.
    pub at: Timestamp,
    /// The reason of the failure, in plain language for the reviewer.
    pub reason: Option<String>,
}

impl State {
    /// Returns the state's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Initial => "Initial",
            Self::Uploading(_) => "Uploading",
            Self::Uploaded(_) => "Uploaded",
            Self::Parsing(_) => "Parsing",
            Self::Completed(_) => "Completed",
            Self::Error(_) => "Error",
        }
    }

    /// Returns the time at which it ended, if it has.
    pub fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Completed(ended) | Self::Error(ended) => Some(ended.at),
            Self::Initial | Self::Uploading(_) | Self::Uploaded(_) | Self::Parsing(_) => None,
        }
    }

    /// Returns the running timeout, if any.
    pub fn timeout(&self) -> Option<TimeoutId> {
        match self {
            Self::Uploading(import) | Self::Uploaded(import) | Self::Parsing(import) => import.timeout,
            Self::Initial | Self::Completed(_) | Self::Error(_) => None,
        }
    }

    /// Returns the job for readers; `None` in [`State::Initial`]. The engine sets the revision when it stores the
    /// state.
    pub fn job(&self, search_id: SearchId) -> Option<Job> {
        let (state, import, ended) = match self {
            Self::Initial => return None,
            Self::Uploading(import) => (JobState::Uploading, import, None),
            Self::Uploaded(import) => (JobState::Uploaded, import, None),
            Self::Parsing(import) => (JobState::Parsing, import, None),
            Self::Completed(ended) => (JobState::Completed, &ended.import, Some(ended)),
            Self::Error(ended) => (JobState::Error, &ended.import, Some(ended)),
        };
        Some(Job {
            search_id,
            project_id: import.project_id,
            name: import.name.clone(),
            state,
            reason: ended.and_then(|ended| ended.reason.clone()),
            files: import.files.iter().map(|(id, file)| file.job_file(*id)).collect(),
            repairs: import.repairs,
            created_at: import.created_at,
            completed_at: ended.map(|ended| ended.at),
            revision: 0,
        })
    }
}

impl Import {
    /// Returns the number of files that have arrived.
    pub fn received(&self) -> usize {
        self.files.values().filter(|file| file.object.is_some()).count()
    }

    /// Returns `true` if every expected file has arrived.
    pub fn is_complete(&self) -> bool {
        self.expected_files == Some(self.received())
    }
}

impl File {
    fn job_file(&self, file_id: FileId) -> JobFile {
        let size_bytes = self.object.as_ref().map(|object| object.size_bytes).or(self.announced_bytes);
        JobFile {
            file_id,
            name: self.name.clone(),
            size_bytes,
            announced_bytes: self.announced_bytes.filter(|announced| Some(*announced) != size_bytes),
            received: self.object.is_some(),
            outcome: self.outcome.clone(),
        }
    }
}
