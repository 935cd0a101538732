//! Benchmark of marking duplicates.

use dev::bench::duplicates::{self, PEAK_BOUND};
use local::output;

use super::verdict;
use crate::args::BenchDuplicates;

pub(super) async fn run(args: &BenchDuplicates) -> anyhow::Result<bool> {
    let report = duplicates::measure(&super::folder(args.dir.as_ref())?, args.studies.into()).await?;
    if args.json {
        output::pretty_json(&report)?;
    } else {
        let added = report.added_mib.map_or_else(|| "?".to_owned(), |mib| format!("{mib:.1}"));
        output::line(&format!(
            "{} studies, {} repeated: stored in {:.2} s, marked in {:.2} s, with {added} MiB at most, bound {PEAK_BOUND}: {}",
            report.studies,
            report.marked,
            report.storing_s,
            report.marking_s,
            verdict(report.holds())
        ))?;
    }
    Ok(report.holds())
}
