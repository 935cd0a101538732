//! The import as its reader sees it.

use async_trait::async_trait;
use contracts::{FileId, Job, ProjectId, SearchId, StoreError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Data written by a transactional session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Write {
    /// A new import job. An existing one stays as it is.
    CreateJob(Box<Job>),
}

/// Writes jobs.
#[async_trait]
pub trait WriteJobs: Send + Sync {
    /// Stores each job unless the stored one has the same or a later revision. Repeating changes nothing.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn write(&self, jobs: &[Job]) -> Result<(), StoreError>;
}

/// Where a page of a list ends: the next one begins after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// When the last import of the page was created.
    pub created_at: Timestamp,
    /// Its search.
    pub search_id: SearchId,
}

/// Some of the imports of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The imports.
    pub jobs: Vec<Job>,
    /// Where it ends; none when nothing follows.
    pub next: Option<Cursor>,
}

impl Page {
    /// The first `limit` of what was found, when one more was asked for to see whether anything follows. Each import
    /// comes with its place in the list, which is where it was stored, not what it shows now.
    pub fn of(mut found: Vec<(Cursor, Job)>, limit: usize) -> Self {
        let follows = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| follows).map(|(cursor, _)| *cursor);
        Self { jobs: found.into_iter().map(|(_, job)| job).collect(), next }
    }
}

/// Reads jobs. While the document of a search is stored, its job is what the document shows, whether or not that has
/// been written as a job yet.
#[async_trait]
pub trait ReadJobs: Send + Sync {
    /// The job of a search, as far as it is now.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a job.
    async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError>;

    /// The jobs that have not ended, the oldest first. A search that nobody announced is among them once its job has
    /// been written.
    ///
    /// # Errors
    /// As [`ReadJobs::job`].
    async fn unfinished(&self) -> Result<Vec<Job>, StoreError>;

    /// Up to `limit` jobs of a project, the latest first, from after a place in the list or from its beginning. A
    /// search that nobody announced is among them once its job has been written.
    ///
    /// # Errors
    /// As [`ReadJobs::job`].
    async fn of_project(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError>;

    /// How far the files of a search are, for those that have reported at all.
    ///
    /// # Errors
    /// As [`ReadJobs::job`].
    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError>;
}

/// How far one file is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Records found so far.
    pub records: u64,
    /// Bytes read so far.
    pub bytes: u64,
}

/// Reports how far a file is.
#[async_trait]
pub trait ReportProgress: Send + Sync {
    /// Replaces what was reported before.
    ///
    /// # Errors
    /// When the store does not answer. The import does not depend on it.
    async fn report(&self, search: SearchId, file: FileId, progress: Progress) -> Result<(), StoreError>;
}
