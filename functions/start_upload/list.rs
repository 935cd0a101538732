//! Looking at searches.

use imports::{FileId, Job, Progress, ProjectId, SearchId};
use messages::StoreError;
use outbox::{Cursor, Page};

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
        let Some(job) = self.jobs.job(search).await? else { return Ok(None) };
        Ok(Some((job, self.jobs.progress(search).await?)))
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
    ) -> Result<Page<Job>, StoreError> {
        self.jobs.of_project(project, after, limit).await
    }
}
