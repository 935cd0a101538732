//! Benchmark of the import of a large file.

use backend::{BackendKind, Config};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::import::{self, DISK_BOUND, Database, PEAK_BOUND, Row, SPEED_GOAL};

use super::{folder, print, verdict};
use crate::args::BenchImport;

pub(super) async fn run(args: &BenchImport) -> anyhow::Result<bool> {
    let records = u64::from(args.records);
    let mut config = Config::from_env()?;
    config.backend = args.backend.map_or(config.backend, Into::into);
    if config.backend == BackendKind::Aws {
        let measured = import::in_database(config, records).await?;
        print(args.output.json, &measured, shown)?;
        return Ok(true);
    }
    let folder = folder(args.output.dir.as_ref())?;
    let files = u64::from(args.files);
    let rows = import::measure(&folder, args.program.as_deref(), &[records / 4, records], files).await?;
    print(args.output.json, &rows, |rows| table(rows).to_string())?;
    Ok(rows.iter().all(Row::holds))
}

fn shown(measured: &Database) -> String {
    format!(
        "{} studies: {:.0} a second read and stored ({:.1} s, of which {:.1} s reading); {} duplicates marked in {:.1} s; \
         a plain insert of the same documents {:.0} a second ({:.1} s); storing and marking take {:.2} times as long",
        measured.studies,
        measured.studies_per_second(),
        measured.stored_s,
        measured.read_s,
        measured.duplicates,
        measured.marked_s,
        measured.bare_per_second(),
        measured.bare_s,
        measured.ratio()
    )
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header([
        "records",
        "files",
        "files, MB",
        "uploaded, s",
        "stored, s",
        "listed, s",
        "marked, s",
        "MB/s until stored",
        "studies/s",
        "peak, MiB",
        "with marking, MiB",
        "object, MB",
        "database, MB",
        "its log, MB",
        "times the files",
        "",
    ]);
    let megabytes = |bytes: u64| format!("{:.0}", bytes as f64 / 1e6);
    let seconds = |seconds: f64| format!("{seconds:.2}");
    let mib = |peak: Option<f64>| peak.map_or_else(|| "-".to_owned(), |peak| format!("{peak:.0}"));
    for row in rows {
        table.add_row([
            row.records.to_string(),
            row.files.to_string(),
            megabytes(row.file_bytes),
            seconds(row.uploaded_s),
            seconds(row.stored_s),
            seconds(row.listed_s),
            seconds(row.marked_s),
            format!("{:.0}, goal {SPEED_GOAL:.0}", row.megabytes_per_second()),
            format!("{:.0}", row.studies_per_second()),
            format!("{} of {PEAK_BOUND:.0}", mib(row.stored_mib)),
            mib(row.marked_mib),
            megabytes(row.object_bytes),
            megabytes(row.database_bytes),
            megabytes(row.log_bytes),
            format!("{:.2} of {DISK_BOUND}", row.growth()),
            verdict(row.holds()).to_owned(),
        ]);
    }
    table
}
