//! The time, memory and disk space of importing a large file, from the upload to the last duplicate mark.
//!
//! The built program imports one or more files into a temporary data directory like a user (`search-import import`), and
//! the benchmark reads its progress from that directory.
//!
//! - [`measure`]: several numbers of records, one after the other;
//! - [`in_database`]: the same studies on MongoDB;
//! - [`records`]: the generated records.

mod database;
pub mod records;

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

/// The maximum disk space per byte of the file, including the uploaded file.
pub const DISK_BOUND: f64 = 1.3;
/// The maximum memory until the last study is stored for any number of studies, in MiB.
pub const PEAK_BOUND: f64 = 64.0;
/// The target rate until the last study is stored, in megabytes per second. It depends on the machine, so it is not
/// enforced.
pub const SPEED_GOAL: f64 = 100.0;

/// The interval between reads of the progress.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time limit of an import.
const TIMEOUT: Duration = Duration::from_secs(3_600);

/// The result of an import.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The number of records in the files.
    pub records: u64,
    /// The number of files.
    pub files: u64,
    /// The size of the files in bytes.
    pub file_bytes: u64,
    /// The time from the start of the program until the first file was uploaded, in seconds.
    pub uploaded_s: f64,
    /// The time until the last study was stored.
    pub stored_s: f64,
    /// The time until the studies were listed.
    pub listed_s: f64,
    /// The time until the program ended with all duplicates marked.
    pub marked_s: f64,
    /// The peak memory until the last study was stored, in MiB; `None` if the system does not report it.
    pub stored_mib: Option<f64>,
    /// The peak memory of the whole import.
    pub marked_mib: Option<f64>,
    /// The size of the stored uploads in bytes.
    pub object_bytes: u64,
    /// The size of the database in bytes.
    pub database_bytes: u64,
    /// The peak size of the database's log in bytes. The log is empty at the end.
    pub log_bytes: u64,
}

impl Row {
    /// Returns the disk space per byte of the file.
    pub fn growth(&self) -> f64 {
        (self.object_bytes + self.database_bytes) as f64 / self.file_bytes as f64
    }

    /// Returns the rate until the last study was stored, in megabytes per second.
    pub fn megabytes_per_second(&self) -> f64 {
        self.file_bytes as f64 / 1e6 / self.stored_s
    }

    /// Returns the rate in studies per second.
    pub fn studies_per_second(&self) -> f64 {
        self.records as f64 / self.stored_s
    }

    /// Returns `true` if the bounds hold.
    pub fn holds(&self) -> bool {
        self.growth() <= DISK_BOUND && self.stored_mib.is_none_or(|peak| peak <= PEAK_BOUND)
    }
}

/// Returns the program: the given one, or the one in the folder of this program.
fn program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = match given {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?.with_file_name("search-import"),
    };
    anyhow::ensure!(program.is_file(), "{} is not built", program.display());
    Ok(program)
}

/// Imports records of each number, divided among `files`, in data directories below `dir`.
///
/// # Errors
/// Returns an error if the program fails or does not import everything.
pub async fn measure(
    dir: &Path,
    given: Option<&Path>,
    sizes: &[u64],
    files: u64,
) -> anyhow::Result<Vec<Row>> {
    let program = program(given)?;
    let mut rows = Vec::new();
    for records in sizes {
        let folder = tempfile::tempdir_in(dir)?;
        let uploads = Uploads::write(folder.path(), *records, files)?;
        let data = folder.path().join("data");
        let importing = import(&program, &uploads, &data);
        rows.push(tokio::time::timeout(TIMEOUT, importing).await.context("the import did not end")??);
    }
    Ok(rows)
}

/// The generated files.
struct Uploads {
    files: Vec<PathBuf>,
    records: u64,
    bytes: u64,
}

impl Uploads {
    fn write(folder: &Path, records: u64, files: u64) -> anyhow::Result<Self> {
        let mut uploads = Self { files: Vec::new(), records, bytes: 0 };
        for number in 0..files {
            let file = folder.join(format!("studies-{number}.ris"));
            let mut to = BufWriter::new(File::create(&file)?);
            uploads.bytes +=
                records::write(&mut to, records * number / files..records * (number + 1) / files)?;
            to.flush()?;
            uploads.files.push(file);
        }
        Ok(uploads)
    }
}

async fn import(program: &Path, uploads: &Uploads, data: &Path) -> anyhow::Result<Row> {
    let began = Instant::now();
    let mut child = Command::new(program)
        .arg("import")
        .args(&uploads.files)
        .args(["--json", "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    let mut seen = ImportProgress::default();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        seen.poll(data, &child, began, uploads).await;
        tokio::time::sleep(POLL_INTERVAL).await;
    };
    let marked_s = began.elapsed().as_secs_f64();
    anyhow::ensure!(status.success(), "the import ended with {status}");
    let database = data.join("search-import.sqlite");
    Ok(Row {
        records: uploads.records,
        files: uploads.files.len() as u64,
        file_bytes: uploads.bytes,
        // Events that were not observed happened between the last poll and the end.
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

/// The observed progress of an import.
#[derive(Default)]
struct ImportProgress {
    store: Option<Store>,
    search: Option<SearchId>,
    uploaded_s: Option<f64>,
    stored_s: Option<f64>,
    listed_s: Option<f64>,
    stored_mib: Option<f64>,
    peak_mib: Option<f64>,
    log_bytes: u64,
}

impl ImportProgress {
    /// Reads the progress. A failed read is ignored, because another one follows.
    async fn poll(&mut self, data: &Path, child: &Child, began: Instant, uploads: &Uploads) {
        self.peak_mib = child.id().and_then(memory::peak_mib_of).or(self.peak_mib);
        self.log_bytes = self.log_bytes.max(log(data));
        if self.store.is_none() {
            self.store = Store::open_read_only(
                data,
                Arc::new(SystemHost),
                embedded::Settings::new(&imports::queues::QUEUES),
            )
            .ok();
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
            if progress.iter().map(|(_, progress)| progress.bytes).sum::<u64>() >= uploads.bytes {
                self.stored_s = Some(began.elapsed().as_secs_f64());
            }
            self.stored_mib = self.peak_mib;
        }
        if self.listed_s.is_none()
            && store.parsed(search).await.is_ok_and(|files| files.len() >= uploads.files.len())
        {
            self.listed_s = Some(began.elapsed().as_secs_f64());
        }
    }
}

fn log(data: &Path) -> u64 {
    let log: PathBuf = data.join("search-import.sqlite-wal");
    std::fs::metadata(log).map_or(0, |facts| facts.len())
}
