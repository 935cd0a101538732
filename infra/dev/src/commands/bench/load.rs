//! Benchmark of many searches over HTTP on a server that is killed.

use dev::bench::load::{self, Options, Report};

use super::{folder, print, verdict};
use crate::args::BenchLoad;

pub(super) async fn run(args: &BenchLoad) -> anyhow::Result<bool> {
    let options = Options {
        searches: usize::try_from(args.searches)?,
        kills: usize::try_from(args.kills)?,
        clients: usize::try_from(args.clients)?,
        program: args.program.clone(),
    };
    let report = load::measure(&folder(args.output.dir.as_ref())?, &options).await?;
    print(args.output.json, &report, text)?;
    Ok(report.holds())
}

fn text(report: &Report) -> String {
    let Report { searches, kills, lost, doubled, upload_s, uploads_per_s, p50_ms, p99_ms, all_s } = report;
    format!(
        "{searches} searches, the server killed {kills} times: {lost} lost, {doubled} doubled: {}\n\
         uploads: {uploads_per_s:.0} a second for {upload_s:.1} s; each {p50_ms:.1} ms (median), {p99_ms:.1} ms (p99)\n\
         all had ended after {all_s:.1} s",
        verdict(report.holds())
    )
}
