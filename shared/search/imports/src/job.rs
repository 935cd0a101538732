//! The import job: one search as its reader sees it. The saga writes it, people and pages read it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outbox::View;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::contents::Part;
use crate::ids::{FileId, ProjectId, SearchId};

/// One import and how far it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// The search that was imported; its partition has the same key.
    pub search_id: SearchId,
    /// The review it is for.
    pub project_id: ProjectId,
    /// The search's name; unknown while only files without a manifest have arrived.
    pub name: Option<String>,
    /// How far it is.
    pub state: JobState,
    /// Why it ended in [`JobState::Error`], in words for the reviewer.
    pub reason: Option<String>,
    /// Its files in the manifest's order.
    pub files: Vec<JobFile>,
    /// The search that it repairs, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
    /// When the first message of the search was handled.
    pub created_at: Timestamp,
    /// When it ended.
    pub completed_at: Option<Timestamp>,
    /// Version of the saga that wrote it; 0 is `start-upload`. A write with a revision that is not larger than
    /// the stored one changes nothing, so writes may be repeated and may overtake each other.
    pub revision: u64,
}

/// How far an import is. The saga's states, less `Initial`, of which nothing is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum JobState {
    /// Files are expected.
    Uploading,
    /// Files are here, the manifest is not.
    Uploaded,
    /// All files are here and being read.
    Parsing,
    /// Every file was read.
    Completed,
    /// Something failed for good.
    Error,
}

impl JobState {
    /// Whether nothing will change any more.
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
    /// The file's id, from the manifest or from the object's key.
    pub file_id: FileId,
    /// Its name; unknown until the manifest or the file itself arrives.
    pub name: Option<String>,
    /// Its size in bytes, as announced until it arrives and as stored from then on.
    pub size_bytes: Option<u64>,
    /// Its size in bytes as announced, where one of another size has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_bytes: Option<u64>,
    /// Whether it has arrived.
    pub received: bool,
    /// What came of it.
    pub outcome: Option<Outcome>,
}

/// What came of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was read to its end.
    Completed(Counts),
    /// It was refused or could not be read; nothing of it is stored.
    Failed {
        /// In words for the reviewer.
        reason: String,
    },
}

/// What was found in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Counts {
    /// The detected format, such as `RIS`.
    pub format: String,
    /// How certain the format is, such as `certain`; empty in views that older releases wrote.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub format_certainty: String,
    /// The detected encoding, such as `UTF-8`.
    pub encoding: String,
    /// How certain the encoding is, as with the format.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub encoding_certainty: String,
    /// Records in the file, the unreadable ones included.
    pub records: u64,
    /// Studies stored.
    pub studies: u64,
    /// Records set aside because they could not be read.
    pub quarantined: u64,
    /// The files of an archive, or the sheets of a workbook, that were read; none of a file that is not packed. At most
    /// [`MAX_PARTS`](crate::MAX_PARTS).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// What else is to be said of the file, in sentences for the reviewer: what was passed over, and what is missing in many
    /// records. At most some twenty, of some hundred characters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Job {
    /// Whether its files are being read, or were.
    pub fn has_started(&self) -> bool {
        matches!(self.state, JobState::Parsing | JobState::Completed)
            || self.files.iter().any(|file| file.outcome.is_some())
    }

    /// Studies stored for all files together.
    pub fn studies(&self) -> u64 {
        self.files
            .iter()
            .map(|file| match &file.outcome {
                Some(Outcome::Completed(counts)) => counts.studies,
                Some(Outcome::Failed { .. }) | None => 0,
            })
            .sum()
    }

    /// Records of all files together that could not be read.
    pub fn quarantined(&self) -> u64 {
        self.files
            .iter()
            .map(|file| match &file.outcome {
                Some(Outcome::Completed(counts)) => counts.quarantined,
                Some(Outcome::Failed { .. }) | None => 0,
            })
            .sum()
    }

    /// What to call each file in words, in the order of [`Job::files`]: by its name, or by its id while it has none. Of
    /// several files with one name the first is `x.ris (1)`, the next `x.ris (2)`, so no two are called the same.
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
                // Somebody may call a file `x.ris (1)`.
                if !times.contains_key(numbered.as_str()) {
                    return numbered;
                }
            }
        };
        names.iter().map(distinct).collect()
    }

    /// What to call one of its files, as [`Job::file_names`] does.
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
        Self {
            partition: job.search_id,
            revision: job.revision,
            ended: job.state.has_ended(),
            list: job.project_id.as_uuid(),
            created_at: job.created_at,
            // Ids, texts, numbers and times are always JSON.
            body: serde_json::to_value(job).unwrap_or_default(),
        }
    }
}

impl TryFrom<View> for Job {
    type Error = serde_json::Error;

    fn try_from(view: View) -> Result<Self, serde_json::Error> {
        Ok(Self { revision: view.revision, ..serde_json::from_value(view.body)? })
    }
}

/// The view of a job as releases before views staged it: the job alone.
pub fn earlier_view(value: Value) -> Option<View> {
    serde_json::from_value::<Job>(value).ok().as_ref().map(View::from)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn files_of_one_name_are_called_differently_by_their_order() {
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
