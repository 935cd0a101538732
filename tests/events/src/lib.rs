//! Sample events, as Lambda's event sources pass them to functions, and installations for them.
//!
//! - [`event`] reads one of the sample files, and [`all`] lists them; [`failures`] reads the response to a batch;
//! - [`ExpectedResult`]: the expected responses of the functions;
//! - [`Batches`]: the sample batches of one queue, fed to a library or to a binary;
//! - [`Installation`]: an embedded installation for an event: the reported files are stored, and the tokens of its
//!   messages are granted; [`Place`] does the same for any installation;
//! - [`check_log`]: the rules for the log of a function.
//!
//! The tests of `functions` feed the events of each event source to the library and to the built binaries.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a failed unwrap is a failed test with a line number"
)]

mod batches;
mod expected;
mod installation;
mod log;
mod placed;

use std::path::PathBuf;

use serde_json::Value;

pub use batches::Batches;
pub use expected::{ExpectedResult, Surroundings};
pub use installation::{Installation, upload};
pub use log::check_log;
pub use placed::{EventError, Place, with_new_ids};

/// Returns the sample event of this name.
///
/// # Panics
/// Panics if there is no such file.
pub fn event(name: &str) -> Value {
    let path = folder().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

/// Returns the names of all sample events that start with `prefix`, in alphabetical order.
///
/// # Panics
/// Panics if the folder cannot be read.
pub fn all(prefix: &str) -> Vec<String> {
    let entries = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path());
    let names = entries
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
    names.sort();
    names
}

/// Returns the indices of the records that a partial batch response reports as failed.
///
/// # Panics
/// Panics if it is not such a response, or names a record that is not in the batch.
pub fn failures(batch: &Value, response: &Value) -> Vec<usize> {
    let place = |failure: &Value| {
        let mut records = batch["Records"].as_array().unwrap().iter();
        records
            .position(|record| record["messageId"] == failure["itemIdentifier"])
            .expect("a record of the batch")
    };
    response["batchItemFailures"].as_array().unwrap().iter().map(place).collect()
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}
