//! Stored studies that no search counts.
//!
//! A restore of the database or a defect of an earlier version may leave some. No reviewer sees them, and the next
//! import of the same records finds only duplicates of them.

use std::fmt;
use std::sync::Arc;

use imports::{FileId, FileRef, Job, Jobs, ParseAttempts, Ports, ReadStudies, StoredFile, WriteStudies};
use messages::{Host, StoreError};
use saga::{Failures, MissingSetting, System};

use crate::NAME;
use crate::file_deletion::{delete_file, is_deleted};
use crate::marking::DuplicateMarking;

/// The number of files that are read at a time.
const PAGE: usize = 20;

/// The reason why no search counts the studies of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanReason {
    /// The database does not contain the search.
    UnknownSearch,
    /// The search was deleted.
    DeletedSearch,
    /// The search does not contain the file.
    UnknownFile,
    /// The search ended or continues without the file.
    UnreadFile,
}

impl fmt::Display for OrphanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownSearch => "the import does not exist",
            Self::DeletedSearch => "the import was deleted",
            Self::UnknownFile => "the import does not contain this file",
            Self::UnreadFile => "the import does not count this file as read",
        })
    }
}

/// A page of files whose studies no search counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrphanPage {
    /// The files, each with the reason.
    pub files: Vec<(StoredFile, OrphanReason)>,
    /// The cursor of the next page; `None` at the end.
    pub next: Option<FileRef>,
}

/// Finds stored studies that no search counts, and deletes them.
pub struct OrphanStudies {
    jobs: Jobs,
    stored: Arc<dyn ReadStudies>,
    studies: Arc<dyn WriteStudies>,
    attempts: Arc<dyn ParseAttempts>,
    duplicates: DuplicateMarking,
    failures: Failures,
    by: String,
}

impl OrphanStudies {
    /// Creates the check for an operator, whose name appears in the audit log.
    pub fn over(ports: &Ports, system: &'static System<Ports>, by: String) -> Result<Self, MissingSetting> {
        let stores = ports.study_stores()?;
        Ok(Self {
            jobs: ports.jobs()?,
            stored: Arc::clone(&stores.read_studies),
            studies: Arc::clone(&stores.write_studies),
            attempts: Arc::clone(&stores.parse_attempts),
            duplicates: DuplicateMarking::over(ports)?,
            failures: ports.engine.failures(NAME, system)?,
            by,
        })
    }

    /// Checks the files of a page, which starts after the cursor or at the beginning.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or contains a search that this version cannot read.
    pub async fn page(&self, after: Option<FileRef>) -> Result<OrphanPage, StoreError> {
        let stored = self.stored.stored_files(after, PAGE).await?;
        let next = stored.last().map(|file| FileRef::new(file.search_id, file.file_id));
        let mut files = Vec::new();
        for file in stored {
            files.extend(self.reason(&file).await?.map(|reason| (file, reason)));
        }
        Ok(OrphanPage { files, next })
    }

    /// Deletes the studies of a file, unless a search counts them now. Returns whether they are deleted. The call can
    /// be repeated.
    pub async fn delete(&self, file: &StoredFile) -> Result<bool, StoreError> {
        let Some(reason) = self.reason(file).await? else { return Ok(false) };
        let what = format!("file {} of search {}", file.file_id, file.search_id);
        self.failures.record_action(&self.by, "deleted uncounted studies", what, reason.to_string()).await?;
        let of = FileRef::new(file.search_id, file.file_id);
        let (studies, attempts) = (&*self.studies, &*self.attempts);
        delete_file(studies, attempts, &self.duplicates, file.project_id, of, || false).await
    }

    async fn reason(&self, file: &StoredFile) -> Result<Option<OrphanReason>, StoreError> {
        let search = file.search_id;
        let host: &dyn Host = self.jobs.views.host.as_ref();
        let now = host.now();
        let job = self.jobs.latest(search, now).await?;
        if is_deleted(&self.jobs, &*self.duplicates.records, search, now).await? {
            return Ok(Some(OrphanReason::DeletedSearch));
        }
        Ok(match job {
            Some(job) => reason_in(&job, file.file_id),
            None => Some(OrphanReason::UnknownSearch),
        })
    }
}

/// Returns the reason in an existing search. The studies of a file that is still being read may count later.
fn reason_in(job: &Job, file_id: FileId) -> Option<OrphanReason> {
    match job.files.iter().find(|file| file.file_id == file_id) {
        None => Some(OrphanReason::UnknownFile),
        Some(file) => job.has_abandoned(file).then_some(OrphanReason::UnreadFile),
    }
}
