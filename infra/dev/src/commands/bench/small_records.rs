//! Benchmark of records of a few bytes.

use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::small_records::{self, DISK_BOUND, PEAK_BOUND, Row, WAIT_BOUND};

use super::{folder, print, verdict};
use crate::args::BenchSmallRecords;

pub(super) async fn run(args: &BenchSmallRecords) -> anyhow::Result<bool> {
    let folder = folder(args.output.dir.as_ref())?;
    let records = usize::try_from(args.records)?;
    let rows = small_records::measure(&folder, args.program.as_deref(), records).await?;
    print(args.output.json, &rows, |rows| table(rows).to_string())?;
    Ok(rows.iter().all(Row::holds))
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "two files of",
        "records each",
        "files, MB",
        "disk, MB",
        "times",
        "peak, MiB",
        "with marking, MiB",
        "small file, s",
        "all, s",
        "",
    ]);
    let mib = |peak: Option<f64>| peak.map_or_else(|| "-".to_owned(), |peak| format!("{peak:.0}"));
    for row in rows {
        table.add_row([
            row.kind.to_owned(),
            row.records.to_string(),
            format!("{:.1}", row.file_bytes as f64 / 1e6),
            format!("{:.0}", row.disk_bytes as f64 / 1e6),
            format!("{:.0} of {DISK_BOUND:.0}", row.growth()),
            format!("{} of {PEAK_BOUND:.0}", mib(row.peak_mib)),
            mib(row.marking_mib),
            format!("{:.1} of {WAIT_BOUND:.0}", row.wait_s),
            format!("{:.0}", row.all_s),
            verdict(row.holds()).to_owned(),
        ]);
    }
    table
}
