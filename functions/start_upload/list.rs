//! Looking at searches.

use contracts::{FileId, Job, ProjectId, SearchId, StoreError};
use imports::{Cursor, Page, Progress};

use super::StartUpload;

impl StartUpload {
    /// How far a search is, and each file that is being read.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn status(
        &self,
        search: SearchId,
    ) -> Result<Option<(Job, Vec<(FileId, Progress)>)>, StoreError> {
        let Some(job) = self.ports.jobs.job(search).await? else { return Ok(None) };
        Ok(Some((job, self.ports.jobs.progress(search).await?)))
    }

    /// The searches of a project, the latest first.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn list(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        self.ports.jobs.of_project(project, after, limit).await
    }
}
