//! Benchmark of attacks by unauthenticated clients.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::connections::{self, Row};

use super::{folder, print, verdict};
use crate::args::BenchConnections;

pub(super) async fn run(args: &BenchConnections) -> anyhow::Result<bool> {
    let folder = folder(args.output.dir.as_ref())?;
    let rows = connections::measure(&folder, args.program.as_deref()).await?;
    print(args.output.json, &rows, |rows| table(rows).to_string())?;
    Ok(rows.iter().all(Row::holds))
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["attack", "peak, MiB", "next answer, ms", "stop, s", ""]);
    for row in rows {
        let peak = row.peak_mib.map_or_else(|| "-".to_owned(), |peak| format!("{peak:.0}"));
        table.add_row([
            row.attack.to_owned(),
            format!("{peak} of {:.0}", row.bound_mib),
            format!("{:.0} of {:.0}", row.answer_ms, row.bound_ms),
            format!("{:.1} of {:.0}", row.stop_s, row.bound_s),
            verdict(row.holds()).to_owned(),
        ]);
    }
    table
}
