//! Benchmark of cold starts.

use backend::{BackendKind, Config};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::cold_start;

use super::{folder, print, verdict};
use crate::args::BenchColdStart;

pub(super) async fn run(args: &BenchColdStart) -> anyhow::Result<bool> {
    let options = cold_start::Options {
        dir: args.functions.clone(),
        runs: usize::try_from(args.runs)?,
        // The environment selects the services, independently of this program's own backend.
        services: Config::from_env()?.backend == BackendKind::Aws,
    };
    let rows = cold_start::measure(&folder(args.output.dir.as_ref())?, &options).await?;
    print(args.output.json, &rows, |rows| table(rows).to_string())?;
    Ok(rows.iter().all(cold_start::Row::holds))
}

fn table(rows: &[cold_start::Row]) -> Table {
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
            row.bound_ms.map_or("", |_| verdict(row.holds())).to_owned(),
        ]);
    }
    table
}
