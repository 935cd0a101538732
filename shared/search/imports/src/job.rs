//! The import job: the view of one search, which the saga writes and clients read.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outbox::View;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{FileId, ProjectId, SearchId};

pub use crate::vocabulary::Counts;

/// An import and its progress.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The id of the search, which is also the key of its partition.
    pub search_id: SearchId,
    /// The review that the import belongs to.
    pub project_id: ProjectId,
    /// The name; `None` while only unannounced files have arrived.
    pub name: Option<String>,
    /// The state.
    pub state: JobState,
    /// The reason for [`JobState::Error`], in plain language for the reviewer.
    pub reason: Option<String>,
    /// The files, in the manifest's order.
    pub files: Vec<JobFile>,
    /// The search that the import repairs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
    /// The time at which the first message of the search was handled.
    pub created_at: Timestamp,
    /// The time at which the import ended.
    pub completed_at: Option<Timestamp>,
    /// The version of the saga's document from which the job was written; `start-upload` writes 0. A write whose
    /// revision is not greater than the stored one changes nothing, so writes may be repeated and reordered.
    pub revision: u64,
}

/// The state of an import: the saga's states without `Initial`, which is never stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum JobState {
    /// Files are expected.
    Uploading,
    /// Files have arrived, but not the manifest.
    Uploaded,
    /// All files have arrived and are being read.
    Parsing,
    /// Every file was read.
    Completed,
    /// The import failed permanently.
    Error,
}

impl JobState {
    /// Returns `true` if the state is final.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Error)
    }
}

impl std::fmt::Display for JobState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Uploading => "Uploading",
            Self::Uploaded => "Uploaded",
            Self::Parsing => "Parsing",
            Self::Completed => "Completed",
            Self::Error => "Error",
        })
    }
}

/// One file of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile {
    /// The id of the file, from the manifest or the object's key.
    pub file_id: FileId,
    /// The name; `None` until the manifest or the file arrives.
    pub name: Option<String>,
    /// The size in bytes: the announced size until the file arrives, then the stored size.
    pub size_bytes: Option<u64>,
    /// The announced size in bytes, if the file has arrived with another size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_bytes: Option<u64>,
    /// `true` if the file has arrived.
    pub received: bool,
    /// The result of reading it.
    pub outcome: Option<Outcome>,
}

/// The result of reading a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The file was read completely.
    Completed(Counts),
    /// The file was rejected or could not be read. None of its records are stored.
    Failed {
        /// The reason, in plain language for the reviewer.
        reason: String,
    },
}

impl Job {
    /// Returns `true` if the search will never count one of its files, because the file failed or the search ended
    /// without it.
    pub fn has_abandoned(&self, file: &JobFile) -> bool {
        match file.outcome {
            Some(Outcome::Completed(_)) => false,
            Some(Outcome::Failed { .. }) => true,
            None => self.state.has_ended(),
        }
    }

    /// Returns the number of stored studies of all files.
    pub fn studies(&self) -> u64 {
        self.files
            .iter()
            .map(|file| match &file.outcome {
                Some(Outcome::Completed(counts)) => counts.studies,
                Some(Outcome::Failed { .. }) | None => 0,
            })
            .sum()
    }

    /// Returns the number of unreadable records of all files.
    pub fn quarantined(&self) -> u64 {
        self.files
            .iter()
            .map(|file| match &file.outcome {
                Some(Outcome::Completed(counts)) => counts.quarantined,
                Some(Outcome::Failed { .. }) | None => 0,
            })
            .sum()
    }

    /// Returns a distinct display name for each file, in the order of [`Job::files`]: its name, or its id if it has
    /// none. Files that share a name are numbered: `x.ris (1)`, `x.ris (2)`.
    pub fn file_names(&self) -> Vec<String> {
        let names = self.files.iter().map(JobFile::name_or_id).collect::<Vec<_>>();
        let mut times = BTreeMap::new();
        names.iter().for_each(|name| *times.entry(name.as_str()).or_insert(0) += 1);
        let mut called = BTreeMap::new();
        let distinct = |name: &String| {
            if times.get(name.as_str()) == Some(&1) {
                return name.clone();
            }
            let number = called.entry(name.clone()).or_insert(0_usize);
            loop {
                *number += 1;
                let numbered = format!("{name} ({number})");
                // A file may itself be named `x.ris (1)`.
                if !times.contains_key(numbered.as_str()) {
                    return numbered;
                }
            }
        };
        names.iter().map(distinct).collect()
    }

    /// Returns the display name of one file, as in [`Job::file_names`].
    pub fn file_name(&self, file: FileId) -> String {
        let place = self.files.iter().position(|known| known.file_id == file);
        place.and_then(|place| self.file_names().into_iter().nth(place)).unwrap_or_else(|| file.to_string())
    }
}

impl JobFile {
    fn name_or_id(&self) -> String {
        self.name.clone().unwrap_or_else(|| self.file_id.to_string())
    }
}

impl From<&Job> for View {
    fn from(job: &Job) -> Self {
        // Ids, texts, numbers and times can always be serialized.
        let body = serde_json::to_value(job).unwrap_or_default();
        Self {
            revision: job.revision,
            list: job.project_id.as_uuid(),
            created_at: job.created_at,
            ..Self::new(job.search_id, body, job.state.has_ended())
        }
    }
}

impl TryFrom<View> for Job {
    type Error = serde_json::Error;

    fn try_from(view: View) -> Result<Self, serde_json::Error> {
        Ok(Self { revision: view.revision, ..serde_json::from_value(view.body)? })
    }
}

/// Reads the form in which versions without views stored it: the job alone.
pub fn earlier_view(value: Value) -> Option<View> {
    serde_json::from_value::<Job>(value).ok().as_ref().map(View::from)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn files_sharing_a_name_are_numbered() {
        let file = |(n, name): (usize, &&str)| JobFile {
            file_id: FileId::from_uuid(Uuid::from_u128(n as u128)),
            name: (!name.is_empty()).then(|| (*name).to_owned()),
            size_bytes: None,
            announced_bytes: None,
            received: false,
            outcome: None,
        };
        let called = |names: &[&str]| {
            let job = Job {
                search_id: SearchId::from_uuid(Uuid::nil()),
                project_id: ProjectId::from_uuid(Uuid::nil()),
                name: None,
                state: JobState::Parsing,
                reason: None,
                files: names.iter().enumerate().map(file).collect(),
                repairs: None,
                created_at: Timestamp::UNIX_EPOCH,
                completed_at: None,
                revision: 0,
            };
            let one_by_one = job.files.iter().map(|file| job.file_name(file.file_id)).collect::<Vec<_>>();
            assert_eq!(one_by_one, job.file_names());
            one_by_one
        };
        assert_eq!(called(&["a.ris", "b.ris"]), ["a.ris", "b.ris"]);
        assert_eq!(called(&["a.ris", "b.ris", "a.ris"]), ["a.ris (1)", "b.ris", "a.ris (2)"]);
        assert_eq!(called(&["a", "a", "a (1)"]), ["a (2)", "a (3)", "a (1)"]);
        assert_eq!(called(&["", ""]), [0, 1].map(|n| Uuid::from_u128(n).to_string()));
    }
}
