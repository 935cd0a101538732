//! Imports as their readers see them, as of now.

use std::sync::Arc;

use async_trait::async_trait;
use messages::StoreError;
use outbox::{Cursor, Page, View};
use saga::Views;
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, ProjectId, SearchId};
use crate::job::Job;
use crate::saga::SearchImport;

/// Reads jobs.
#[derive(Clone)]
pub struct Jobs {
    /// The views that jobs are.
    pub views: Views<SearchImport>,
    /// How far their files are.
    pub progress: Arc<dyn ReadProgress>,
}

impl Jobs {
    /// The job of a search.
    ///
    /// # Errors
    /// When a store does not answer, or holds something that is not a job.
    pub async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError> {
        self.views.view(search).await?.map(read).transpose()
    }

    /// The jobs that have not ended, the oldest first. A search that nobody announced is among them once its job has
    /// been written.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn unfinished(&self) -> Result<Vec<Job>, StoreError> {
        self.views.unfinished().await?.into_iter().map(read).collect()
    }

    /// How many jobs of a project had not ended when they were written last, which is a minute ago at most; up to `limit`.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn count_written_open(&self, project: ProjectId, limit: usize) -> Result<usize, StoreError> {
        self.views.written.count_unfinished_of(project.as_uuid(), limit).await
    }

    /// Up to `limit` jobs of a project that have not ended.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn open(&self, project: ProjectId, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.views.unfinished_of(project.as_uuid(), limit).await?.into_iter().map(read).collect()
    }

    /// Up to `limit` jobs of a project, the latest first, from after a place in the list or from its beginning. A
    /// search that nobody announced is among them once its job has been written.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn of_project(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<Job>, StoreError> {
        let Page { items, next } = self.views.list(project.as_uuid(), after, limit).await?;
        Ok(Page { items: items.into_iter().map(read).collect::<Result<_, _>>()?, next })
    }

    /// How far the files of a search are, for those that have reported at all.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        self.progress.progress(search).await
    }
}

fn read(view: View) -> Result<Job, StoreError> {
    let partition = view.partition;
    Job::try_from(view)
        .map_err(|error| StoreError::unusable(format!("reading the job of search {partition}"), error))
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

/// Reads what was reported.
#[async_trait]
pub trait ReadProgress: Send + Sync {
    /// How far the files of a search are, in the order of the files, for those that have reported at all.
    ///
    /// # Errors
    /// When the store does not answer, or holds something else.
    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError>;
}
