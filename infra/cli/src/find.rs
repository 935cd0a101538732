//! The search that a user means.

use imports::{Job, Jobs, ProjectId};
use messages::shown::shown;
use outbox::Page;
use uuid::Uuid;

use crate::workspace::Workspace;

/// How many searches are read at a time.
pub(crate) const PAGE: usize = 200;
/// The fewest digits that may stand for an id.
const FEWEST_DIGITS: usize = 4;
/// How many of those that could be meant are named.
const MAX_NAMED: usize = 5;

/// The search that `text` means: by its whole id, whichever project it is in; by the beginning of its id or by its whole
/// name among those of a project.
///
/// # Errors
/// When there is none, or when there are several; then they are named.
pub(crate) async fn search(workspace: &Workspace, project: ProjectId, text: &str) -> anyhow::Result<Job> {
    let jobs = workspace.jobs()?;
    let found = match Uuid::try_parse(text) {
        Ok(id) => jobs.job(imports::SearchId::from_uuid(id)).await?.into_iter().collect(),
        Err(_) => matching(&jobs, project, text).await?,
    };
    match <[Job; 1]>::try_from(found) {
        Ok([job]) => Ok(job),
        Err(none) if none.is_empty() && Uuid::try_parse(text).is_ok() => {
            anyhow::bail!(
                "there is no search {text} in {}; `search-import searches --all` lists those there are",
                workspace.name()
            )
        }
        Err(none) if none.is_empty() => anyhow::bail!(
            "there is no search \"{text}\" in project {project} of {}; `search-import searches --all` lists those there are, \
             with their projects",
            workspace.name()
        ),
        Err(several) => anyhow::bail!(
            "\"{text}\" could be {} searches: {}; repeat the command with one of these ids",
            several.len(),
            named(&several)
        ),
    }
}

/// Returns what to say of a project without searches, as of one whose name is mistyped.
pub(crate) fn no_searches(workspace: &Workspace, project: ProjectId) -> String {
    let place = workspace.name();
    format!(
        "project {project} has no searches in {place}; `search-import searches --all` lists those of all projects, and \
         --project names one"
    )
}

/// All searches of a project that `text` could mean, the latest first.
async fn matching(jobs: &Jobs, project: ProjectId, text: &str) -> anyhow::Result<Vec<Job>> {
    let digits = digits(text);
    let is_meant = |job: &Job| {
        let has_name = job.name.as_deref() == Some(text);
        let id = job.search_id.as_uuid().simple().to_string();
        has_name || digits.as_deref().is_some_and(|digits| id.starts_with(digits))
    };
    let mut pages = Pages::of(jobs, project);
    let mut found = Vec::new();
    while let Some(page) = pages.next().await? {
        found.extend(page.into_iter().filter(is_meant));
    }
    Ok(found)
}

/// The digits of an id, or of its beginning.
fn digits(text: &str) -> Option<String> {
    let digits: String = text.chars().filter(|c| *c != '-').map(|c| c.to_ascii_lowercase()).collect();
    (digits.len() >= FEWEST_DIGITS && digits.chars().all(|c| c.is_ascii_hexdigit())).then_some(digits)
}

fn named(several: &[Job]) -> String {
    let one = |job: &Job| match &job.name {
        Some(name) => format!("{} \"{}\" ({})", job.search_id, shown(name), job.state),
        None => format!("{} ({})", job.search_id, job.state),
    };
    let mut named: Vec<String> = several.iter().take(MAX_NAMED).map(one).collect();
    if several.len() > MAX_NAMED {
        named.push("…".to_owned());
    }
    named.join(", ")
}

/// The searches of a project, the latest first, page by page.
pub(crate) struct Pages<'a> {
    jobs: &'a Jobs,
    project: ProjectId,
    after: Option<outbox::Cursor>,
    is_over: bool,
}

impl<'a> Pages<'a> {
    pub(crate) fn of(jobs: &'a Jobs, project: ProjectId) -> Self {
        Self { jobs, project, after: None, is_over: false }
    }

    /// The next ones; none when there are no more.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Option<Vec<Job>>> {
        if self.is_over {
            return Ok(None);
        }
        let Page { items, next } = self.jobs.of_project(self.project, self.after.take(), PAGE).await?;
        self.is_over = next.is_none();
        self.after = next;
        Ok(Some(items))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_of_an_id_are_enough_with_hyphens_or_without() {
        assert_eq!(digits("01A2"), Some("01a2".to_owned()));
        assert_eq!(digits("01a20110-1e"), Some("01a201101e".to_owned()));
        for not_digits in ["01a", "0-1-a", "harms", "", "01a2 "] {
            assert_eq!(digits(not_digits), None, "{not_digits}");
        }
    }
}
