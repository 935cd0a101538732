//! Cancelling a running search, and deleting one that has ended.

use anyhow::bail;
use imports::SearchId;
use local::output;
use serde_json::json;
use service::{Cancellation, Deletion, ProjectAccess, SearchService};

use crate::args::{Delete, Inspect};
use crate::consent;
use crate::find;
use crate::humanize::counted;
use crate::workspace::{self, Workspace};

/// Cancels a search and deletes its studies.
pub(crate) async fn cancel(args: &Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::open_or_operate(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let function = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    match function.cancel(&ProjectAccess::All, job.search_id).await? {
        Cancellation::Accepted => {}
        Cancellation::TooLate => {
            bail!(
                "import {} has already ended as {}; `search-import delete` deletes it",
                job.search_id,
                job.state
            )
        }
        Cancellation::Unknown => {
            bail!("import {} was deleted in the meantime; there is nothing left to do", job.search_id)
        }
    }
    finish(&workspace, args, job.search_id, "cancelled").await
}

/// Deletes a search that has ended, with all its data.
pub(crate) async fn delete(args: &Delete) -> anyhow::Result<bool> {
    let (consent, args) = (args.consent, &args.inspect);
    let workspace = Workspace::open_or_operate(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let name = job.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let studies = counted(job.studies(), "study", "studies");
    let what = format!("import {}{name}, with {studies} and its uploaded files", job.search_id);
    if job.state.has_ended() {
        consent::ask(consent, &format!("Delete {what}? This cannot be undone."))?;
    }
    let function = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    match function.delete(&ProjectAccess::All, job.search_id).await? {
        Deletion::Accepted => {}
        Deletion::Running => {
            bail!("import {} has not ended; `search-import cancel` cancels it", job.search_id)
        }
        Deletion::Needed(by) => {
            bail!(
                "import {by}, which repairs import {}, is reading one of its files; wait until it ends, or cancel it first",
                job.search_id
            )
        }
        Deletion::Unknown => {
            bail!("import {} was deleted in the meantime; there is nothing left to do", job.search_id)
        }
    }
    finish(&workspace, args, job.search_id, "deleted").await
}

/// Runs the functions until they are idle, and prints the result.
async fn finish(workspace: &Workspace, args: &Inspect, search: SearchId, done: &str) -> anyhow::Result<bool> {
    workspace.run_until_idle(&args.output.location).await?;
    if args.output.json {
        output::json(&json!({ "search_id": search, "done": done }))?;
    } else {
        output::line(&format!("import {search} is {done}"))?;
    }
    Ok(true)
}
