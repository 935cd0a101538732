//! Worker processes that import searches on failing servers: each study is stored once, no message is dead-lettered,
//! and no work is left.

mod killed;
mod unreliable;

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use aws::ledger::PROCESSED_KEY;
use aws::queues::Queues;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use backend::{Backend, Config, SystemHost};
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::queues::QUEUES;
use imports::{JobState, ProjectId, SearchId};
use local::DuplicatingSender;
use messages::Host;
use mongo::collections;
use mongodb::bson::{Document, doc};
use servers::mongo::{eventually, holds_within};
use servers::{TestResult, unique};
use service::{NewFile, NewSearch, SearchService};
use testing::proof;

use super::{Environment, upload};
use crate::program::{Program, bundled};

/// Returns the number of searches to import.
pub(super) fn searches_to_import() -> usize {
    proof::size(20, 200)
}

/// The file of each search, and its records.
const FILE: &str = "psycinfo.ris";
const RECORDS: u64 = 3;
/// The maximum time without any search ending, and for the remaining work. This limit does not apply to the total time,
/// which depends on the machine. A lease of a killed worker delays a search by 30 s. Each failed delivery doubles a
/// message's delay ([`messages::Backoff::FAILURE`]), up to 640 s after seven deliveries. Up to five deliveries may fail
/// here.
const TIMEOUT: Duration = Duration::from_secs(660);

/// Returns an environment with short visibility timeouts, so that messages of a killed worker are redelivered soon.
pub(super) fn impatient(environment: &Environment) -> Environment {
    environment.but("SEARCH_IMPORT_VISIBILITY_SECONDS", "5").but("SEARCH_IMPORT_OUTBOX_STUCK_SECONDS", "10")
}

/// Returns the backend of this process, which is the backend of the workers without faults. It sends the given number
/// of copies.
pub(super) async fn open(
    environment: &Environment,
    copies: u32,
) -> Result<Backend, Box<dyn std::error::Error + Send + Sync>> {
    let config = Config::from_pairs(imports::SYSTEM, environment.settings.clone())?;
    let mut backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let engine = &mut backend.ports.engine;
    engine.send = Arc::new(DuplicatingSender { inner: Arc::clone(&engine.send), copies });
    Ok(backend)
}

/// Announces this many searches and uploads their files, several at a time.
pub(super) async fn announce(
    backend: &Backend,
    environment: &Environment,
    count: usize,
) -> Result<Vec<SearchId>, Box<dyn std::error::Error + Send + Sync>> {
    let start = SearchService::over(&backend.ports, &functions::SYSTEM)?;
    let content = std::fs::read(bundled(FILE))?;
    let one = async |number: usize| {
        let file = NewFile { name: FILE.into(), size_bytes: content.len() as u64 };
        let request = NewSearch { name: format!("search {number}"), files: vec![file] };
        let announced = start.create(ProjectId::from_uuid(SystemHost.fresh_id()), &request).await?;
        upload(environment, &announced.files[0].upload, &content).await?;
        Ok(announced.search_id)
    };
    stream::iter(0..count).map(one).buffer_unordered(8).try_collect().await
}

/// Returns the number of searches that have ended.
async fn ended(environment: &Environment) -> Result<usize, mongodb::error::Error> {
    let sagas = environment.database().await?.collection::<Document>(collections::SAGA);
    let count = sagas.count_documents(doc! { "CompletedAt": { "$exists": true } }).await?;
    Ok(usize::try_from(count).unwrap())
}

/// Describes the last decisions about each search that has not ended.
async fn waiting(environment: &Environment) -> Result<String, mongodb::error::Error> {
    /// The number of decisions for each search.
    const LAST: i64 = 20;
    let database = environment.database().await?;
    let sagas = database.collection::<Document>(collections::SAGA);
    let sagas: Vec<Document> =
        sagas.find(doc! { "CompletedAt": { "$exists": false } }).await?.try_collect().await?;
    let history = database.collection::<Document>(collections::HISTORY);
    let mut text = format!("it is {}, and these have not", SystemHost.now());
    for saga in sagas {
        let of_it = history.find(doc! { "Partition": saga.get("_id") });
        let last: Vec<Document> = of_it.sort(doc! { "At": -1 }).limit(LAST).await?.try_collect().await?;
        let last: Vec<String> = last.iter().rev().map(Document::to_string).collect();
        text += &format!("\n{saga}, with these decisions\n  {}", last.join("\n  "));
    }
    Ok(text)
}

/// Waits until this many searches have ended.
///
/// # Panics
/// Panics if none ends for a long time.
pub(super) async fn have_ended(environment: &Environment, searches: usize) -> TestResult {
    let mut before = ended(environment).await?;
    while before < searches {
        let mut now = before;
        let more = async || {
            now = ended(environment).await?;
            Ok::<_, mongodb::error::Error>(now > before)
        };
        if !holds_within(TIMEOUT, more).await? {
            let waiting = waiting(environment).await?;
            panic!("for {TIMEOUT:?} no more than {before} of {searches} searches have ended; {waiting}");
        }
        before = now;
    }
    Ok(())
}

/// A worker process, which is killed when this value is dropped.
pub(super) struct Worker(Child);

impl Worker {
    /// Starts a worker that sends the given number of copies of each message.
    pub(super) fn start(program: &Program, copies: u32) -> Self {
        let log = program.folder().join(unique("worker"));
        Self(program.start_logging(&["serve", "--duplicate", &copies.to_string()], &log))
    }

    /// Stops the worker and waits until it has finished its work in progress. Other messages stay in the queues.
    pub(super) fn finish(mut self) {
        let asked = Command::new("kill").args(["-TERM", &self.0.id().to_string()]).status().unwrap();
        assert!(asked.success());
        assert_eq!(self.0.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Checks that nothing is lost, duplicated or stuck, and that at most this many commands were executed.
pub(super) async fn check(
    backend: &Backend,
    environment: &Environment,
    searches: &[SearchId],
    commands: usize,
) -> TestResult {
    check_documents(backend, environment, searches).await?;
    check_ledger(environment, searches.len(), commands).await?;
    check_dead_letters(environment).await
}

/// Checks that one command read each file, each study is stored once, all searches have ended, and all outboxes are
/// empty.
async fn check_documents(backend: &Backend, environment: &Environment, searches: &[SearchId]) -> TestResult {
    let (jobs, study_stores) = (backend.ports.jobs()?, backend.ports.study_stores()?);
    assert_eq!(jobs.unfinished().await?, []);
    for search in searches {
        let job = jobs.job(*search).await?.unwrap();
        let found = (job.state, job.studies(), job.files.len());
        assert_eq!(found, (JobState::Completed, RECORDS, 1), "search {search}: {:?}", job.files);
        let studies = study_stores.read_studies.studies(*search, job.files[0].file_id, 0, 100).await?;
        let records: Vec<u64> = studies.iter().map(|study| study.record).collect();
        assert_eq!(records, (1..=RECORDS).collect::<Vec<_>>(), "search {search}");
    }
    let database = environment.database().await?;
    let count =
        async |name: &str, filter| database.collection::<Document>(name).count_documents(filter).await;
    assert_eq!(count(collections::STUDY, doc! {}).await?, RECORDS * searches.len() as u64);
    assert_eq!(count(collections::SAGA, doc! {}).await?, searches.len() as u64);
    for name in [collections::SAGA, collections::SESSION] {
        eventually("every outbox is empty", TIMEOUT, async || {
            Ok::<_, mongodb::error::Error>(count(name, doc! { "Outbox.0": { "$exists": true } }).await? == 0)
        })
        .await?;
    }
    Ok(())
}

/// Checks that at most this many commands were executed, and that no partition is claimed.
async fn check_ledger(environment: &Environment, searches: usize, commands: usize) -> TestResult {
    let client = aws_sdk_dynamodb::Client::new(&aws::config().await);
    let items = async |setting: &str| {
        let table = &environment.settings[setting];
        let pages = client.scan().table_name(table).consistent_read(true).into_paginator().items();
        pages.send().collect::<Result<Vec<_>, _>>().await
    };
    // A command whose decision could not be stored was executed as well. A command that continued later also has an item
    // for each record of its queue.
    let is_command =
        |item: &&Item| !item[PROCESSED_KEY].as_s().unwrap().contains(dedup::filter::RESENT_RECORD);
    let noted = items("SEARCH_IMPORT_PROCESSED_TABLE").await?.iter().filter(is_command).count();
    assert!(noted <= commands, "{noted} commands executed");
    eventually("nobody has a lease", TIMEOUT, async || {
        let items = items("SEARCH_IMPORT_LEDGER_TABLE").await?;
        assert_eq!(items.len(), searches);
        // A worker that was killed while it handled a duplicate leaves an expired lease, which does no damage.
        let now = SystemHost.now().as_nanosecond();
        let is_free = |item: &Item| lease_end(item).is_none_or(|end| end <= now);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(items.iter().all(is_free))
    })
    .await
}

type Item = std::collections::HashMap<String, AttributeValue>;

/// Returns the time at which the lease of a partition expires, in nanoseconds since 1970.
fn lease_end(item: &Item) -> Option<i128> {
    item.get("lease_until").map(|until| until.as_n().unwrap().parse().unwrap())
}

/// Checks that no message was dead-lettered.
async fn check_dead_letters(environment: &Environment) -> TestResult {
    let client = aws_sdk_sqs::Client::new(&aws::config().await);
    for queue in QUEUES.iter().filter_map(|spec| spec.dead_letters.as_ref()) {
        let url = &environment.settings[&Queues::setting(imports::SYSTEM, queue)];
        let request = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All);
        let attributes = request.send().await?.attributes.unwrap_or_default();
        let waiting = &attributes[&QueueAttributeName::ApproximateNumberOfMessages];
        assert_eq!(waiting, "0", "queue {}", queue.name());
    }
    Ok(())
}
