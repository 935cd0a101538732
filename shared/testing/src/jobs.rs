//! What [`WriteJobs`], [`ReadJobs`] and [`ReportProgress`] promise.

use contracts::{Host, Job, JobState, ProjectId, SearchId};
use imports::{Page, Progress, ReadJobs, ReportProgress, WriteJobs};
use worker::WriteSaga;

use crate::{Checked, sample};

/// What is under test.
pub struct Ports<'a> {
    /// Reads.
    pub read: &'a dyn ReadJobs,
    /// Writes.
    pub write: &'a dyn WriteJobs,
    /// Stores documents.
    pub sagas: &'a dyn WriteSaga,
    /// Reports.
    pub report: &'a dyn ReportProgress,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    an_absent_job_is_none(ports).await?;
    a_later_revision_replaces_an_earlier_one(ports).await?;
    an_overtaken_or_repeated_write_changes_nothing(ports).await?;
    jobs_of_one_call_are_stored_each_on_its_own(ports).await?;
    unfinished_jobs_are_listed_the_oldest_first(ports).await?;
    a_projects_jobs_are_listed_in_pages_the_latest_first(ports).await?;
    a_running_import_is_what_its_document_shows(ports).await?;
    a_progress_report_replaces_the_one_before(ports).await
}

/// A search without a job has none.
///
/// # Errors
/// When a port fails.
pub async fn an_absent_job_is_none(ports: &Ports<'_>) -> Checked {
    assert_eq!(ports.read.job(sample::search(ports.host)).await?, None);
    Ok(())
}

/// The revision decides, and nothing of the earlier one stays.
///
/// # Errors
/// When a port fails.
pub async fn a_later_revision_replaces_an_earlier_one(ports: &Ports<'_>) -> Checked {
    let search = sample::search(ports.host);
    for (revision, state) in [(0, JobState::Uploading), (1, JobState::Parsing), (7, JobState::Completed)] {
        let job = sample::job(ports.host, search, revision, state);
        ports.write.write(std::slice::from_ref(&job)).await?;
        assert_eq!(ports.read.job(search).await?, Some(job));
    }
    Ok(())
}

/// Writes may be repeated and may overtake each other.
///
/// # Errors
/// When a port fails.
pub async fn an_overtaken_or_repeated_write_changes_nothing(ports: &Ports<'_>) -> Checked {
    let search = sample::search(ports.host);
    let stored = sample::job(ports.host, search, 5, JobState::Completed);
    ports.write.write(std::slice::from_ref(&stored)).await?;
    for revision in [4, 5] {
        let late = sample::job(ports.host, search, revision, JobState::Parsing);
        ports.write.write(&[late]).await?;
        assert_eq!(ports.read.job(search).await?.as_ref(), Some(&stored), "revision {revision} came late");
    }
    Ok(())
}

/// An outdated job in a call does not keep the others back, and two of one search may be in one call.
///
/// # Errors
/// When a port fails.
pub async fn jobs_of_one_call_are_stored_each_on_its_own(ports: &Ports<'_>) -> Checked {
    let (one, two) = (sample::search(ports.host), sample::search(ports.host));
    let job = |search, revision| sample::job(ports.host, search, revision, JobState::Parsing);
    ports.write.write(&[job(one, 3)]).await?;
    ports.write.write(&[job(one, 2), job(two, 1), job(two, 2)]).await?;
    let revision = async |search| ports.read.job(search).await.map(|job| job.map(|job| job.revision));
    assert_eq!((revision(one).await?, revision(two).await?), (Some(3), Some(2)));
    Ok(())
}

/// Ended ones are not among them.
///
/// # Errors
/// When a port fails.
pub async fn unfinished_jobs_are_listed_the_oldest_first(ports: &Ports<'_>) -> Checked {
    let ids: Vec<SearchId> = (0..4).map(|_| sample::search(ports.host)).collect();
    let states = [JobState::Uploading, JobState::Parsing, JobState::Completed, JobState::Error];
    let mut jobs = Vec::new();
    for (n, (id, state)) in ids.iter().zip(states).enumerate() {
        let mut job = sample::job(ports.host, *id, 1, state);
        // The second is older than the first.
        job.created_at = sample::later(job.created_at, -(n as i64));
        jobs.push(job);
    }
    ports.write.write(&jobs).await?;
    let listed: Vec<SearchId> = ports.read.unfinished().await?.iter().map(|job| job.search_id).collect();
    let ours: Vec<SearchId> = listed.into_iter().filter(|id| ids.contains(id)).collect();
    assert_eq!(ours, ids.iter().take(2).rev().copied().collect::<Vec<_>>());
    Ok(())
}

/// Page by page, each job once, and no other project's.
///
/// # Errors
/// When a port fails.
pub async fn a_projects_jobs_are_listed_in_pages_the_latest_first(ports: &Ports<'_>) -> Checked {
    let project = ProjectId::from_uuid(ports.host.fresh_id());
    let mut jobs = Vec::new();
    for n in 0..5 {
        let search = sample::search(ports.host);
        let mut job = Job { project_id: project, ..sample::job(ports.host, search, 1, JobState::Completed) };
        // Two of them at the same time: then the id decides.
        job.created_at = sample::later(job.created_at, -(n / 2));
        jobs.push(job);
    }
    ports.write.write(&jobs).await?;
    ports.write.write(&[sample::job(ports.host, sample::search(ports.host), 1, JobState::Completed)]).await?;
    jobs.sort_by_key(|job| std::cmp::Reverse((job.created_at, job.search_id)));
    let (mut listed, mut sizes, mut after) = (Vec::new(), Vec::new(), None);
    loop {
        let page = ports.read.of_project(project, after, 2).await?;
        sizes.push(page.jobs.len());
        listed.extend(page.jobs);
        match page.next {
            Some(next) => after = Some(next),
            None => break,
        }
    }
    assert_eq!((listed, sizes), (jobs, vec![2, 2, 1]));
    let nobodys = ProjectId::from_uuid(ports.host.fresh_id());
    assert_eq!(ports.read.of_project(nobodys, None, 2).await?, Page { jobs: Vec::new(), next: None });
    Ok(())
}

/// Jobs are written now and then; a document that was stored later is what counts, in a list too, and one that was
/// stored earlier does not.
///
/// # Errors
/// When a port fails.
pub async fn a_running_import_is_what_its_document_shows(ports: &Ports<'_>) -> Checked {
    let (search, now) = (sample::search(ports.host), sample::now(ports.host));
    let state = async || ports.read.job(search).await.map(|job| job.map(|job| (job.revision, job.state)));
    let created = sample::persist(search, None, sample::uploading(ports.host, "documented"));
    ports.sagas.persist(&[created], now).await?;
    assert_eq!(state().await?, Some((1, JobState::Uploading)), "no job was written yet");
    ports.write.write(&[sample::job(ports.host, search, 0, JobState::Parsing)]).await?;
    assert_eq!(state().await?, Some((1, JobState::Uploading)), "the job is older than the document");
    let ended = sample::persist(search, Some(1), sample::ended(ports.host, now));
    ports.sagas.persist(&[ended], now).await?;
    assert_eq!(state().await?, Some((2, JobState::Completed)));
    let unfinished = ports.read.unfinished().await?;
    assert!(!unfinished.iter().any(|job| job.search_id == search), "it has ended, by its document");
    ports.write.write(&[sample::job(ports.host, search, 3, JobState::Error)]).await?;
    assert_eq!(state().await?, Some((3, JobState::Error)), "the document is older than the job");
    Ok(())
}

/// Each file has one, the latest.
///
/// # Errors
/// When a port fails.
pub async fn a_progress_report_replaces_the_one_before(ports: &Ports<'_>) -> Checked {
    let (search, one, two) = (sample::search(ports.host), sample::file(ports.host), sample::file(ports.host));
    assert_eq!(ports.read.progress(search).await?, []);
    let progress = |records| Progress { records, bytes: records * 100 };
    for (file, records) in [(one, 1), (two, 5), (one, 2)] {
        ports.report.report(search, file, progress(records)).await?;
    }
    let mut found = ports.read.progress(search).await?;
    found.sort_by_key(|(file, _)| *file);
    assert_eq!(found, [(one, progress(2)), (two, progress(5))]);
    Ok(())
}
