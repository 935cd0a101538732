//! Benchmark of sweeps with a growing number of settled records.

use backend::{BackendKind, Config};
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use dev::bench::sweep;
use local::output;

use super::{folder, verdict};
use crate::args::BenchSweep;

pub(super) async fn run(args: &BenchSweep) -> anyhow::Result<bool> {
    let mut config = Config::from_env()?;
    config.backend = args.backend.map_or(config.backend, Into::into);
    let sizes = [1_000, usize::try_from(args.settled)?];
    let report = match config.backend {
        BackendKind::Embedded => sweep::in_folder(&folder(args.output.dir.as_ref())?, &sizes).await?,
        BackendKind::Aws => sweep::in_database(config, &sizes).await?,
    };
    if args.output.json {
        output::pretty_json(&report)?;
    } else {
        print(&report)?;
    }
    Ok(report.holds())
}

fn print(report: &sweep::Report) -> anyhow::Result<()> {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["settled records", "nothing due, ms", "10 due, ms", "how it looks for them"]);
    for row in &report.rows {
        let ms = |us: f64| format!("{:.2}", us / 1e3);
        table.add_row([row.settled.to_string(), ms(row.idle_us), ms(row.due_us), row.plan.clone()]);
    }
    output::block(&table.to_string())?;
    let verdict = verdict(report.holds());
    output::line(&format!(
        "Medians. The last row to the first: {:.2} and {:.2}; at most {}: {verdict}",
        report.idle_ratio,
        report.due_ratio,
        sweep::BOUND
    ))?;
    Ok(())
}
