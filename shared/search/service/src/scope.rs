//! The studies of a whole review, or of one import together with the imports that repair it.

use std::collections::BTreeMap;

use imports::{FileId, FileRef, Job, ProjectId, SearchId};
use messages::StoreError;
use outbox::{Cursor, Page};

use crate::exported_studies::FileToExport;
use crate::study_view::RecordPlace;
use crate::{ProjectAccess, SearchService, StoredSearch};

/// The maximum number of imports that one export contains; each takes several reads.
pub const MAX_EXPORTED_SEARCHES: usize = 1_000;
/// The maximum number of imports of a review that one request reads; each takes several reads.
const MAX_SEARCHES: usize = 1_000;
/// The number of imports that are read at a time.
const SEARCHES: usize = 200;

/// The imports and files whose studies a request is about.
#[derive(Debug, Clone)]
pub enum Scope {
    /// All imports of a review.
    Review(ProjectId),
    /// An import and the imports that repair it.
    Import {
        /// The import, followed by its repairs in the order of their age.
        jobs: Vec<Job>,
        /// The files; `None` for all of them.
        files: Option<Vec<FileId>>,
    },
}

/// A position in the studies of a scope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScopePlace {
    /// A position in an import. If the import is deleted, the next one follows.
    In {
        /// The import.
        import: Cursor,
        /// The last record that was examined.
        within: RecordPlace,
    },
    /// A position in the import that follows another import, whichever import that is.
    Next {
        /// The import that was examined completely; `None` before the first one.
        after: Option<Cursor>,
        /// The last record that was examined. Only cursors of earlier versions are after a record here.
        within: RecordPlace,
    },
}

impl Default for ScopePlace {
    fn default() -> Self {
        Self::Next { after: None, within: RecordPlace::default() }
    }
}

impl ScopePlace {
    /// Returns the position after a record of an import.
    pub const fn within(job: &Job, within: RecordPlace) -> Self {
        Self::In { import: cursor(job), within }
    }

    /// Returns the position after all records of an import.
    pub fn after(job: &Job) -> Self {
        Self::after_cursor(cursor(job))
    }

    /// Returns the position after the import of a cursor.
    pub fn after_cursor(after: Cursor) -> Self {
        Self::Next { after: Some(after), within: RecordPlace::default() }
    }
}

const fn cursor(job: &Job) -> Cursor {
    Cursor { created_at: job.created_at, partition: job.search_id }
}

/// The files of an export, with the data about them that the export contains.
#[derive(Debug)]
pub struct FilesToExport {
    /// The files, in the order of the export.
    pub files: Vec<FileToExport>,
    /// The imports that contain the files, in the same order.
    pub jobs: Vec<Job>,
}

impl From<StoredSearch> for FilesToExport {
    fn from(StoredSearch { job, files }: StoredSearch) -> Self {
        let search = job.search_id;
        let files = files.into_iter().map(|file| FileToExport { search, file }).collect();
        Self { files, jobs: vec![job] }
    }
}

/// A whole review has too many imports for one export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the review has more than {MAX_EXPORTED_SEARCHES} imports, which is the maximum of one export; export single imports"
)]
pub struct TooManySearches;

/// A review has too many imports for one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the review has more than {MAX_SEARCHES} imports")]
pub struct TooManyImports;

impl SearchService {
    /// Returns the studies of a whole review, or of `search` and its repairs. With `file`, the scope contains the
    /// studies of this file and of the files that repair it. Returns `None` if the import or file does not exist.
    pub async fn scope(
        &self,
        project: ProjectId,
        search: Option<SearchId>,
        file: Option<FileId>,
    ) -> Result<Option<Scope>, StoreError> {
        let Some(search) = search else { return Ok(Some(Scope::Review(project))) };
        let caller = ProjectAccess::to(project);
        let Some(job) = self.find(&caller, search).await? else { return Ok(None) };
        let known = self.repairs(&job).await?;
        if file.is_some_and(|file| !job.files.iter().any(|known| known.file_id == file)) {
            return Ok(None);
        }
        let jobs = known.with_repairs(job);
        let files = file.map(|file_id| {
            let asked = FileRef { search_id: search, file_id };
            let all = jobs.iter().skip(1).flat_map(|repair| {
                repair.files.iter().map(|file| FileRef::new(repair.search_id, file.file_id))
            });
            let repairing = all.filter(|file| known.repairs.origins(*file).contains(&asked));
            std::iter::once(file_id).chain(repairing.map(|file| file.file_id)).collect()
        });
        Ok(Some(Scope::Import { jobs, files }))
    }

    /// Returns a page of the imports of a scope after a cursor.
    pub async fn jobs_of(
        &self,
        scope: &Scope,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<Job>, StoreError> {
        match scope {
            Scope::Review(project) => self.jobs.of_project(*project, after, limit).await,
            Scope::Import { jobs, .. } => {
                let begin = after.map_or(0, |after| {
                    let seen = jobs.iter().position(|job| job.search_id == after.partition);
                    seen.map_or_else(|| first_repair_after(jobs, after), |place| place + 1)
                });
                Ok(Page { items: jobs.iter().skip(begin).cloned().collect(), next: None })
            }
        }
    }

    /// Returns a page of the imports of a scope from a position on, and the position in the first of them.
    ///
    /// A position in an import applies to no other import: neither to an import that was announced later, nor to the
    /// next import after a deletion.
    pub async fn jobs_from(
        &self,
        scope: &Scope,
        from: ScopePlace,
        limit: usize,
    ) -> Result<(Page<Job>, RecordPlace), StoreError> {
        let (import, within) = match from {
            ScopePlace::Next { after, within } => {
                return Ok((self.jobs_of(scope, after, limit).await?, within));
            }
            ScopePlace::In { import, within } => (import, within),
        };
        let current = match scope {
            Scope::Review(project) => self.find(&ProjectAccess::to(*project), import.partition).await?,
            Scope::Import { jobs, .. } => jobs.iter().find(|job| job.search_id == import.partition).cloned(),
        };
        let mut page = self.jobs_of(scope, Some(import), limit).await?;
        let Some(current) = current else { return Ok((page, RecordPlace::default())) };
        // The written view, by which imports are listed, may state another time.
        page.items.retain(|job| job.search_id != current.search_id);
        page.items.insert(0, current);
        Ok((page, within))
    }

    /// Returns all imports of a review, newest first, if they are not too many for one request.
    pub(crate) async fn jobs_of_review(
        &self,
        project: ProjectId,
    ) -> Result<Result<Vec<Job>, TooManyImports>, StoreError> {
        let (mut jobs, mut after) = (Vec::new(), None);
        loop {
            let page = self.jobs.of_project(project, after, SEARCHES).await?;
            jobs.extend(page.items);
            if jobs.len() > MAX_SEARCHES {
                return Ok(Err(TooManyImports));
            }
            after = page.next;
            if after.is_none() {
                return Ok(Ok(jobs));
            }
        }
    }

    /// Returns the files of one import of a scope that were read completely.
    pub async fn files_in(&self, scope: &Scope, job: &Job) -> Result<Vec<imports::ParsedFile>, StoreError> {
        let caller = ProjectAccess::to(job.project_id);
        let stored = self.stored(&caller, job.search_id).await?;
        let mut files = stored.map(|StoredSearch { files, .. }| files).unwrap_or_default();
        if let Scope::Import { files: Some(wanted), .. } = scope {
            files.retain(|file| wanted.contains(&file.file_id));
        }
        Ok(files)
    }

    /// Returns all files of a scope.
    pub async fn files_to_export(
        &self,
        scope: &Scope,
    ) -> Result<Result<FilesToExport, TooManySearches>, StoreError> {
        let (mut all, mut after) = (FilesToExport { files: Vec::new(), jobs: Vec::new() }, None);
        loop {
            let page = self.jobs_of(scope, after, SEARCHES).await?;
            for job in page.items {
                let search = job.search_id;
                let files = self.files_in(scope, &job).await?;
                all.files.extend(files.into_iter().map(|file| FileToExport { search, file }));
                all.jobs.push(job);
            }
            if all.jobs.len() > MAX_EXPORTED_SEARCHES {
                return Ok(Err(TooManySearches));
            }
            after = page.next;
            if after.is_none() {
                return Ok(Ok(all));
            }
        }
    }

    /// Returns the source of each file of these imports, as it is written with its studies.
    pub async fn labels_of(&self, jobs: &[Job]) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        let mut labels = BTreeMap::new();
        for job in jobs {
            labels.extend(self.labels(job).await?);
        }
        Ok(labels)
    }
}

/// Returns the index of the first repair after a deleted one. The import itself, which is first, is before all repairs.
fn first_repair_after(jobs: &[Job], deleted: Cursor) -> usize {
    let is_before = |job: &&Job| (job.created_at, job.search_id) < (deleted.created_at, deleted.partition);
    1 + jobs.iter().skip(1).take_while(is_before).count()
}
