//! Shows one search.

use std::time::Duration;

use imports::{Job, QuarantinedRecord, SearchId, StudyStores};
use local::output;
use messages::{DecisionRecord, RecordedVerdict};
use serde::Serialize;
use service::{SearchRepairs, SearchService};

use crate::report::Report;
use crate::workspace::{self, Workspace};
use crate::{args, find, humanize};

/// The maximum number of unreadable records shown for each file.
const MAX_QUARANTINED: usize = 100;

/// A search with its details, in JSON output.
#[derive(Serialize)]
struct SearchDetails {
    job: Job,
    /// The number of studies that repeat an earlier study.
    duplicates: u64,
    quarantined: Vec<QuarantinedRecord>,
    /// The searches that repair this search, in the order in which they were announced.
    repaired_by: Vec<SearchId>,
    /// `None` if no history is kept.
    decisions: Option<Vec<DecisionRecord<RecordedVerdict>>>,
}

/// Shows state, files, unreadable records and the decision log.
pub(crate) async fn run(args: &args::Inspect) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let job = find::search(&workspace, &args.search.project, &args.search.search).await?;
    let quarantined = quarantined(workspace.study_stores()?, &job).await?;
    let report = Report::of(&workspace, job.search_id, Duration::ZERO).await?;
    let decisions = workspace.decisions(job.search_id).await?;
    let known = SearchService::over(workspace.ports(), &functions::SYSTEM)?.repairs(&job).await?;
    let repaired_by = repairs_of(&job, &known);
    let details = SearchDetails { job, duplicates: report.duplicates, quarantined, repaired_by, decisions };
    if args.output.json {
        output::json(&details)?;
    } else {
        print(&report, &details)?;
    }
    Ok(true)
}

async fn quarantined(study_stores: &StudyStores, job: &Job) -> anyhow::Result<Vec<QuarantinedRecord>> {
    let mut all = Vec::new();
    for file in &job.files {
        all.extend(
            study_stores.read_studies.quarantined(job.search_id, file.file_id, 0, MAX_QUARANTINED).await?,
        );
    }
    Ok(all)
}

/// Returns the searches that repair a search and were not deleted.
fn repairs_of(job: &Job, known: &SearchRepairs) -> Vec<SearchId> {
    let of_it = known.repairs.files.iter().filter(|repaired| repaired.of.search_id == job.search_id);
    let mut searches: Vec<SearchId> = of_it.map(|repaired| repaired.by.search_id).collect();
    searches.dedup();
    searches.retain(|search| known.jobs.contains_key(search));
    searches
}

fn print(report: &Report, details: &SearchDetails) -> anyhow::Result<()> {
    let job = &details.job;
    output::line(&format!(
        "{} (review {}), started {}",
        job.name.as_deref().unwrap_or("unnamed import"),
        job.project_id,
        job.created_at
    ))?;
    report.print(false)?;
    if let Some(repaired) = job.repairs {
        output::line(&format!("repairs import {repaired}"))?;
    }
    for repair in &details.repaired_by {
        output::line(&format!("repaired by import {repair}"))?;
    }
    for QuarantinedRecord { file_id, record, .. } in &details.quarantined {
        let name = job.file_name(*file_id);
        output::line(&format!(
            "not imported: {name}, record {}, line {}, bytes {}-{}: {}",
            record.number, record.line, record.bytes.start, record.bytes.end, record.reason
        ))?;
        output::line(&format!("  {}", in_one_line(&record.excerpt)))?;
    }
    let more = job.quarantined().saturating_sub(details.quarantined.len() as u64);
    if more > 0 {
        let more = humanize::counted(more, "more record", "more records");
        output::line(&format!("{more} not imported; `search-import quarantine` exports them"))?;
    }
    output::line("")?;
    let Some(decisions) = &details.decisions else {
        output::line("no history of messages is kept (SEARCH_IMPORT_HISTORY_SECONDS is 0)")?;
        return Ok(());
    };
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

/// Joins lines with spaces.
fn in_one_line(text: &str) -> String {
    text.replace(['\r', '\n'], " ")
}
