//! What the marking of duplicates takes.

use dev::bench::duplicates::{self, PEAK_BOUND};
use local::output;

use super::verdict;
use crate::args::BenchDuplicates;

pub(super) fn run(args: &BenchDuplicates) -> anyhow::Result<bool> {
    let report = duplicates::measure(args.studies.into());
    if args.json {
        output::pretty_json(&report)?;
    } else {
        let added = report.added_mib.map_or_else(|| "?".to_owned(), |mib| format!("{mib:.1}"));
        output::line(&format!(
            "{} studies, {} repeated, in {} passes and {:.2} s: {added} MiB at most, bound {PEAK_BOUND}: {}",
            report.studies,
            report.marked,
            report.passes,
            report.seconds,
            verdict(report.holds())
        ))?;
    }
    Ok(report.holds())
}
