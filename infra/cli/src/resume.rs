//! Finishing interrupted imports and other commands.

use std::collections::BTreeSet;
use std::time::Instant;

use backend::BackendKind;
use embedded::Store;
use imports::SearchId;
use local::output;

use crate::args;
use crate::disk::DiskFull;
use crate::report::Report;
use crate::workspace::{self, Workspace};
use crate::{import, interrupt, stdin, watch};

/// Finishes every unfinished import. Returns `true` if all of these imports completed.
pub(crate) async fn run(args: &args::Resume) -> anyhow::Result<bool> {
    let began = Instant::now();
    let config = workspace::settings(&args.output.location)?;
    if config.backend == BackendKind::Embedded && workspace::is_unused(&config.data_dir) {
        return nothing(args, &config.data_dir.display().to_string());
    }
    let workspace = Workspace::open(config).await?;
    let searches = unfinished(&workspace).await?;
    if searches.is_empty() {
        // Other commands, such as a deletion, also leave work behind when they are interrupted.
        return match workspace.run_until_idle(&args.output.location).await? {
            true => {
                report(args, &format!("finished the work of an interrupted command in {}", workspace.name()))
            }
            false => nothing(args, &workspace.name()),
        };
    }
    let runner = workspace.runner(&args::FaultInjection::default())?;
    let work = async {
        if let Some(home) = workspace.home() {
            upload_rest(&home.store).await?;
            stdin::tidy(&home.store, &workspace.backend.config.data_dir).await?;
        }
        let mut outcomes = Vec::new();
        for search in &searches {
            outcomes.push(watch::until_ended(&runner, &workspace, *search, !args.output.json).await?);
        }
        anyhow::Ok(outcomes)
    };
    let all = async { runner.run_until(work).await? };
    let location = &args.output.location;
    let again = || format!("`{}` continues from here", interrupt::resume_command(location));
    let outcomes = interrupt::unless_interrupted(all, again).await;
    let outcomes = outcomes.map_err(|error| DiskFull::explain(error, &workspace, location))?;
    workspace.run_until_idle(location).await?;
    let mut completed = true;
    for search in &searches {
        let report = Report::of(&workspace, *search, began.elapsed()).await?;
        report.print(args.output.json)?;
        completed &= report.is_completed();
    }
    for (outcome, search) in outcomes.into_iter().zip(searches) {
        watch::report(outcome, &workspace, location, search).await?;
    }
    Ok(completed)
}

/// Reports that there is nothing to do.
fn nothing(args: &args::Resume, workspace: &str) -> anyhow::Result<bool> {
    report(args, &format!("nothing was interrupted in {workspace}"))
}

/// Reports the result if there is no import to report. With `--json`, nothing is printed.
fn report(args: &args::Resume, result: &str) -> anyhow::Result<bool> {
    if !args.output.json {
        output::line(result)?;
    }
    Ok(true)
}

/// Returns the searches that have not ended: those with a job, and those whose files were never uploaded.
async fn unfinished(workspace: &Workspace) -> anyhow::Result<BTreeSet<SearchId>> {
    let jobs = workspace.jobs()?.unfinished().await?;
    let mut searches: BTreeSet<SearchId> = jobs.into_iter().map(|job| job.search_id).collect();
    if let Some(home) = workspace.home() {
        searches.extend(home.store.pending_uploads().await?.into_iter().map(|pending| pending.search_id));
    }
    Ok(searches)
}

/// Finishes interrupted uploads. A file that cannot be uploaded does not stop the others; its search ends when it times
/// out.
async fn upload_rest(store: &Store) -> anyhow::Result<()> {
    for pending in store.pending_uploads().await? {
        if let Err(error) = import::upload(store, &pending).await {
            output::complain(&messages::store::chain(error.as_ref()));
        }
    }
    Ok(())
}
