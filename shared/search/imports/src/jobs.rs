//! Queries of import jobs, including changes that are not yet written to the views.

use std::sync::Arc;

use ::messages::StoreError;
use ::saga::Views;
use async_trait::async_trait;
use jiff::Timestamp;
use outbox::{AgeFilter, Cursor, Page, View, ViewPosition};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{FileId, ProjectId, SearchId};
use crate::job::{Job, JobFile, JobState, Outcome};
use crate::saga::SearchImport;

/// The maximum number of jobs that are examined for one page.
pub const MAX_SCANNED: usize = 1_000;
/// The number of jobs that are read at a time if few are requested.
const SCAN_BATCH: usize = 200;

/// Queries jobs.
#[derive(Clone)]
pub struct Jobs {
    /// The views that contain the jobs.
    pub views: Views<SearchImport>,
    /// The reading progress of files.
    pub progress: Arc<dyn ReadProgress>,
}

impl Jobs {
    /// Returns the job of a search.
    pub async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError> {
        self.views.view(search).await?.map(read).transpose()
    }

    /// Returns the job of a search from its latest document, or its view if the document has expired.
    pub async fn latest(&self, search: SearchId, now: Timestamp) -> Result<Option<Job>, StoreError> {
        let latest = self.views.documents.load_latest(search, now).await?;
        let latest = latest.map(|document| document.open(&self.views.saga)).transpose()?;
        match latest.and_then(|document| document.content.state.job(search)) {
            Some(job) => Ok(Some(job)),
            None => self.job(search).await,
        }
    }

    /// Returns the unfinished jobs, oldest first. A search that was never announced is included once its job has been
    /// written.
    pub async fn unfinished(&self) -> Result<Vec<Job>, StoreError> {
        self.views.unfinished().await?.into_iter().map(read).collect()
    }

    /// Returns up to `limit` unfinished jobs, oldest first.
    pub async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.views.oldest_unfinished(limit).await?.into_iter().map(read).collect()
    }

    /// Counts the jobs of a project that had not ended when they were last written, up to a minute ago; up to
    /// `limit`.
    pub async fn count_written_open(&self, project: ProjectId, limit: usize) -> Result<usize, StoreError> {
        self.views.written.count_unfinished_of(project.as_uuid(), limit).await
    }

    /// Returns up to `limit` unfinished jobs of a project.
    pub async fn open(&self, project: ProjectId, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.views.unfinished_of(project.as_uuid(), limit).await?.into_iter().map(read).collect()
    }

    /// Returns a page of up to `limit` jobs of a project, newest first, after a cursor. A search that was never
    /// announced is included once its job has been written.
    pub async fn of_project(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<Job>, StoreError> {
        self.matching(project, after, limit, |_| true).await
    }

    /// Works like [`Jobs::of_project`], for matching jobs in their current state. To bound the work of a request, up to
    /// [`MAX_SCANNED`] jobs are examined: a page may be short or empty even if more follow its `next`.
    pub async fn matching(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
        is_wanted: impl Fn(&Job) -> bool + Send + Sync,
    ) -> Result<Page<Job>, StoreError> {
        let list = Source::List(project.as_uuid());
        let mut left = MAX_SCANNED;
        self.scan(&list, after, limit, &mut left, &is_wanted).await
    }

    /// Returns a page of up to `limit` jobs of one or all projects after a cursor. Unfinished jobs come first,
    /// beginning with the oldest; ended jobs follow, beginning with the newest. The result contains the cursor of the
    /// next page if more jobs may follow. Up to [`MAX_SCANNED`] jobs are examined, as in [`Jobs::matching`]. If only
    /// final states are requested, a job that ended within the last minute may be missing.
    pub async fn by_age(
        &self,
        wanted: &ByAge,
        after: Option<AgePlace>,
        limit: usize,
    ) -> Result<(Vec<Job>, Option<AgePlace>), StoreError> {
        let (mut items, mut left) = (Vec::new(), MAX_SCANNED);
        let AgePlace { ended: first, after: mut place } =
            after.unwrap_or(AgePlace { ended: false, after: None });
        let groups = [false, true].into_iter().filter(|ended| (*ended || !first) && wanted.may_be(*ended));
        for ended in groups {
            if items.len() == limit || left == 0 {
                return Ok((items, Some(AgePlace { ended, after: None })));
            }
            let list = wanted.project.map(|project| project.as_uuid());
            let aged = Source::Aged(AgeFilter { list, ended, before: wanted.before });
            let is_wanted = |job: &Job| wanted.states.is_empty() || wanted.states.contains(&job.state);
            let max = limit - items.len();
            let Page { items: found, next } =
                self.scan(&aged, place.take(), max, &mut left, &is_wanted).await?;
            items.extend(found);
            if next.is_some() {
                return Ok((items, Some(AgePlace { ended, after: next })));
            }
        }
        Ok((items, None))
    }

    /// Examines a list until the page is full, the list ends, or `left` jobs have been examined.
    async fn scan(
        &self,
        source: &Source,
        after: Option<Cursor>,
        limit: usize,
        left: &mut usize,
        is_wanted: &(impl Fn(&Job) -> bool + Send + Sync),
    ) -> Result<Page<Job>, StoreError> {
        let (mut items, mut place, mut at_once) = (Vec::new(), after, limit);
        loop {
            let found = self.read(source, place, at_once.min(*left)).await?;
            // The current view may not state the position at which it is listed.
            let places: Vec<Cursor> = found.items.iter().map(View::place).collect();
            *left = left.saturating_sub(places.len());
            let mut views = places.into_iter().zip(self.views.refresh(found.items).await?).peekable();
            while let Some((at, view)) = views.next() {
                place = Some(at);
                if !view.is_removed() {
                    items.extend(Some(read(view)?).filter(is_wanted));
                }
                if items.len() == limit {
                    let is_last = found.next.is_none() && views.peek().is_none();
                    return Ok(Page { items, next: place.filter(|_| !is_last) });
                }
            }
            if found.next.is_none() || *left == 0 {
                return Ok(Page { items, next: found.next });
            }
            at_once = SCAN_BATCH;
        }
    }

    async fn read(&self, source: &Source, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        match source {
            Source::List(list) => self.views.written.list(*list, after, limit).await,
            Source::Aged(aged) => self.views.written.by_age(aged, after, limit).await,
        }
    }

    /// Returns up to `limit` jobs of a project that have not ended or were written after `since`, as in
    /// [`outbox::ReadViews::changed`]; `None` for a deleted one.
    pub async fn changed(
        &self,
        project: ProjectId,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, Option<Job>)>, StoreError> {
        let found = self.views.changed(project.as_uuid(), since, after, limit).await?;
        let job = |view: View| (!view.is_removed()).then(|| read(view)).transpose();
        found.into_iter().map(|(place, view)| Ok((place, job(view)?))).collect()
    }

    /// Returns the progress of the files of a search that have reported it.
    pub async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        self.progress.progress(search).await
    }
}

/// The list that a scan reads.
enum Source {
    List(Uuid),
    Aged(AgeFilter),
}

/// A filter of jobs by age.
#[derive(Debug, Clone)]
pub struct ByAge {
    /// Selects jobs of this project, or of all.
    pub project: Option<ProjectId>,
    /// Selects jobs in one of these states; all if it is empty.
    pub states: Vec<JobState>,
    /// Selects jobs that were created before this time.
    pub before: Timestamp,
}

/// A cursor in the jobs by age.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgePlace {
    /// `true` if the cursor is in the group of ended jobs.
    pub ended: bool,
    /// The last job of the page; `None` before the first one.
    pub after: Option<Cursor>,
}

impl ByAge {
    /// Returns `true` if jobs that have ended, or have not, can be in a requested state.
    fn may_be(&self, ended: bool) -> bool {
        self.states.is_empty() || self.states.iter().any(|state| state.has_ended() == ended)
    }
}

fn read(view: View) -> Result<Job, StoreError> {
    let partition = view.partition;
    Job::try_from(view)
        .map_err(|error| StoreError::unusable(format!("reading the job of search {partition}"), error))
}

/// The reading progress of a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Number of records found so far.
    pub records: u64,
    /// Number of bytes read so far.
    pub bytes: u64,
}

/// The processing phase of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FilePhase {
    /// The file has not arrived.
    Awaited,
    /// The file has arrived, and waits for other files to arrive or to be read.
    Waiting,
    /// The file is being read.
    Reading,
    /// All records were read, and duplicates are being marked.
    MarkingDuplicates,
    /// The file was processed completely.
    Done,
    /// The file was rejected, or the import ended without it.
    Failed,
}

impl FilePhase {
    /// Returns the phase of a file of an import that has ended or not.
    pub fn of(file: &JobFile, has_ended: bool, progress: Option<Progress>) -> Self {
        match (&file.outcome, progress) {
            (Some(Outcome::Completed(_)), _) => Self::Done,
            (Some(Outcome::Failed { .. }), _) => Self::Failed,
            (None, _) if has_ended => Self::Failed,
            (None, _) if !file.received => Self::Awaited,
            (None, None) => Self::Waiting,
            (None, Some(progress)) if file.size_bytes.is_some_and(|size| progress.bytes >= size) => {
                Self::MarkingDuplicates
            }
            (None, Some(_)) => Self::Reading,
        }
    }
}

/// Reports the reading progress of files.
#[async_trait]
pub trait ReportProgress: Send + Sync {
    /// Replaces the progress that was reported before.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The import does not depend on it.
    async fn report(&self, search: SearchId, file: FileId, progress: Progress) -> Result<(), StoreError>;
}

/// Reads the reported progress.
#[async_trait]
pub trait ReadProgress: Send + Sync {
    /// Returns the progress of the files of a search that have reported it, in the order of the files.
    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError>;
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::FileId;
    use crate::job::Counts;

    #[test]
    fn phase_follows_outcome_and_progress() {
        let file = |received, outcome| JobFile {
            file_id: FileId::from_uuid(Uuid::nil()),
            name: None,
            size_bytes: Some(200),
            announced_bytes: None,
            received,
            outcome,
        };
        let read = |bytes| Some(Progress { records: 3, bytes });
        let phase = |received, progress| FilePhase::of(&file(received, None), false, progress);
        assert_eq!((phase(false, None), phase(true, None)), (FilePhase::Awaited, FilePhase::Waiting));
        assert_eq!(
            (phase(true, read(199)), phase(true, read(200))),
            (FilePhase::Reading, FilePhase::MarkingDuplicates)
        );
        let unknown = JobFile { size_bytes: None, ..file(true, None) };
        assert_eq!(FilePhase::of(&unknown, false, read(1)), FilePhase::Reading);
        let ended = |outcome| FilePhase::of(&file(true, outcome), true, read(200));
        assert_eq!(ended(Some(Outcome::Completed(Counts::default()))), FilePhase::Done);
        assert_eq!(ended(Some(Outcome::Failed { reason: String::new() })), FilePhase::Failed);
        assert_eq!(ended(None), FilePhase::Failed, "the import ended without it");
    }
}
