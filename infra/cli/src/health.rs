//! The health of the stores, queues and workers.

use backend::BackendKind;
use local::output;
use messages::store::chain;
use service::health::{Health, QueueReport, Report};

use crate::args;
use crate::humanize::{ago, counted};
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// Prints the health report. Returns `true` if no problem needs an operator.
pub(crate) async fn run(args: &args::Health) -> anyhow::Result<bool> {
    let reading = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let workspace = if reading.backend.config.backend == BackendKind::Embedded {
        for_writing(reading, args).await?
    } else {
        reading
    };
    let report = Health::over(workspace.ports(), &functions::SYSTEM)?.report().await;
    if args.output.json {
        output::json(&report)?;
    } else {
        show(&report, &workspace)?;
    }
    Ok(report.concerns.is_empty())
}

/// Reopens a data directory for writing, because the report tests writes. It was opened for reading before, so it needs
/// no upgrade.
async fn for_writing(reading: Workspace, args: &args::Health) -> anyhow::Result<Workspace> {
    match Workspace::operate(workspace::settings(&args.output.location)?).await {
        Ok(writing) => Ok(writing),
        Err(error) => {
            output::complain(&format!("{} cannot be written: {}", reading.name(), chain(error.as_ref())));
            Ok(reading)
        }
    }
}

fn show(report: &Report, workspace: &Workspace) -> anyhow::Result<()> {
    let columns = [Column::Whole("part"), Column::Text("state")];
    let parts = report.parts.iter().map(|part| vec![part.name.clone(), part.why.unwrap_or("ok").to_owned()]);
    let facts = facts(report, workspace).into_iter().map(|(what, how)| vec![what.to_owned(), how]);
    output::block(&table(&columns, parts.chain(facts)))?;
    if !report.queues.is_empty() {
        let columns = [
            Column::Whole("queue"),
            Column::Number("visible"),
            Column::Number("in flight"),
            Column::Number("delayed"),
            Column::Number("oldest, s"),
        ];
        output::line("")?;
        output::block(&table(&columns, report.queues.iter().map(row)))?;
    }
    output::line("")?;
    match report.concerns.as_slice() {
        [] => output::line("no problems found")?,
        concerns => concerns.iter().try_for_each(|concern| output::line(concern))?,
    }
    Ok(())
}

/// Returns the rows that the report contains values for.
fn facts(report: &Report, workspace: &Workspace) -> Vec<(&'static str, String)> {
    let Some(searches) = &report.searches else { return Vec::new() };
    let swept = report.last_sweep.as_ref().and_then(|at| at.parse().ok());
    let swept = swept.map_or("never".to_owned(), |at| ago(at, workspace.host().now()));
    let effect = report.oldest_effect_seconds;
    let effect =
        effect.map_or("none due".to_owned(), |age| format!("due for {}", counted(age, "second", "seconds")));
    let states = searches.iter().map(|(state, count)| format!("{count} {state}"));
    let failures = |count: Option<u64>| count.map_or("unknown".to_owned(), |count| count.to_string());
    let operation = report.operation.as_ref().map_or("none".to_owned(), |operation| {
        format!("{}: {} of {}", operation.operation_id, operation.retried, operation.total)
    });
    let worker = match report.has_worker {
        Some(true) => "running",
        Some(false) => "not running",
        None => "unknown",
    };
    [
        ("last sweep", swept),
        ("oldest effect", effect),
        ("unfinished imports", states.collect::<Vec<_>>().join(", ")),
        ("stalled imports", failures(report.stalled_searches.as_ref().map(|stalled| stalled.len() as u64))),
        ("open failures", failures(report.open_failures)),
        ("exhausted effects", failures(report.poisoned_effects)),
        ("running retry", operation),
        ("dead letters", failures(report.dead_letters)),
        ("workers", worker.to_owned()),
    ]
    .into_iter()
    .chain(report.free_bytes.map(|free| ("free disk space", format!("{} MiB", free >> 20))))
    .collect()
}

fn row(queue: &QueueReport) -> Vec<String> {
    vec![
        queue.queue.clone(),
        queue.visible.to_string(),
        queue.in_flight.to_string(),
        queue.delayed.to_string(),
        queue.oldest_seconds.map(|age| age.to_string()).unwrap_or_default(),
    ]
}
