//! Benchmarks of the functions and of the readers.
//!
//! - [`calls`]: the number and the price of storage calls and sends for one message;
//! - [`cold_start`]: the time until a function's first event and first response;
//! - [`duplicates`]: the memory for marking duplicates;
//! - [`import`]: the whole import of a large file, from the upload to the marks, with its disk space;
//! - [`parse`]: the speed and the memory of reading reference files;
//! - [`prices`]: the prices of calls;
//! - [`saga`]: the number of messages per second that `run-saga` handles durably;
//! - [`searches`]: the measured searches, message by message;
//! - [`sweep`]: sweeps with a growing number of settled records;
//! - [`tally`]: the workload for comparing engines.

pub mod calls;
pub mod cold_start;
pub mod duplicates;
pub mod import;
mod memory;
pub mod parse;
pub mod prices;
pub mod saga;
pub mod searches;
pub mod sweep;
pub mod tally;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use functions::run_saga::FUNCTION;
use imports::Ports;
use messages::Consumer;

/// Returns the quantile of sorted durations, in milliseconds.
pub fn quantile_ms(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).map_or(0.0, |value| value.as_secs_f64() * 1_000.0)
}

/// Returns the total size of the files in a folder and its subfolders, in bytes.
fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        bytes += if facts.is_dir() { bytes_below(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}

/// Returns the consumer of the saga's queue.
fn run_saga(ports: &Ports) -> anyhow::Result<Arc<dyn Consumer>> {
    let build = FUNCTION.build.context("run-saga is behind no queue")?;
    Ok(build(ports)?)
}
