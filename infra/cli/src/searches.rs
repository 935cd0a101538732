//! Listing the searches of one project or of all projects.

use imports::{ByAge, Job, JobState, ProjectId, SearchId};
use jiff::Timestamp;
use local::output;
use serde::Serialize;

use crate::args;
use crate::find::{PAGE, Pages};
use crate::humanize::{ago, counted};
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// The length of a short id, if short ids of this length distinguish all listed searches. An id starts with the
/// millisecond of the announcement, unless the search was requested with an idempotency key.
const SHORT: usize = 13;
/// The lengths to try otherwise.
const LONGER: [usize; 2] = [18, 36];

/// The length of a project's id in the table; `--json` has the whole id.
const SHORT_PROJECT: usize = 8;

/// A search in JSON output.
#[derive(Serialize)]
pub(crate) struct SearchItem<'a> {
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

impl<'a> From<&'a Job> for SearchItem<'a> {
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

/// Lists the searches of a project, beginning with the latest, or the searches of all projects by age.
pub(crate) async fn run(args: &args::Searches) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let project = if args.all { None } else { Some(workspace.project(&args.project).await?) };
    let found = select(&workspace, project, args).await?;
    if args.output.json {
        for job in &found.jobs {
            output::json(&SearchItem::from(job))?;
        }
        return Ok(true);
    }
    if found.jobs.is_empty() {
        let scope = match project {
            Some(_) => format!("in {} of ", workspace.review_label(&args.project)),
            None => "in ".to_owned(),
        };
        output::line(&format!("no matching imports {scope}{}", workspace.name()))?;
        if project.is_some() {
            output::remark("`search-import searches --all` lists the imports of all reviews");
        } else {
            output::remark("`search-import import FILE` starts one");
        }
        return Ok(true);
    }
    let (now, ids) = (workspace.host().now(), short_ids(&found.jobs));
    let rows = found.jobs.iter().zip(ids).map(|(job, id)| match args.all {
        true => row_of_all(job, id, now),
        false => row(job, id, now),
    });
    output::block(&table(if args.all { &OF_ALL } else { &OF_PROJECT }, rows))?;
    let count = counted(found.jobs.len() as u64, "import", "imports");
    let more = if found.has_more { "; --limit shows more" } else { "" };
    output::line(&format!("{count}{more}"))?;
    Ok(true)
}

const OF_PROJECT: [Column; 7] = [
    Column::Whole("id"),
    Column::Whole("state"),
    Column::Number("files"),
    Column::Number("studies"),
    Column::Number("not imported"),
    Column::Text("name"),
    Column::Whole("when"),
];

/// The columns for all projects. They have no counts, because this list is mainly used to find stuck searches.
const OF_ALL: [Column; 5] = [
    Column::Whole("id"),
    Column::Whole("state"),
    Column::Whole("project"),
    Column::Text("name"),
    Column::Whole("when"),
];

/// The selected searches.
struct SelectedJobs {
    jobs: Vec<Job>,
    has_more: bool,
}

async fn select(
    workspace: &Workspace,
    project: Option<ProjectId>,
    args: &args::Searches,
) -> anyhow::Result<SelectedJobs> {
    let text = args.text.as_deref().map(str::to_lowercase);
    let now = workspace.host().now();
    let before = args.older_than.map_or(Timestamp::MAX, |age| now.checked_sub(age).unwrap_or(Timestamp::MIN));
    let is_wanted = |job: &Job| {
        let has_text =
            |text: &String| job.name.as_ref().is_some_and(|name| name.to_lowercase().contains(text));
        args.state.is_none_or(|state| JobState::from(state) == job.state)
            && job.created_at < before
            && text.as_ref().is_none_or(has_text)
    };
    let jobs = workspace.jobs()?;
    let (mut found, limit) = (Vec::new(), args.limit as usize);
    match project {
        Some(project) => {
            let mut pages = Pages::of(&jobs, project);
            while let Some(page) = pages.next().await? {
                found.extend(page.into_iter().filter(is_wanted));
                if found.len() > limit {
                    break;
                }
            }
        }
        None => {
            let states = args.state.into_iter().map(JobState::from).collect();
            let (filter, mut after) = (ByAge { project: None, states, before }, None);
            loop {
                let (page, next) = jobs.by_age(&filter, after, PAGE).await?;
                found.extend(page.into_iter().filter(is_wanted));
                after = next;
                if found.len() > limit || after.is_none() {
                    break;
                }
            }
        }
    }
    let has_more = found.len() > limit;
    found.truncate(limit);
    Ok(SelectedJobs { jobs: found, has_more })
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

fn row_of_all(job: &Job, id: String, now: Timestamp) -> Vec<String> {
    let project = job.project_id.to_string().chars().take(SHORT_PROJECT).collect();
    vec![id, job.state.to_string(), project, job.name.clone().unwrap_or_default(), ago(job.created_at, now)]
}

/// Returns the shortest prefixes of the ids, all of one length, that distinguish them.
fn short_ids(jobs: &[Job]) -> Vec<String> {
    let ids: Vec<String> = jobs.iter().map(|job| job.search_id.to_string()).collect();
    let prefixes =
        |length: usize| ids.iter().map(|id| id.chars().take(length).collect()).collect::<Vec<String>>();
    let is_unique = |length: &usize| {
        let prefixes = prefixes(*length);
        prefixes.iter().collect::<std::collections::BTreeSet<_>>().len() == prefixes.len()
    };
    prefixes([SHORT].into_iter().chain(LONGER).find(is_unique).unwrap_or(SHORT))
}
