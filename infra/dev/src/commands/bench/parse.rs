//! Benchmark of reading files.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::parse::{self, GROWTH_BOUND, PEAK_BOUND};
use local::output;

use super::verdict;
use crate::args::BenchParse;

pub(super) fn run(args: &BenchParse) -> anyhow::Result<bool> {
    let sizes = [args.records[0].max(1), args.records[1].max(1)];
    if let Some(folder) = &args.write {
        parse::write(folder, sizes)?;
        return Ok(true);
    }
    let report = parse::measure(sizes)?;
    if args.json {
        output::pretty_json(&report)?;
    } else {
        output::block(&table(&report).to_string())?;
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

fn table(report: &parse::Report) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    let on_all = format!("on {} cores", report.cores);
    let ceiling = format!("{} files at once", report.cores);
    table.set_header([
        "format",
        "records",
        "MB",
        "MB/s",
        "bound",
        "records/s",
        &on_all,
        &ceiling,
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
            format!("x {:.1}", row.ceiling),
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
