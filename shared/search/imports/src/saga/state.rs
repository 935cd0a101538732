//! What is remembered of a search between two messages.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::messages::ObjectRef;
use crate::{FileId, Job, JobFile, JobState, Outcome, ProjectId, SearchId, TimeoutId};

/// The state of one search.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum State {
    /// Nothing is known of it; nothing is stored.
    #[default]
    Initial,
    /// Files are expected, and their number is known.
    Uploading(Import),
    /// Files have arrived whose search nobody has announced yet.
    Uploaded(Import),
    /// All files are here, and each has a parse command.
    Parsing(Import),
    /// Every file was read.
    Completed(Ended),
    /// It failed for good.
    Error(Ended),
}

/// What is known of a search that is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Import {
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// The search's name, once somebody said it.
    pub name: Option<String>,
    /// How many files it has, once somebody said it.
    pub expected_files: Option<usize>,
    /// Whether the manifest was seen, so that `files` names all of them.
    pub announced: bool,
    /// The files known so far. Ids are minted in the manifest's order, so this is that order.
    pub files: BTreeMap<FileId, File>,
    /// The timeout that is running: for the files to arrive, or for them to be read. None in documents of earlier
    /// releases that are being read.
    pub timeout: Option<TimeoutId>,
    /// The look that is under way: through the store, for files that nobody told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub look: Option<Look>,
    /// The search that it repairs, if its announcement says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
    /// When its first message was handled.
    pub created_at: Timestamp,
}

/// A look through the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Look {
    /// The timeout that was set with it.
    pub id: TimeoutId,
    /// Whether the search ends when nothing new is found; not when a file has arrived since.
    pub decides: bool,
}

/// What is known of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct File {
    /// Its name; unknown until the manifest or the file itself arrives.
    pub name: Option<String>,
    /// Its size in bytes as announced.
    pub announced_bytes: Option<u64>,
    /// Where it is, once it has arrived.
    pub object: Option<ObjectRef>,
    /// What came of it, once it was parsed.
    pub outcome: Option<Outcome>,
}

/// A search that is over. It stays for a while so that late duplicates are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// What was known at its end.
    pub import: Import,
    /// When it ended.
    pub at: Timestamp,
    /// Why it failed, in words for the reviewer.
    pub reason: Option<String>,
}

impl State {
    /// The state's name.
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

    /// When it ended, if it has.
    pub fn completed_at(&self) -> Option<Timestamp> {
        match self {
            Self::Completed(ended) | Self::Error(ended) => Some(ended.at),
            Self::Initial | Self::Uploading(_) | Self::Uploaded(_) | Self::Parsing(_) => None,
        }
    }

    /// The timeout that is running, if one is.
    pub fn timeout(&self) -> Option<TimeoutId> {
        match self {
            Self::Uploading(import) | Self::Uploaded(import) | Self::Parsing(import) => import.timeout,
            Self::Initial | Self::Completed(_) | Self::Error(_) => None,
        }
    }

    /// The import as its reader sees it; none in [`State::Initial`]. The revision is left at 0 for whoever
    /// stores the state to fill in.
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
    /// How many of its files have arrived.
    pub fn received(&self) -> usize {
        self.files.values().filter(|file| file.object.is_some()).count()
    }

    /// Whether every expected file has arrived.
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
