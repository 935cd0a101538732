//! The benchmarks.

mod calls;
mod cold_start;
mod duplicates;
mod events;
mod import;
mod parse;
mod saga;
mod sweep;

use std::path::PathBuf;

use local::output;
use serde::Serialize;

use crate::args::{Bench, BenchCommand};

/// Runs a benchmark. Returns `true` if all bounds hold.
pub(crate) async fn run(args: &Bench) -> anyhow::Result<bool> {
    match &args.command {
        BenchCommand::Calls(output) => calls::run(output.json, &folder(output.dir.as_ref())?).await,
        BenchCommand::Saga(args) => saga::run(args).await,
        BenchCommand::Sweep(args) => sweep::run(args).await,
        BenchCommand::Parse(args) => parse::run(args),
        BenchCommand::Duplicates(args) => duplicates::run(args).await,
        BenchCommand::ColdStart(args) => cold_start::run(args).await,
        BenchCommand::Events(args) => events::send(args).await,
        BenchCommand::EventServer(args) => events::serve(args).await,
        BenchCommand::Import(args) => import::run(args).await,
    }
}

fn folder(given: Option<&PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = given.cloned().unwrap_or_else(|| PathBuf::from(".search-import"));
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// Prints a report as JSON or as text.
fn print<R: Serialize>(json: bool, report: &R, shown: impl FnOnce(&R) -> String) -> std::io::Result<()> {
    if json { output::pretty_json(report) } else { output::block(&shown(report)) }
}

fn verdict(holds: bool) -> &'static str {
    if holds { "holds" } else { "EXCEEDED" }
}
