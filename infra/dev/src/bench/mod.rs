//! Measures the shipped functions, and the readers by themselves.
//!
//! - [`backlog`]: what sweeping costs when many searches want something at the same time;
//! - [`calls`]: how many storage calls and sends one message costs, and what that comes to;
//! - [`cold_start`]: how long a function takes until its first event and its first answer;
//! - [`connections`]: what strangers can make a server spend, in memory and in other clients' time;
//! - [`duplicates`]: how much memory the marking of duplicates takes;
//! - [`import`]: the whole import of a large file, from the upload to the marks, and the room that it takes;
//! - [`load`]: many searches over HTTP while the server is killed again and again;
//! - [`parse`]: how fast reference files are read, and in how much memory;
//! - [`prices`]: what a call costs;
//! - [`saga`]: how many messages a second `run-saga` works off, durably;
//! - [`searches`]: the searches that are measured, message by message;
//! - [`small_records`]: what records of a few bytes cost in disk, memory and the time of others;
//! - [`sweep`]: what a sweep costs while settled records pile up;
//! - [`tally`]: the workload that other engines are compared by.

pub mod backlog;
pub mod calls;
pub mod cold_start;
pub mod connections;
pub mod duplicates;
pub mod import;
pub mod load;
mod memory;
pub mod parse;
pub mod prices;
pub mod saga;
pub mod searches;
mod served;
pub mod small_records;
pub mod sweep;
pub mod tally;
mod tls;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use functions::run_saga::FUNCTION;
use imports::Ports;
use messages::Consumer;

/// The smallest value that at least this share of them does not exceed, in milliseconds. They must be sorted.
fn quantile_ms(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(place.saturating_sub(1)).map_or(0.0, |value| value.as_secs_f64() * 1_000.0)
}

/// The files in a folder and those below it, in bytes.
fn bytes_below(folder: &Path) -> std::io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        bytes += if facts.is_dir() { bytes_below(&entry.path())? } else { facts.len() };
    }
    Ok(bytes)
}

/// What stands behind the saga's queue, as it is shipped.
fn run_saga(ports: &Ports) -> anyhow::Result<Arc<dyn Consumer>> {
    let build = FUNCTION.build.context("run-saga is behind no queue")?;
    Ok(build(ports)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_one_of_the_values() {
        let sorted: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!([0.5, 0.99, 1.0].map(|share| quantile_ms(&sorted, share)), [50.0, 99.0, 100.0]);
        assert_eq!(quantile_ms(&sorted[..1], 0.99), 1.0);
        assert_eq!(quantile_ms(&[], 0.5), 0.0);
    }
}
