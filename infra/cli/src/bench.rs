//! What the functions cost and how fast they are.

use std::path::PathBuf;

use bench::calls::{self, Row};
use bench::cold_start;
use bench::prices::{Price, Prices};
use bench::saga;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use config::{BackendKind, Config};

use crate::args::{Bench, BenchColdStart, BenchCommand, BenchSaga};
use crate::output;

/// Measures. `true` when every bound holds.
pub(crate) async fn run(args: &Bench) -> anyhow::Result<bool> {
    match &args.command {
        BenchCommand::Calls(output) => count_calls(output.json, &folder(output.dir.as_ref())?).await,
        BenchCommand::Saga(args) => work_off(args).await,
        BenchCommand::ColdStart(args) => start_cold(args).await,
    }
}

fn folder(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = given.cloned().unwrap_or_else(|| PathBuf::from(".search-import"));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

async fn count_calls(json: bool, dir: &std::path::Path) -> anyhow::Result<bool> {
    let rows = calls::measure(dir).await?;
    if json {
        output::line(&serde_json::to_string_pretty(&rows)?)?;
    } else {
        output::line(&table(&rows).to_string())?;
        let prices = Prices::shipped()?;
        let region = &prices.region;
        output::line(&format!(
            "Calls for one message in run-saga; dollars for a million messages in {region}:"
        ))?;
        for price in [&prices.dynamodb_write_unit, &prices.sqs_request, &prices.lambda_request] {
            let Price { per_million, as_of, what, source } = price;
            output::line(&format!("  {per_million:.3} for a million of: {what} ({source}, {as_of})"))?;
        }
        output::line("  MongoDB is paid by the hour, whatever the number of calls.")?;
    }
    Ok(rows.iter().all(Row::holds))
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["mode", "what happens", "DynamoDB", "MongoDB", "bound", "sends", "$ / million", ""]);
    for row in rows {
        let (dynamodb, mongodb) = row.per_message();
        let bound =
            row.bound.map_or_else(|| "-".to_owned(), |(dynamodb, mongodb)| format!("{dynamodb} + {mongodb}"));
        let sends = row.sends as f64 / row.messages.max(1) as f64;
        table.add_row([
            row.mode.to_owned(),
            row.situation.to_owned(),
            dynamodb.to_string(),
            mongodb.to_string(),
            bound,
            sends.to_string(),
            format!("{:.2}", row.dollars_per_million),
            if row.holds() { "holds" } else { "EXCEEDED" }.to_owned(),
        ]);
    }
    table
}

async fn work_off(args: &BenchSaga) -> anyhow::Result<bool> {
    let options = saga::Options {
        sagas: usize::try_from(args.sagas)?,
        clients: usize::try_from(args.clients)?,
        duplicates: args.duplicates,
        reordered: args.reordered,
        mode: args.mode.into(),
    };
    let report = saga::measure(&folder(args.output.dir.as_ref())?, &options).await?;
    if args.output.json {
        output::line(&serde_json::to_string_pretty(&report)?)?;
    } else {
        output::line(&format!(
            "{} searches, {} messages in {:.2} s: {:.0} messages a second; p50 {:.1} ms, p99 {:.1} ms; {} duplicated, \
             {} lost",
            report.sagas,
            report.messages,
            report.seconds,
            report.per_second,
            report.p50_ms,
            report.p99_ms,
            report.duplicated,
            report.lost
        ))?;
    }
    Ok(report.duplicated == 0 && report.lost == 0)
}

async fn start_cold(args: &BenchColdStart) -> anyhow::Result<bool> {
    let options = cold_start::Options {
        dir: args.functions.clone(),
        runs: usize::try_from(args.runs)?,
        // Where they are is in the environment, whatever the program itself works on.
        services: Config::from_env()?.backend == BackendKind::Aws,
    };
    let rows = cold_start::measure(&folder(args.output.dir.as_ref())?, &options).await?;
    if args.output.json {
        output::line(&serde_json::to_string_pretty(&rows)?)?;
    } else {
        output::line(&cold_starts(&rows).to_string())?;
    }
    Ok(rows.iter().all(cold_start::Row::holds))
}

fn cold_starts(rows: &[cold_start::Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "program",
        "stores",
        "first poll, ms",
        "bound",
        "first answer, ms",
        "peak, MiB",
        "size, MiB",
        "",
    ]);
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    for row in rows {
        table.add_row([
            row.program.clone(),
            row.stores.to_owned(),
            format!("{:.1}", row.first_poll_ms),
            optional(row.bound_ms),
            format!("{:.1}", row.first_answer_ms),
            optional(row.peak_mib),
            optional(row.size_mib),
            if row.bound_ms.is_none() {
                ""
            } else if row.holds() {
                "holds"
            } else {
                "EXCEEDED"
            }
            .to_owned(),
        ]);
    }
    table
}
