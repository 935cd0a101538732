//! What the functions cost and how fast they are.

use std::path::PathBuf;

use bench::calls::{self, Row};
use bench::parse::{self, GROWTH_BOUND, PEAK_BOUND};
use bench::prices::{Price, Prices};
use bench::{saga, sweep};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use config::{BackendKind, Config};

use crate::args::{Bench, BenchCommand, BenchParse, BenchSaga, BenchSweep};
use crate::output;

/// Measures. `true` when every bound holds.
pub(crate) async fn run(args: &Bench) -> anyhow::Result<bool> {
    match &args.command {
        BenchCommand::Calls(output) => count_calls(output.json, &folder(output.dir.as_ref())?).await,
        BenchCommand::Saga(args) => work_off(args).await,
        BenchCommand::Sweep(args) => sweep_outboxes(args).await,
        BenchCommand::Parse(args) => read_files(args),
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
            verdict(row.holds()).to_owned(),
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

async fn sweep_outboxes(args: &BenchSweep) -> anyhow::Result<bool> {
    let mut config = Config::from_env()?;
    config.backend = args.backend.map_or(config.backend, Into::into);
    let sizes = [1_000, usize::try_from(args.settled)?];
    let report = match config.backend {
        BackendKind::Embedded => sweep::in_folder(&folder(args.output.dir.as_ref())?, &sizes).await?,
        BackendKind::Aws => sweep::in_database(config, &sizes).await?,
    };
    if args.output.json {
        output::line(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print_sweeps(&report)?;
    }
    Ok(report.holds())
}

fn print_sweeps(report: &sweep::Report) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["settled records", "nothing due, ms", "10 due, ms", "how it looks for them"]);
    for row in &report.rows {
        let ms = |us: f64| format!("{:.2}", us / 1e3);
        table.add_row([row.settled.to_string(), ms(row.idle_us), ms(row.due_us), row.plan.clone()]);
    }
    output::line(&table.to_string())?;
    let verdict = verdict(report.holds());
    output::line(&format!(
        "Medians. The last row to the first: {:.2} and {:.2}; at most {}: {verdict}",
        report.idle_ratio,
        report.due_ratio,
        sweep::BOUND
    ))?;
    Ok(())
}

fn read_files(args: &BenchParse) -> anyhow::Result<bool> {
    let sizes = [args.records[0].max(1), args.records[1].max(1)];
    if let Some(folder) = &args.write {
        parse::write(folder, sizes)?;
        return Ok(true);
    }
    let report = parse::measure(sizes)?;
    if args.json {
        output::line(&serde_json::to_string_pretty(&report)?)?;
    } else {
        output::line(&parsing(&report).to_string())?;
        for file in &report.large {
            let (megabytes, format, verdict) = (file.megabytes, file.format, verdict(file.holds()));
            let peak = mib(file.peak_mib);
            output::line(&format!(
                "{megabytes:.0} MB of {format}: {peak} MiB at most, bound {PEAK_BOUND}: {verdict}"
            ))?;
        }
        let [fewer, more] = sizes;
        output::line(&format!(
            "growth: the time for a record among {more}, divided by that among {fewer}; bound {GROWTH_BOUND}"
        ))?;
    }
    Ok(report.formats.iter().all(parse::Row::holds) && report.large.iter().all(parse::Large::holds))
}

fn parsing(report: &parse::Report) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let on_all = format!("on {} cores", report.cores);
    table.set_header([
        "format",
        "records",
        "MB",
        "MB/s",
        "bound",
        "records/s",
        &on_all,
        "growth",
        "peak MiB",
        "",
    ]);
    for row in &report.formats {
        table.add_row([
            row.format.to_owned(),
            row.records.to_string(),
            format!("{:.1}", row.megabytes),
            format!("{:.0}", row.megabytes_per_second),
            row.bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string()),
            format!("{:.0}", row.records_per_second),
            format!("x {:.1}", row.speedup),
            format!("{:.2}", row.growth),
            mib(row.peak_mib),
            verdict(row.holds()).to_owned(),
        ]);
    }
    table
}

fn mib(peak: Option<f64>) -> String {
    peak.map_or_else(|| "?".to_owned(), |peak| format!("{peak:.0}"))
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "EXCEEDED" }
}
