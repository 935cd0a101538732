//! Imports as their readers see them.

use async_trait::async_trait;
use contracts::{FileId, Job, ProjectId, SearchId, StoreError};
use futures::TryStreamExt;
use futures::future::try_join;
use imports::{Cursor, Page, Progress, ReadJobs, WriteJobs};
use mongodb::bson::{Document, doc};

use crate::fault::Fault;
use crate::names::collections;
use crate::pipeline::Statement;
use crate::value::{Key, int, int_field, literal, nanos, serde_field, some_of, timestamp, to_bson};
use crate::{Mongo, progress, saga};

const ID: &str = "_id";
const REVISION: &str = "Revision";
/// Whether nothing will change any more; the index of unfinished jobs holds only those for which it is false.
pub(crate) const ENDED: &str = "Ended";
/// The review, for lists.
pub(crate) const PROJECT: &str = "ProjectId";
/// In nanoseconds, for the order.
pub(crate) const CREATED_AT: &str = "CreatedAt";
const JOB: &str = "Job";

fn encode(job: &Job) -> Result<Document, Fault> {
    Ok(doc! {
        ID: job.search_id.key(),
        REVISION: int(job.revision),
        ENDED: job.state.has_ended(),
        PROJECT: job.project_id.key(),
        CREATED_AT: nanos(job.created_at),
        JOB: to_bson(job)?,
    })
}

fn decode(stored: &Document) -> Result<Job, Fault> {
    serde_field(stored, JOB).map_err(|why| Fault::foreign(collections::JOB, stored.get(ID), "a job", &why))
}

/// Creates a job unless there is one: filter and update of an upsert.
pub(crate) fn create(job: &Job) -> Result<(Document, Document), Fault> {
    let mut fields = encode(job)?;
    fields.remove(ID);
    Ok((doc! { ID: job.search_id.key() }, doc! { "$setOnInsert": fields }))
}

/// Writes a job unless the stored one is as recent. The condition is in the update, not in the filter: then the
/// filter is the id alone, and of two that insert at once the server itself repeats the loser, which compares
/// revisions with the winner. With the condition in the filter a later revision could lose to an earlier one.
fn statement(job: &Job) -> Result<Statement, Fault> {
    let is_later = doc! { "$gt": [int(job.revision), { "$ifNull": [format!("${REVISION}"), -1] }] };
    let next = doc! { "$cond": [is_later, literal(encode(job)?), "$$ROOT"] };
    Ok(Statement {
        filter: doc! { ID: job.search_id.key() },
        pipeline: vec![doc! { "$replaceWith": next }],
        upsert: true,
    })
}

/// A running import is what its document shows; the job that is stored may be older.
fn latest(stored: Option<Job>, shown: Option<Job>) -> Option<Job> {
    [stored, shown].into_iter().flatten().max_by_key(|job| job.revision)
}

#[async_trait]
impl WriteJobs for Mongo {
    async fn write(&self, jobs: &[Job]) -> Result<(), StoreError> {
        if jobs.is_empty() {
            return Ok(());
        }
        let doing = format!("storing the job of search {}", some_of(jobs.iter().map(|job| job.search_id)));
        let work = async {
            let statements = jobs.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
            self.update(collections::JOB, statements).await?.expect_none_taken()
        };
        self.call(doing, work).await
    }
}

impl Mongo {
    /// Stored jobs as they are now, each with its place in a list.
    async fn latest_of(&self, stored: Vec<Document>) -> Result<Vec<(Cursor, Job)>, Fault> {
        let stored = stored.iter().map(decode_with_place).collect::<Result<Vec<_>, Fault>>()?;
        let searches: Vec<SearchId> = stored.iter().map(|(_, job)| job.search_id).collect();
        let mut shown = saga::shown(self, &searches).await?;
        let latest = stored.into_iter().filter_map(|(place, job)| {
            let shown = shown.remove(&job.search_id);
            Some((place, latest(Some(job), shown)?))
        });
        Ok(latest.collect())
    }
}

fn decode_with_place(stored: &Document) -> Result<(Cursor, Job), Fault> {
    let job = decode(stored)?;
    let created_at = int_field(stored, CREATED_AT)
        .map_err(|why| Fault::foreign(collections::JOB, stored.get(ID), "a job", &why))?;
    Ok((Cursor { created_at: timestamp(created_at), search_id: job.search_id }, job))
}

#[async_trait]
impl ReadJobs for Mongo {
    async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError> {
        let work = async {
            let jobs = self.collection(collections::JOB);
            let stored = async { Ok(jobs.find_one(doc! { ID: search.key() }).await?) };
            let (stored, mut shown) = try_join(stored, saga::shown(self, &[search])).await?;
            let stored = stored.as_ref().map(decode).transpose()?;
            Ok(latest(stored, shown.remove(&search)))
        };
        self.call(format!("reading the job of search {search}"), work).await
    }

    async fn unfinished(&self) -> Result<Vec<Job>, StoreError> {
        let work = async {
            let jobs = self.collection(collections::JOB);
            let found = jobs.find(doc! { ENDED: false }).sort(doc! { CREATED_AT: 1, ID: 1 }).await?;
            let found = self.latest_of(found.try_collect().await?).await?;
            Ok(found.into_iter().map(|(_, job)| job).filter(|job| !job.state.has_ended()).collect())
        };
        self.call("listing the unfinished jobs".to_owned(), work).await
    }

    async fn of_project(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let mut filter = doc! { PROJECT: project.key() };
        if let Some(Cursor { created_at, search_id }) = after {
            let created_at = nanos(created_at);
            let same_time = doc! { CREATED_AT: created_at, ID: { "$lt": search_id.key() } };
            filter.insert("$or", vec![doc! { CREATED_AT: { "$lt": created_at } }, same_time]);
        }
        let work = async {
            let jobs = self.collection(collections::JOB);
            let found =
                jobs.find(filter).sort(doc! { CREATED_AT: -1, ID: -1 }).limit(int(limit.saturating_add(1)));
            Ok(Page::of(self.latest_of(found.await?.try_collect().await?).await?, limit))
        };
        self.call(format!("listing the jobs of project {project}"), work).await
    }

    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        self.call(format!("reading the progress of search {search}"), progress::read(self, search)).await
    }
}
