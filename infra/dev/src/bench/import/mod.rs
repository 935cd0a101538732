//! How long the import of a large file takes from the upload to the last mark, in how much memory, and how much room what is
//! stored takes.
//!
//! The built program imports a file into a data directory of its own, as users run it (`search-import import`). What it has
//! done so far is looked up in that directory meanwhile.
//!
//! - [`measure`]: files of several sizes, one after the other;
//! - [`in_database`]: the same studies on MongoDB;
//! - `records`: what is in the files.

mod database;
mod records;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use backend::SystemHost;
use embedded::Store;
use imports::key::ObjectKey;
use imports::{FindObjects, ReadProgress, ReadStudies, SearchId};
use serde::Serialize;
use tokio::process::{Child, Command};

pub use self::database::{Database, in_database};
use super::{bytes_below, memory};

/// How many bytes of the disk each byte of the file may take in the end, the uploaded file included.
pub const DISK_BOUND: f64 = 1.3;
/// The most memory that the program may have until the last study is stored, whatever the number of studies, in MiB.
pub const PEAK_BOUND: f64 = 64.0;
/// What is aimed at until then, in megabytes a second: it depends on the machine, so nothing fails by it.
pub const SPEED_GOAL: f64 = 100.0;

/// How often it is looked how far the import is.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// How long an import may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// What an import came to.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// How many records the file has.
    pub records: u64,
    /// Its bytes.
    pub file_bytes: u64,
    /// From the start of the program until the file was uploaded, in seconds.
    pub uploaded_s: f64,
    /// Until the last study was stored.
    pub stored_s: f64,
    /// Until the studies were listed.
    pub listed_s: f64,
    /// Until the program ended, with all duplicates marked.
    pub marked_s: f64,
    /// The most memory until the last study was stored, in MiB; none where the system does not tell.
    pub stored_mib: Option<f64>,
    /// The most memory in all.
    pub marked_mib: Option<f64>,
    /// The bytes of the uploaded file as it is kept.
    pub object_bytes: u64,
    /// The bytes of the database.
    pub database_bytes: u64,
    /// The most bytes that its log had meanwhile; none is left in the end.
    pub log_bytes: u64,
}

impl Row {
    /// How many bytes of the disk each byte of the file takes in the end.
    pub fn growth(&self) -> f64 {
        (self.object_bytes + self.database_bytes) as f64 / self.file_bytes as f64
    }

    /// How fast it was until the last study was stored, in megabytes a second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.file_bytes as f64 / 1e6 / self.stored_s
    }

    /// The same in studies.
    pub fn studies_per_second(&self) -> f64 {
        self.records as f64 / self.stored_s
    }

    /// Whether the bounds hold.
    pub fn holds(&self) -> bool {
        self.growth() <= DISK_BOUND && self.stored_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

/// Imports a file of each size, in data directories below `dir`.
///
/// # Errors
/// When the program fails, or does not import everything.
pub async fn measure(dir: &Path, given: Option<&Path>, sizes: &[u64]) -> anyhow::Result<Vec<Row>> {
    let program = super::served::program(given)?;
    let mut rows = Vec::new();
    for records in sizes {
        let folder = tempfile::tempdir_in(dir)?;
        let file = folder.path().join("studies.ris");
        let mut to = BufWriter::new(File::create(&file)?);
        let file_bytes = records::write(&mut to, 0..*records)?;
        to.flush()?;
        let data = folder.path().join("data");
        let importing = import(&program, &file, &data, (*records, file_bytes));
        rows.push(tokio::time::timeout(PATIENCE, importing).await.context("the import did not end")??);
    }
    Ok(rows)
}

async fn import(
    program: &Path,
    file: &Path,
    data: &Path,
    (records, file_bytes): (u64, u64),
) -> anyhow::Result<Row> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .arg("import")
        .arg(file)
        .args(["--json", "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut seen = Seen::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        seen.look(data, &child, (began, file_bytes)).await;
        tokio::time::sleep(LOOK_EVERY).await;
    };
    let marked_s = began.elapsed().as_secs_f64();
    anyhow::ensure!(status.success(), "the import ended with {status}");
    let database = data.join("search-import.sqlite");
    Ok(Row {
        records,
        file_bytes,
        // What was not seen has happened between the last look and the end.
        uploaded_s: seen.uploaded_s.unwrap_or(marked_s),
        stored_s: seen.stored_s.unwrap_or(marked_s),
        listed_s: seen.listed_s.unwrap_or(marked_s),
        marked_s,
        stored_mib: seen.stored_mib,
        marked_mib: seen.peak_mib,
        object_bytes: bytes_below(&data.join("objects"))?,
        database_bytes: std::fs::metadata(&database)?.len() + log(data),
        log_bytes: seen.log_bytes,
    })
}

/// What was seen of an import so far.
#[derive(Default)]
struct Seen {
    store: Option<Store>,
    search: Option<SearchId>,
    uploaded_s: Option<f64>,
    stored_s: Option<f64>,
    listed_s: Option<f64>,
    stored_mib: Option<f64>,
    peak_mib: Option<f64>,
    log_bytes: u64,
}

impl Seen {
    /// Looks how far it is. A look that fails is followed by another one.
    async fn look(&mut self, data: &Path, child: &Child, (began, file_bytes): (Instant, u64)) {
        self.peak_mib = child.id().and_then(memory::peak_mib_of).or(self.peak_mib);
        self.log_bytes = self.log_bytes.max(log(data));
        if self.store.is_none() {
            self.store = Store::open_read_only(data, Arc::new(SystemHost), &imports::queues::QUEUES).ok();
        }
        let Some(store) = &self.store else { return };
        if self.search.is_none() {
            let found = store.find("").await.unwrap_or_default();
            let key = found.first().and_then(|object| {
                let prefix = object.key.split_inclusive('/').next()?;
                ObjectKey::parse(prefix, &object.key).ok()
            });
            self.search = key.map(|key| key.search);
            self.uploaded_s = self.search.map(|_| began.elapsed().as_secs_f64());
        }
        let Some(search) = self.search else { return };
        if self.stored_s.is_none() {
            let progress = store.progress(search).await.unwrap_or_default();
            if progress.first().is_some_and(|(_, progress)| progress.bytes >= file_bytes) {
                self.stored_s = Some(began.elapsed().as_secs_f64());
            }
            self.stored_mib = self.peak_mib;
        }
        if self.listed_s.is_none() && store.parsed(search).await.is_ok_and(|files| !files.is_empty()) {
            self.listed_s = Some(began.elapsed().as_secs_f64());
        }
    }
}

fn log(data: &Path) -> u64 {
    let log: PathBuf = data.join("search-import.sqlite-wal");
    std::fs::metadata(log).map_or(0, |facts| facts.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_held_to_its_bounds() {
        let row = Row {
            records: 100,
            file_bytes: 1_000,
            uploaded_s: 1.0,
            stored_s: 2.0,
            listed_s: 3.0,
            marked_s: 4.0,
            stored_mib: Some(64.0),
            marked_mib: Some(100.0),
            object_bytes: 300,
            database_bytes: 1_000,
            log_bytes: 0,
        };
        assert!(row.holds());
        assert!((row.studies_per_second() - 50.0).abs() < 1e-9);
        assert!(!Row { database_bytes: 1_001, ..row.clone() }.holds());
        assert!(!Row { stored_mib: Some(64.1), ..row }.holds());
    }
}
