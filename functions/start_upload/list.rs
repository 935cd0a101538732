//! Looking at searches.

use imports::{FileId, Job, Progress, ProjectId, SearchId};
use messages::StoreError;
use outbox::{Cursor, Page};

use super::{Caller, StartUpload};

impl StartUpload {
    /// A search that is of a project of the caller's. What anybody asks about one search begins here.
    pub(super) async fn find(&self, caller: &Caller, search: SearchId) -> Result<Option<Job>, StoreError> {
        Ok(self.jobs.job(search).await?.filter(|job| caller.may_enter(job.project_id)))
    }

    /// How far a search is, and each file that is being read; none when there is none, or it is not the caller's.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn status(
        &self,
        caller: &Caller,
        search: SearchId,
    ) -> Result<Option<(Job, Vec<(FileId, Progress)>)>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
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
