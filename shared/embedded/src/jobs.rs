//! Imports as their readers see them.

use async_trait::async_trait;
use contracts::{FileId, Job, ProjectId, SearchId, StoreError};
use imports::{Cursor, Page, Progress, ReadJobs, ReportProgress, WriteJobs};
use rusqlite::{Connection, OptionalExtension, Row, params};

use worker::Content;

use crate::Store;
use crate::fault::Fault;
use crate::value::{from_json, int, json, limit, nanos, parse, some_of, timestamp, uint};

#[async_trait]
impl WriteJobs for Store {
    async fn write(&self, jobs: &[Job]) -> Result<(), StoreError> {
        let doing = format!("storing the job of search {}", some_of(jobs.iter().map(|job| job.search_id)));
        let jobs = jobs.to_vec();
        self.change("jobs.write", doing, move |db| jobs.iter().try_for_each(|job| put(db, job, WRITE))).await
    }
}

const WRITE: &str =
    "INSERT INTO job (search_id, revision, ended, created_at, job, project_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (search_id) DO UPDATE SET revision = excluded.revision, ended = excluded.ended,
        created_at = excluded.created_at, job = excluded.job, project_id = excluded.project_id
    WHERE excluded.revision > job.revision";

const CREATE: &str =
    "INSERT INTO job (search_id, revision, ended, created_at, job, project_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (search_id) DO NOTHING";

/// Stores a job unless there is one.
pub(crate) fn create(db: &Connection, job: &Job) -> Result<(), Fault> {
    put(db, job, CREATE)
}

fn put(db: &Connection, job: &Job, sql: &str) -> Result<(), Fault> {
    db.prepare_cached(sql)?.execute(params![
        job.search_id.to_string(),
        int(job.revision),
        job.state.has_ended(),
        nanos(job.created_at),
        json(job)?,
        job.project_id.to_string(),
    ])?;
    Ok(())
}

#[async_trait]
impl ReadJobs for Store {
    async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError> {
        let doing = format!("reading the job of search {search}");
        self.look("jobs.read", doing, move |db| read(db, search)).await
    }

    async fn unfinished(&self) -> Result<Vec<Job>, StoreError> {
        let work = |db: &Connection| {
            let mut jobs = list(db, UNFINISHED, usize::MAX)?;
            jobs.retain(|job| !job.state.has_ended());
            Ok(jobs)
        };
        self.look("jobs.unfinished", "listing the unfinished jobs".to_owned(), work).await
    }

    async fn of_project(
        &self,
        project: ProjectId,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let doing = format!("listing the jobs of project {project}");
        self.look("jobs.of_project", doing, move |db| of_project(db, project, after, limit)).await
    }

    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        let doing = format!("reading the progress of search {search}");
        self.look("jobs.progress", doing, move |db| progress(db, search)).await
    }
}

fn read(db: &Connection, search: SearchId) -> Result<Option<Job>, Fault> {
    let stored = db
        .prepare_cached("SELECT job FROM job WHERE search_id = ?1")?
        .query_row([search.to_string()], |row| row.get::<_, String>(0))
        .optional()?;
    let document = db
        .prepare_cached("SELECT version, content FROM saga WHERE search_id = ?1")?
        .query_row([search.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let stored = stored.as_deref().map(from_json::<Job>).transpose()?;
    latest(search, stored, document)
}

pub(crate) const UNFINISHED: &str = "SELECT job, version, content FROM job LEFT JOIN saga USING (search_id)
    WHERE ended = 0 ORDER BY created_at, search_id LIMIT ?1";
pub(crate) const OF_PROJECT: &str =
    "SELECT job, version, content, created_at FROM job LEFT JOIN saga USING (search_id)
    WHERE project_id = ?1 AND (created_at, search_id) < (?2, ?3)
    ORDER BY created_at DESC, search_id DESC LIMIT ?4";

fn of_project(
    db: &Connection,
    project: ProjectId,
    after: Option<Cursor>,
    count: usize,
) -> Result<Page, Fault> {
    // Without a place in the list, after everything that can be stored.
    let (created_at, search) = after
        .map_or((i64::MAX, String::new()), |after| (nanos(after.created_at), after.search_id.to_string()));
    let mut statement = db.prepare_cached(OF_PROJECT)?;
    let mut rows =
        statement.query(params![project.to_string(), created_at, search, limit(count.saturating_add(1))])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let created_at = timestamp(row.get(3)?);
        let place = |job: Job| (Cursor { created_at, search_id: job.search_id }, job);
        found.extend(read_row(row)?.map(place));
    }
    Ok(Page::of(found, count))
}

fn list(db: &Connection, sql: &str, count: usize) -> Result<Vec<Job>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query([limit(count)])?;
    let mut jobs = Vec::new();
    while let Some(row) = rows.next()? {
        jobs.extend(read_row(row)?);
    }
    Ok(jobs)
}

fn read_row(row: &Row<'_>) -> Result<Option<Job>, Fault> {
    let stored: Job = from_json(&row.get::<_, String>(0)?)?;
    let document = row.get::<_, Option<i64>>(1)?.zip(row.get(2)?);
    latest(stored.search_id, Some(stored), document)
}

/// A running import is what its document shows; the job that is stored may be older.
fn latest(
    search: SearchId,
    stored: Option<Job>,
    document: Option<(i64, String)>,
) -> Result<Option<Job>, Fault> {
    let shown = match document {
        Some((version, content)) => from_json::<Content>(&content)?.job(search, uint(version)),
        None => None,
    };
    Ok([stored, shown].into_iter().flatten().max_by_key(|job| job.revision))
}

fn progress(db: &Connection, search: SearchId) -> Result<Vec<(FileId, Progress)>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT file_id, records, bytes FROM progress WHERE search_id = ?1 ORDER BY file_id",
    )?;
    let mut rows = statement.query([search.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let progress = Progress { records: uint(row.get(1)?), bytes: uint(row.get(2)?) };
        found.push((parse("file id", &row.get::<_, String>(0)?)?, progress));
    }
    Ok(found)
}

#[async_trait]
impl ReportProgress for Store {
    async fn report(&self, search: SearchId, file: FileId, progress: Progress) -> Result<(), StoreError> {
        let doing = format!("reporting the progress of file {file} of search {search}");
        let work = move |db: &Connection| {
            db.prepare_cached("INSERT OR REPLACE INTO progress VALUES (?1, ?2, ?3, ?4)")?.execute(
                params![search.to_string(), file.to_string(), int(progress.records), int(progress.bytes),],
            )?;
            Ok(())
        };
        self.change("jobs.report", doing, work).await
    }
}
