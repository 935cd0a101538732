//! Listing the searches of a project.

use imports::{Job, JobState, ProjectId, SearchId};
use jiff::Timestamp;
use local::output;
use serde::Serialize;

use crate::args;
use crate::find::Pages;
use crate::table::{Column, table};
use crate::words::{ago, counted};
use crate::workspace::{self, Workspace};

/// How long a short id is, if that tells all that are shown apart: a search's id begins with the millisecond of its
/// announcement, unless it was asked for under a key.
const SHORT: usize = 13;
/// How long it is otherwise, and at last.
const LONGER: [usize; 2] = [18, 36];

/// A search as scripts see it.
#[derive(Serialize)]
pub(crate) struct Listed<'a> {
    search_id: SearchId,
    project_id: ProjectId,
    name: Option<&'a str>,
    state: JobState,
    files: usize,
    studies: u64,
    unread: u64,
    created_at: Timestamp,
    completed_at: Option<Timestamp>,
}

impl<'a> From<&'a Job> for Listed<'a> {
    fn from(job: &'a Job) -> Self {
        Self {
            search_id: job.search_id,
            project_id: job.project_id,
            name: job.name.as_deref(),
            state: job.state,
            files: job.files.len(),
            studies: job.studies(),
            unread: job.quarantined(),
            created_at: job.created_at,
            completed_at: job.completed_at,
        }
    }
}

/// Lists the searches of a project, the latest first.
pub(crate) async fn run(args: &args::Searches) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let project = workspace.project(args.project);
    let found = wanted(&workspace, project, args).await?;
    if args.output.json {
        for job in &found.jobs {
            output::json(&Listed::from(job))?;
        }
        return Ok(true);
    }
    if found.jobs.is_empty() {
        output::line(&format!("no such search in project {project} of {}", workspace.name()))?;
        return Ok(true);
    }
    let columns = [
        Column::Whole("id"),
        Column::Whole("state"),
        Column::Number("files"),
        Column::Number("studies"),
        Column::Number("unread"),
        Column::Text("name"),
        Column::Whole("when"),
    ];
    let (now, ids) = (workspace.host().now(), short_ids(&found.jobs));
    output::block(&table(&columns, found.jobs.iter().zip(ids).map(|(job, id)| row(job, id, now))))?;
    let count = counted(found.jobs.len() as u64, "search", "searches");
    let more = if found.has_more { "; --limit shows more" } else { "" };
    output::line(&format!("{count}{more}"))?;
    Ok(true)
}

/// What was found.
struct Found {
    jobs: Vec<Job>,
    has_more: bool,
}

async fn wanted(workspace: &Workspace, project: ProjectId, args: &args::Searches) -> anyhow::Result<Found> {
    let text = args.text.as_deref().map(str::to_lowercase);
    let is_wanted = |job: &Job| {
        let has_text =
            |text: &String| job.name.as_ref().is_some_and(|name| name.to_lowercase().contains(text));
        args.state.is_none_or(|state| JobState::from(state) == job.state)
            && text.as_ref().is_none_or(has_text)
    };
    let jobs = workspace.jobs()?;
    let mut pages = Pages::of(&jobs, project);
    let (mut found, limit) = (Vec::new(), args.limit as usize);
    while let Some(page) = pages.next().await? {
        found.extend(page.into_iter().filter(is_wanted));
        if found.len() > limit {
            break;
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok(Found { jobs: found, has_more })
}

fn row(job: &Job, id: String, now: Timestamp) -> Vec<String> {
    vec![
        id,
        job.state.to_string(),
        job.files.len().to_string(),
        job.studies().to_string(),
        job.quarantined().to_string(),
        job.name.clone().unwrap_or_default(),
        ago(job.created_at, now),
    ]
}

/// The beginnings of the ids, all of one length, that tell them apart.
fn short_ids(jobs: &[Job]) -> Vec<String> {
    let ids: Vec<String> = jobs.iter().map(|job| job.search_id.to_string()).collect();
    let beginnings =
        |length: usize| ids.iter().map(|id| id.chars().take(length).collect()).collect::<Vec<String>>();
    let tells_apart = |length: &usize| {
        let beginnings = beginnings(*length);
        beginnings.iter().collect::<std::collections::BTreeSet<_>>().len() == beginnings.len()
    };
    beginnings([SHORT].into_iter().chain(LONGER).find(tells_apart).unwrap_or(SHORT))
}
