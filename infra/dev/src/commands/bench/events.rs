//! Benchmark of engines: the clients, and the server with our engine. Both benchmarks print JSON for comparisons.

use dev::bench::tally::{clients, server};
use local::output;
use serde_json::json;

use super::folder;
use crate::args::{BenchEventServer, BenchEvents, mode_of};

pub(super) async fn send(args: &BenchEvents) -> anyhow::Result<bool> {
    let report = clients::send(clients::Options {
        url: args.url.clone(),
        sagas: usize::try_from(args.workload.sagas)?,
        clients: usize::try_from(args.workload.clients)?,
        duplicates: args.workload.duplicates,
        reordered: args.workload.reordered,
        seed: args.seed,
        begin: args.begin,
        idempotency_key: args.idempotency_key,
    });
    let report = report.await?;
    output::pretty_json(&report)?;
    Ok(report.lost == 0 && report.doubled == 0)
}

pub(super) async fn serve(args: &BenchEventServer) -> anyhow::Result<bool> {
    let options = server::Options {
        backend: (!args.nothing).then(|| args.backend.into()),
        mode: mode_of(args.mode),
        announce: args.announce,
        hops: args.hops,
    };
    let own = tempfile::tempdir_in(folder(args.dir.as_ref())?)?;
    server::serve(own.path(), options, |url| output::line(&json!({ "url": url }).to_string())).await?;
    Ok(true)
}
