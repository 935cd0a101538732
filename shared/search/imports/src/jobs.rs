//! Imports as their readers see them, as of now.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use outbox::{Aged, Cursor, Page, View, Written};
use saga::Views;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{FileId, ProjectId, SearchId};
use crate::job::{Job, JobState};
use crate::saga::SearchImport;

/// The most jobs that are looked at for one page.
pub const MOST_SCANNED: usize = 1_000;
/// How many of them are read at once when few are wanted.
const AT_ONCE: usize = 200;

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

    /// Up to `limit` of them.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn oldest_unfinished(&self, limit: usize) -> Result<Vec<Job>, StoreError> {
        self.views.oldest_unfinished(limit).await?.into_iter().map(read).collect()
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
        self.matching(project, after, limit, |_| true).await
    }

    /// The same for those that are wanted, as they are now. So that a request stays bounded, at most [`MOST_SCANNED`] jobs
    /// are looked at: a page may be short, or empty, although more follows after its `next`.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn matching(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
        is_wanted: impl Fn(&Job) -> bool + Send + Sync,
    ) -> Result<Page<Job>, StoreError> {
        let list = Source::List(project.as_uuid());
        let mut left = MOST_SCANNED;
        self.scan(&list, after, limit, &mut left, &is_wanted).await
    }

    /// Up to `limit` jobs of all projects or of one: those that have not ended, the oldest first, and then the others, the
    /// latest first. From after a place among them or from the beginning; with the place where they end, if more may follow.
    /// At most [`MOST_SCANNED`] are looked at, as in [`Jobs::matching`]. Where only states are wanted in which a job has ended,
    /// one that has done so in the last minute may be missing.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn by_age(
        &self,
        wanted: &ByAge,
        after: Option<AgePlace>,
        limit: usize,
    ) -> Result<(Vec<Job>, Option<AgePlace>), StoreError> {
        let (mut items, mut left) = (Vec::new(), MOST_SCANNED);
        let AgePlace { ended: first, after: mut place } =
            after.unwrap_or(AgePlace { ended: false, after: None });
        let groups = [false, true].into_iter().filter(|ended| (*ended || !first) && wanted.may_be(*ended));
        for ended in groups {
            if items.len() == limit || left == 0 {
                return Ok((items, Some(AgePlace { ended, after: None })));
            }
            let list = wanted.project.map(|project| project.as_uuid());
            let aged = Source::Aged(Aged { list, ended, before: wanted.before });
            let is_wanted = |job: &Job| wanted.states.is_empty() || wanted.states.contains(&job.state);
            let most = limit - items.len();
            let Page { items: found, next } =
                self.scan(&aged, place.take(), most, &mut left, &is_wanted).await?;
            items.extend(found);
            if next.is_some() {
                return Ok((items, Some(AgePlace { ended, after: next })));
            }
        }
        Ok((items, None))
    }

    /// Looks through a list until there are enough, it is over, or so many were looked at as are left to be.
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
            // A view as it is now need not say where in the list it was written.
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
            at_once = AT_ONCE;
        }
    }

    async fn read(&self, source: &Source, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        match source {
            Source::List(list) => self.views.written.list(*list, after, limit).await,
            Source::Aged(aged) => self.views.written.by_age(aged, after, limit).await,
        }
    }

    /// Up to `limit` jobs of a project that have not ended, or were written after `since`, as
    /// [`outbox::ReadViews::changed`] has them; none for one that was deleted.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn changed(
        &self,
        project: ProjectId,
        since: u64,
        after: Option<Written>,
        limit: usize,
    ) -> Result<Vec<(Written, Option<Job>)>, StoreError> {
        let found = self.views.changed(project.as_uuid(), since, after, limit).await?;
        let job = |view: View| (!view.is_removed()).then(|| read(view)).transpose();
        found.into_iter().map(|(place, view)| Ok((place, job(view)?))).collect()
    }

    /// How far the files of a search are, for those that have reported at all.
    ///
    /// # Errors
    /// As [`Jobs::job`].
    pub async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        self.progress.progress(search).await
    }
}

/// What is looked through.
enum Source {
    List(Uuid),
    Aged(Aged),
}

/// Which jobs are wanted by their age.
#[derive(Debug, Clone)]
pub struct ByAge {
    /// Those of one project, or of all.
    pub project: Option<ProjectId>,
    /// Those in one of these states; all when there are none.
    pub states: Vec<JobState>,
    /// Those that were created before.
    pub before: Timestamp,
}

/// Where a page of jobs by their age ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgePlace {
    /// Whether it is among those that have ended.
    pub ended: bool,
    /// The last one of the page; none before the first one.
    pub after: Option<Cursor>,
}

impl ByAge {
    /// Whether a job that has ended, or has not, may be in a wanted state.
    fn may_be(&self, ended: bool) -> bool {
        self.states.is_empty() || self.states.iter().any(|state| state.has_ended() == ended)
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
