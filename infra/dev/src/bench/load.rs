//! Many searches over HTTP while the server is repeatedly killed: lost and duplicated searches, and the rate of
//! uploads.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use backend::SystemHost;
use embedded::Store;
use imports::queues::QUEUES;
use imports::{FileId, ReadStudies, SearchId};
use reqwest::multipart::{Form, Part};
use reqwest::{Client, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::served::ServeProcess;

/// The records of each file.
const RECORDS: usize = 3;
/// The delay before a client retries.
const AGAIN: Duration = Duration::from_millis(20);
/// The timeout of a request.
const REQUEST: Duration = Duration::from_secs(30);
/// The time without any search ending after which the others count as lost.
const STANDSTILL: Duration = Duration::from_secs(120);
/// The number of searches on a page of a list.
const PAGE: usize = 200;

/// The options of the benchmark.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of searches, each with one file.
    pub searches: usize,
    /// The number of times that the server is killed.
    pub kills: usize,
    /// The number of concurrent clients.
    pub clients: usize,
    /// The program; by default the one in the folder of this program.
    pub program: Option<PathBuf>,
}

/// The result of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of announced searches.
    pub searches: usize,
    /// The number of kills.
    pub kills: usize,
    /// The number of searches that did not complete with all their studies.
    pub lost: usize,
    /// The number of unexpected searches and studies.
    pub doubled: usize,
    /// The time from the first announcement to the last upload, including restarts, in seconds.
    pub upload_s: f64,
    /// The number of uploads per second in this time.
    pub uploads_per_s: f64,
    /// The median duration of a successful upload, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of this duration.
    pub p99_ms: f64,
    /// The time from the first announcement to the end of the last search, in seconds.
    pub all_s: f64,
}

impl Report {
    /// Returns `true` if each search was imported exactly once.
    pub fn holds(&self) -> bool {
        self.lost == 0 && self.doubled == 0
    }
}

/// The state that all clients share.
struct Load {
    client: Client,
    project: Uuid,
    address: watch::Receiver<String>,
    searches: usize,
    next: AtomicUsize,
    uploaded: watch::Sender<usize>,
}

/// Runs the benchmark in a temporary data directory below `dir`.
///
/// # Errors
/// Returns an error if the server does not start or the data directory cannot be read.
pub async fn measure(dir: &Path, options: &Options) -> anyhow::Result<Report> {
    let program = super::served::program(options.program.as_deref())?;
    let folder = tempfile::tempdir_in(dir)?;
    let mut server = ServeProcess::start(&program, folder.path(), None).await?;
    let (moved, address) = watch::channel(server.address.clone());
    let (uploaded, mut progress) = watch::channel(0);
    let load = Arc::new(Load {
        client: Client::builder().timeout(REQUEST).build()?,
        project: Uuid::new_v4(),
        address,
        searches: options.searches,
        next: AtomicUsize::new(0),
        uploaded,
    });
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..options.clients {
        clients.spawn(Arc::clone(&load).work());
    }
    for kill in 1..=options.kills {
        let due = options.searches * kill / (options.kills + 1);
        progress.wait_for(|uploaded| *uploaded >= due).await?;
        server.kill().await?;
        server = ServeProcess::start(&program, folder.path(), None).await?;
        moved.send(server.address.clone())?;
    }
    let (mut ids, mut times) = (BTreeSet::new(), Vec::new());
    while let Some(client) = clients.join_next().await {
        let (announced, took) = client??;
        ids.extend(announced);
        times.extend(took);
    }
    let upload_s = begun.elapsed().as_secs_f64();
    let ended = load.until_ended().await?;
    let all_s = begun.elapsed().as_secs_f64();
    server.stop().await?;
    let (lost, doubled) = count(folder.path(), options.searches, &ids, &ended).await?;
    times.sort_by(f64::total_cmp);
    let percentile =
        |hundredths: usize| times.get(times.len() * hundredths / 100).copied().unwrap_or_default();
    Ok(Report {
        searches: options.searches,
        kills: options.kills,
        lost,
        doubled,
        upload_s,
        uploads_per_s: options.searches as f64 / upload_s,
        p50_ms: percentile(50),
        p99_ms: percentile(99),
        all_s,
    })
}

/// A search in a list.
type SearchList = BTreeMap<Uuid, Value>;

impl Load {
    /// Announces and uploads all searches. Returns their ids, and the duration of each upload.
    async fn work(self: Arc<Self>) -> anyhow::Result<(Vec<Uuid>, Vec<f64>)> {
        let (mut ids, mut times) = (Vec::new(), Vec::new());
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.searches {
                return Ok((ids, times));
            }
            let content = records(number);
            loop {
                // A server that was killed before it responded may or may not have acted, so everything is repeated.
                let Ok((id, form)) = self.announce(number, content.len()).await else {
                    tokio::time::sleep(AGAIN).await;
                    continue;
                };
                ids.push(id);
                let Some(form) = form else { break };
                let begun = Instant::now();
                if self.upload(&form, &content).await {
                    times.push(begun.elapsed().as_secs_f64() * 1e3);
                    break;
                }
                tokio::time::sleep(AGAIN).await;
            }
            self.uploaded.send_modify(|uploaded| *uploaded += 1);
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", *self.address.borrow())
    }

    /// Returns the search's id, and the form of its file unless the file has arrived.
    async fn announce(&self, number: usize, size_bytes: usize) -> anyhow::Result<(Uuid, Option<Value>)> {
        let request = json!({ "name": format!("Search {number}"), "files": [{ "name": "x.ris", "size_bytes": size_bytes }] });
        let answer = self
            .client
            .post(self.url(&format!("/projects/{}/searches", self.project)))
            .header("content-type", "application/json")
            .header("idempotency-key", format!("load-{number}"))
            .body(request.to_string())
            .send()
            .await?;
        anyhow::ensure!(
            answer.status() == StatusCode::CREATED,
            "announcing was answered with {}",
            answer.status()
        );
        let announced: Value = serde_json::from_slice(&answer.bytes().await?)?;
        let form = announced["files"].get(0).map(|file| file["upload"]["fields"].clone());
        Ok((id(&announced["search_id"])?, form))
    }

    /// Returns `true` if the file is stored, now or by an earlier attempt.
    async fn upload(&self, fields: &Value, content: &str) -> bool {
        let mut form = Form::new();
        for (name, value) in fields.as_object().into_iter().flatten() {
            form = form.text(name.clone(), value.as_str().unwrap_or_default().to_owned());
        }
        let form = form.part("file", Part::text(content.to_owned()).file_name("file"));
        let answer = self.client.post(self.url("/uploads")).multipart(form).send().await;
        answer.is_ok_and(|answer| answer.status().is_success() || answer.status() == StatusCode::CONFLICT)
    }

    /// Waits until all announced searches have ended, or until no search ends any more.
    async fn until_ended(&self) -> anyhow::Result<SearchList> {
        let (mut max, mut moved) = (0, Instant::now());
        loop {
            let listed = self.list().await?;
            let ended = listed.values().filter(|search| !search["completed_at"].is_null()).count();
            if ended > max {
                (max, moved) = (ended, Instant::now());
            }
            if (ended == listed.len() && ended >= self.searches) || moved.elapsed() > STANDSTILL {
                return Ok(listed);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    async fn list(&self) -> anyhow::Result<SearchList> {
        let mut listed = SearchList::new();
        let mut after = String::new();
        loop {
            let url = self.url(&format!("/projects/{}/searches?limit={PAGE}{after}", self.project));
            let page: Value = serde_json::from_slice(&self.client.get(url).send().await?.bytes().await?)?;
            for search in page["items"].as_array().context("no list")? {
                listed.insert(id(&search["search_id"])?, search.clone());
            }
            match page["next"].as_str() {
                Some(next) => after = format!("&after={next}"),
                None => return Ok(listed),
            }
        }
    }
}

/// Counts lost searches and unexpected data from the stored studies.
async fn count(
    dir: &Path,
    searches: usize,
    ids: &BTreeSet<Uuid>,
    listed: &SearchList,
) -> anyhow::Result<(usize, usize)> {
    let store = Store::open_read_only(dir, Arc::new(SystemHost), embedded::Settings::new(&QUEUES))?;
    let mut lost = ids.iter().filter(|id| !listed.contains_key(id)).count();
    // One idempotency key must result in one search.
    let mut doubled = ids.len().saturating_sub(searches);
    for (search, shown) in listed {
        if !ids.contains(search) {
            doubled += 1;
            continue;
        }
        let file = FileId::from_uuid(id(&shown["files"][0]["file_id"])?);
        let studies = store.studies(SearchId::from_uuid(*search), file, 0, 10 * RECORDS).await?.len();
        doubled += studies.saturating_sub(RECORDS);
        lost += usize::from(shown["state"] != "Completed" || studies < RECORDS);
    }
    Ok((lost, doubled))
}

fn id(value: &Value) -> anyhow::Result<Uuid> {
    Ok(value.as_str().context("no id")?.parse()?)
}

fn records(search: usize) -> String {
    (0..RECORDS)
        .map(|record| {
            format!("TY  - JOUR\nTI  - Study {record} of search {search}\nAU  - One, Ann\nER  - \n\n")
        })
        .collect()
}
