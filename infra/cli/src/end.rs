//! Cancelling a search that is under way, and deleting one that has ended.

use std::time::Duration;

use anyhow::bail;
use backend::BackendKind;
use embedded::Store;
use local::output;
use serde_json::json;
use service::{Cancellation, Deletion, ProjectAccess, SearchService};

use crate::args::{self, Delete, Inspect};
use crate::consent;
use crate::find;
use crate::words::counted;
use crate::workspace::{self, Workspace};

/// How often to look whether everything is done.
const PACE: Duration = Duration::from_millis(50);

/// Cancels a search: it ends, and what was read of it is taken back.
pub(crate) async fn cancel(args: &Inspect) -> anyhow::Result<bool> {
    let workspace = open(&args.output).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    let function = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    match function.cancel(&ProjectAccess::All, job.search_id).await? {
        Cancellation::Accepted => {}
        Cancellation::TooLate => {
            bail!("search {} has ended as {}; `search-import delete` deletes it", job.search_id, job.state)
        }
        Cancellation::Unknown => {
            bail!("search {} was deleted in the meantime; nothing is left to do", job.search_id)
        }
    }
    done(&workspace, args, &job.search_id.to_string(), "cancelled").await
}

/// Deletes a search that has ended, with everything that it has stored.
pub(crate) async fn delete(args: &Delete) -> anyhow::Result<bool> {
    let (consent, args) = (args.consent, &args.inspect);
    let workspace = open(&args.output).await?;
    let job = find::search(&workspace, workspace.project(args.search.project), &args.search.search).await?;
    let name = job.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let studies = counted(job.studies(), "study", "studies");
    let what = format!("search {}{name}, with {studies} and its uploaded files", job.search_id);
    if job.state.has_ended() {
        consent::ask(consent, &format!("Delete {what}? This cannot be undone."))?;
    }
    let function = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    match function.delete(&ProjectAccess::All, job.search_id).await? {
        Deletion::Accepted => {}
        Deletion::Running => {
            bail!("search {} has not ended; `search-import cancel` ends it", job.search_id)
        }
        Deletion::Needed(by) => {
            bail!(
                "search {by}, which repairs search {}, reads one of its files; wait for its end, or cancel it first",
                job.search_id
            )
        }
        Deletion::Unknown => {
            bail!("search {} was deleted in the meantime; nothing is left to do", job.search_id)
        }
    }
    done(&workspace, args, &job.search_id.to_string(), "deleted").await
}

/// Opens a data directory for work where nobody works in it, and otherwise beside whoever does.
pub(crate) async fn open(output: &args::Output) -> anyhow::Result<Workspace> {
    let config = workspace::settings(&output.place)?;
    workspace::has_folder(&config)?;
    let is_free = config.backend == BackendKind::Embedded && Store::lock(&config.data_dir).is_ok();
    if is_free { Workspace::open(config).await } else { Workspace::operate(config).await }
}

/// Does the work where nobody else does it.
pub(crate) async fn settled(workspace: &Workspace) -> anyhow::Result<()> {
    if workspace.home().is_none() {
        return Ok(());
    }
    let runner = workspace.runner(&args::Trial::default())?;
    let idle = async {
        while runner.is_idle().await? != Some(true) {
            workspace.host().sleep(PACE).await;
        }
        anyhow::Ok(())
    };
    runner.run_until(idle).await?
}

/// Does the work where nobody else does it, and says what was done.
async fn done(workspace: &Workspace, args: &Inspect, search: &str, what: &str) -> anyhow::Result<bool> {
    settled(workspace).await?;
    if args.output.json {
        output::json(&json!({ "search_id": search, "done": what }))?;
    } else {
        output::line(&format!("search {search} is {what}"))?;
    }
    Ok(true)
}
