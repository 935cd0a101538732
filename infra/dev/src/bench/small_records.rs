//! The disk space and memory for files with records of a few bytes, and the waiting time of a small file after them.
//!
//! Each type of file is sent over HTTP to its own server: two files concurrently, and then a file with one record.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use reqwest::multipart::{Form, Part};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::bytes_below;
use super::served::ServeProcess;

/// The maximum disk space per byte of such a file, including the uploaded file.
pub const DISK_BOUND: f64 = 80.0;
/// The maximum memory while reading and storing, in MiB.
pub const PEAK_BOUND: f64 = 64.0;
/// The maximum memory that marking duplicates may add, in MiB.
pub const MARKING_BOUND: f64 = super::duplicates::PEAK_BOUND;
/// The maximum time for the small file, in seconds.
pub const WAIT_BOUND: f64 = 10.0;

/// The interval between reads of a search's state and of the memory.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The time limit of the benchmark.
const TIMEOUT: Duration = Duration::from_secs(1_800);

/// A type of file: its header row, the repeated rows, and the number of records in them.
struct Kind {
    name: &'static str,
    header: &'static str,
    rows: &'static str,
    records: usize,
}

const KINDS: [Kind; 3] = [
    Kind { name: "titles of one letter", header: "title\n", rows: "a\n", records: 1 },
    Kind { name: "the same PubMed identifier", header: "pmid\n", rows: "1\n", records: 1 },
    Kind { name: "every second row unreadable", header: "title\n", rows: "a\n,b\n", records: 2 },
];

/// The result for a type of file.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The type of records.
    pub kind: &'static str,
    /// The number of records in each of the two files.
    pub records: usize,
    /// The total size of both files in bytes.
    pub file_bytes: u64,
    /// The final size of the data directory in bytes.
    pub disk_bytes: u64,
    /// The peak memory until the last record was stored, in MiB; `None` if the system does not report it.
    pub peak_mib: Option<f64>,
    /// The peak memory, including the marking of duplicates.
    pub marking_mib: Option<f64>,
    /// The time from the upload of the small file to the end of its search, in seconds.
    pub wait_s: f64,
    /// The time from the first upload to the end of the last search, in seconds.
    pub all_s: f64,
}

impl Row {
    /// Returns the disk space per byte of the files.
    pub fn growth(&self) -> f64 {
        self.disk_bytes as f64 / self.file_bytes as f64
    }

    /// Returns `true` if the bounds hold.
    pub fn holds(&self) -> bool {
        self.growth() <= DISK_BOUND
            && self.wait_s <= WAIT_BOUND
            && self.peak_mib.is_none_or(|peak| peak <= PEAK_BOUND)
            && self.marking_mib.is_none_or(|peak| peak <= PEAK_BOUND + MARKING_BOUND)
    }
}

/// Measures each type with two files of this many records, in data directories below `dir`.
///
/// # Errors
/// Returns an error if the server does not start or respond, or a search does not complete.
pub async fn measure(dir: &Path, given: Option<&Path>, records: usize) -> anyhow::Result<Vec<Row>> {
    let program = super::served::program(given)?;
    let mut rows = Vec::new();
    for kind in &KINDS {
        let folder = tempfile::tempdir_in(dir)?;
        let server = ServeProcess::start(&program, folder.path(), None).await?;
        let meets = ServerClient { client: Client::new(), server: &server };
        let measured = tokio::time::timeout(TIMEOUT, meets.measure(kind, records));
        let row = measured.await.context("the searches did not end")??;
        server.stop().await?;
        rows.push(Row { disk_bytes: bytes_below(folder.path())?, ..row });
    }
    Ok(rows)
}

/// A server and its client.
struct ServerClient<'a> {
    client: Client,
    server: &'a ServeProcess,
}

/// An uploaded search.
struct UploadedSearch {
    /// The path of the search.
    path: String,
}

impl ServerClient<'_> {
    async fn measure(&self, kind: &Kind, records: usize) -> anyhow::Result<Row> {
        let repeated = records.div_ceil(kind.records);
        let file = format!("{}{}", kind.header, kind.rows.repeat(repeated));
        let begun = Instant::now();
        let large = [self.send(&file).await?, self.send(&file).await?];
        let small = self.send("TY  - JOUR\nTI  - Small\nER  - \n").await?;
        let sent = Instant::now();
        let (mut wait_s, mut peak_mib) = (None, None);
        loop {
            let mut left = 0;
            let mut is_reading = false;
            for search in large.iter().chain([&small]) {
                let shown = self.shown(search).await?;
                let has_ended = !shown["completed_at"].is_null();
                anyhow::ensure!(!has_ended || shown["state"] == "Completed", "a search failed: {shown}");
                left += usize::from(!has_ended);
                let read = shown["files"][0]["progress"]["bytes"].as_u64().unwrap_or_default();
                is_reading |= !has_ended && read < file.len() as u64 && search.path != small.path;
                if has_ended && search.path == small.path && wait_s.is_none() {
                    wait_s = Some(sent.elapsed().as_secs_f64());
                }
            }
            if is_reading {
                peak_mib = self.server.peak_mib();
            }
            if left == 0 {
                break;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(Row {
            kind: kind.name,
            records: repeated * kind.records,
            file_bytes: 2 * file.len() as u64,
            disk_bytes: 0,
            peak_mib,
            marking_mib: self.server.peak_mib(),
            wait_s: wait_s.unwrap_or_default(),
            all_s: begun.elapsed().as_secs_f64(),
        })
    }

    /// Announces a search of one file and uploads it.
    async fn send(&self, content: &str) -> anyhow::Result<UploadedSearch> {
        let project = Uuid::new_v4();
        let request =
            json!({ "name": "Small records", "files": [{ "name": "x.csv", "size_bytes": content.len() }] });
        let searches = format!("/projects/{project}/searches");
        let announced = self.client.post(self.url(&searches)).header("content-type", "application/json");
        let announced = announced.body(request.to_string()).send().await?.error_for_status()?;
        let announced: Value = serde_json::from_slice(&announced.bytes().await?)?;
        let mut form = Form::new();
        for (name, value) in announced["files"][0]["upload"]["fields"].as_object().into_iter().flatten() {
            form = form.text(name.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        let form = form.part("file", Part::text(content.to_owned()).file_name("file"));
        let answer = self.client.post(self.url("/uploads")).multipart(form).send().await?;
        anyhow::ensure!(answer.status().is_success(), "uploading was answered with {}", answer.status());
        let id = announced["search_id"].as_str().context("no id")?;
        Ok(UploadedSearch { path: format!("{searches}/{id}") })
    }

    async fn shown(&self, search: &UploadedSearch) -> anyhow::Result<Value> {
        let answer = self.client.get(self.url(&search.path)).send().await?;
        // The search is visible once its announcement has been handled.
        if answer.status() == StatusCode::NOT_FOUND {
            return Ok(Value::Null);
        }
        Ok(serde_json::from_slice(&answer.error_for_status()?.bytes().await?)?)
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_is_checked_against_its_bounds() {
        let row = Row {
            kind: "x",
            records: 1,
            file_bytes: 10,
            disk_bytes: 800,
            peak_mib: Some(64.0),
            marking_mib: Some(PEAK_BOUND + MARKING_BOUND),
            wait_s: 10.0,
            all_s: 100.0,
        };
        assert!(row.holds());
        assert!(!Row { disk_bytes: 801, ..row.clone() }.holds());
        assert!(!Row { peak_mib: Some(64.1), ..row.clone() }.holds());
        assert!(!Row { marking_mib: Some(PEAK_BOUND + MARKING_BOUND + 0.1), ..row.clone() }.holds());
        assert!(!Row { wait_s: 10.1, ..row }.holds());
    }
}
