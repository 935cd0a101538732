//! Showing one search.

use std::time::Duration;

use imports::{Job, Library, Quarantined};
use local::output;
use messages::Observation;
use serde::Serialize;

use crate::args;
use crate::report::Report;
use crate::workspace::{self, Workspace};

/// How many unreadable records of a file are shown.
const MAX_QUARANTINED: usize = 100;

/// Everything there is to know about a search.
#[derive(Serialize)]
struct Shown {
    job: Job,
    /// How many studies repeat an earlier one.
    duplicates: u64,
    quarantined: Vec<Quarantined>,
    /// None when only the logs of a deployment could tell.
    decisions: Option<Vec<Observation>>,
}

/// Shows state, files, unreadable records and the decision log.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let Some(job) = workspace.jobs()?.job(args.search).await? else {
        anyhow::bail!("there is no search {} in {}", args.search, workspace.name());
    };
    let quarantined = quarantined(workspace.library()?, &job).await?;
    let report = Report::of(&workspace, args.search, Duration::ZERO).await?;
    let decisions = workspace.decisions(args.search).await?;
    let shown = Shown { job, duplicates: report.duplicates, quarantined, decisions };
    if args.output.json {
        output::json(&shown)?;
    } else {
        print(&report, &shown)?;
    }
    Ok(true)
}

async fn quarantined(library: &Library, job: &Job) -> anyhow::Result<Vec<Quarantined>> {
    let mut all = Vec::new();
    for file in &job.files {
        all.extend(library.read_studies.quarantined(job.search_id, file.file_id, 0, MAX_QUARANTINED).await?);
    }
    Ok(all)
}

fn print(report: &Report, shown: &Shown) -> anyhow::Result<()> {
    let job = &shown.job;
    output::line(&format!(
        "{} (project {}), begun {}",
        job.name.as_deref().unwrap_or("unnamed search"),
        job.project_id,
        job.created_at
    ))?;
    report.print(false)?;
    for Quarantined { file_id, record, .. } in &shown.quarantined {
        let file = job.files.iter().find(|file| file.file_id == *file_id);
        let name = file.and_then(|file| file.name.clone()).unwrap_or_else(|| file_id.to_string());
        output::line(&format!(
            "not read: {name}, record {}, line {}, bytes {}-{}: {}",
            record.number, record.line, record.bytes.start, record.bytes.end, record.reason
        ))?;
        output::line(&format!("  {}", in_one_line(&record.excerpt)))?;
    }
    let Some(decisions) = &shown.decisions else { return Ok(()) };
    output::line("")?;
    for decision in decisions {
        output::line(&format!(
            "{:.3}  {:<16} {:<30} {}: {}",
            decision.at,
            decision.function,
            decision.message,
            decision.verdict.name(),
            decision.why
        ))?;
    }
    Ok(())
}

/// Lines of a file as one.
fn in_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
