//! Benchmark of handling messages.

use dev::bench::saga;
use local::output;

use super::folder;
use crate::args::{BenchSaga, mode_of};

pub(super) async fn run(args: &BenchSaga) -> anyhow::Result<bool> {
    let options = saga::Options {
        sagas: usize::try_from(args.workload.sagas)?,
        clients: usize::try_from(args.workload.clients)?,
        duplicates: args.workload.duplicates,
        reordered: args.workload.reordered,
        mode: mode_of(args.mode),
    };
    let report = saga::measure(&folder(args.output.dir.as_ref())?, &options).await?;
    if args.output.json {
        output::pretty_json(&report)?;
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
