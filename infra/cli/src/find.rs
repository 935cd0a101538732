//! Looking up a search, or one of its files, by what the user typed.

use std::collections::BTreeSet;

use imports::{FileId, Job, JobFile, Jobs, ProjectId, SearchId};
use messages::escape::escape_for_terminal;
use outbox::Page;
use service::SearchRepairs;
use uuid::Uuid;

use crate::args;
use crate::workspace::Workspace;

/// The number of searches read at a time.
pub(crate) const PAGE: usize = 200;
/// The minimum length of an id's prefix.
const MIN_DIGITS: usize = 4;
/// The maximum number of matching searches that an error lists.
const MAX_LISTED: usize = 5;

/// Finds a search by its whole id, in any project, or by a prefix of its id or its whole name, in the given project.
///
/// # Errors
/// Returns an error if no search matches, or if several do, which it lists.
pub(crate) async fn search(workspace: &Workspace, review: &args::Project, text: &str) -> anyhow::Result<Job> {
    let jobs = workspace.jobs()?;
    let found = match Uuid::try_parse(text) {
        Ok(id) => jobs.job(SearchId::from_uuid(id)).await?.into_iter().collect(),
        Err(_) => matching(&jobs, workspace.project(review).await?, text).await?,
    };
    match <[Job; 1]>::try_from(without_repairs(found)) {
        Ok([job]) => Ok(job),
        Err(none) if none.is_empty() && Uuid::try_parse(text).is_ok() => {
            anyhow::bail!(
                "there is no import {text} in {}; `search-import searches --all` lists all imports",
                workspace.name()
            )
        }
        Err(none) if none.is_empty() => anyhow::bail!(
            "there is no import \"{text}\" in {} of {}; `search-import searches --all` lists all imports with \
             their reviews",
            workspace.review_label(review),
            workspace.name()
        ),
        Err(several) => anyhow::bail!(
            "\"{text}\" matches {} imports: {}; repeat the command with one of these ids",
            several.len(),
            list(&several)
        ),
    }
}

/// Removes the repairs of a search from the searches with its name. A repair has the name of its original.
fn without_repairs(found: Vec<Job>) -> Vec<Job> {
    let originals: BTreeSet<SearchId> = found.iter().map(|job| job.search_id).collect();
    let is_repair = |job: &Job| job.repairs.is_some_and(|original| originals.contains(&original));
    found.into_iter().filter(|job| !is_repair(job)).collect()
}

/// Returns a search, followed by its repairs in the order of their age. They contain its corrected records.
pub(crate) async fn with_repairs(workspace: &Workspace, job: Job) -> anyhow::Result<Vec<Job>> {
    let records = &workspace.ports().engine.stores()?.records;
    let known = SearchRepairs::of(&workspace.jobs()?, records.as_ref(), &job).await?;
    Ok(known.with_repairs(job))
}

/// Returns the message for a project without searches. The user may have mistyped its name.
pub(crate) fn no_searches(workspace: &Workspace, review: &args::Project) -> String {
    format!(
        "{} has no imports in {}; `search-import searches --all` lists the imports of all reviews, and --project \
         selects a review",
        workspace.review_label(review),
        workspace.name()
    )
}

/// Finds a file of a search by the name that this program prints, by its id, or by its number, counted from 1.
pub(crate) fn file(job: &Job, text: &str) -> anyhow::Result<FileId> {
    let names = job.file_names();
    let mut files = job.files.iter().zip(&names).zip(1_usize..);
    let is_match = |((file, name), number): &((&JobFile, &String), usize)| {
        *name == text || file.file_id.to_string() == text || number.to_string() == text
    };
    match files.find(is_match) {
        Some(((file, _), _)) => Ok(file.file_id),
        None => {
            let names: Vec<String> = names.iter().map(|name| escape_for_terminal(name).to_string()).collect();
            anyhow::bail!(
                "the import has no file {}; its files are {}",
                escape_for_terminal(text),
                names.join(", ")
            )
        }
    }
}

/// Returns all searches of a project that match `text`, latest first.
async fn matching(jobs: &Jobs, project: ProjectId, text: &str) -> anyhow::Result<Vec<Job>> {
    let digits = digits(text);
    let is_match = |job: &Job| {
        let has_name = job.name.as_deref() == Some(text);
        let id = job.search_id.as_uuid().simple().to_string();
        has_name || digits.as_deref().is_some_and(|digits| id.starts_with(digits))
    };
    let mut pages = Pages::of(jobs, project);
    let mut found = Vec::new();
    while let Some(page) = pages.next().await? {
        found.extend(page.into_iter().filter(is_match));
    }
    Ok(found)
}

/// Returns the digits of an id or of its prefix; `None` for any other text.
fn digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    (digits.len() >= MIN_DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit())).then_some(digits)
}

fn list(several: &[Job]) -> String {
    let one = |job: &Job| match &job.name {
        Some(name) => format!("{} \"{}\" ({})", job.search_id, escape_for_terminal(name), job.state),
        None => format!("{} ({})", job.search_id, job.state),
    };
    let mut listed: Vec<String> = several.iter().take(MAX_LISTED).map(one).collect();
    if several.len() > MAX_LISTED {
        listed.push("…".to_owned());
    }
    listed.join(", ")
}

/// The searches of a project, latest first, page by page.
pub(crate) struct Pages<'a> {
    jobs: &'a Jobs,
    project: ProjectId,
    after: Option<outbox::Cursor>,
    has_ended: bool,
}

impl<'a> Pages<'a> {
    pub(crate) fn of(jobs: &'a Jobs, project: ProjectId) -> Self {
        Self { jobs, project, after: None, has_ended: false }
    }

    /// Returns the next page; `None` after the last one.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Vec<Job>>> {
        if self.has_ended {
            return Ok(None);
        }
        let Page { items, next } = self.jobs.of_project(self.project, self.after.take(), PAGE).await?;
        self.has_ended = next.is_none();
        self.after = next;
        Ok(Some(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn id_prefix_needs_four_digits_besides_hyphens() {
        assert_eq!(digits("01A2"), Some("01a2".to_owned()));
        assert_eq!(digits("01a20110-1e"), Some("01a201101e".to_owned()));
        for not_digits in ["01a", "0-1-a", "harms", "", "01a2 "] {
            assert_eq!(digits(not_digits), None, "{not_digits}");
        }
    }
}
