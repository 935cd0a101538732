//! Worker processes that import searches on servers that fail: each study is stored once, no message is dead-lettered,
//! and nothing is left over.

mod killed;
mod unreliable;

use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use aws::queues::Queues;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use backend::{Backend, Config, SystemHost};
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::queues::QUEUES;
use imports::{JobState, ProjectId, SearchId};
use local::Copying;
use messages::Host;
use mongo::collections;
use mongodb::bson::{Document, doc};
use servers::mongo::{comes_true, eventually};
use servers::{Tested, unique};
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
/// How long no search may end, and how long what is left over may take. Not how long the whole may take, which depends on
/// the machine. A lease left behind holds a search up for 30 s. A message that failed waits twice as long each time, see
/// [`messages::Backoff::FAILURE`]: up to 640 s after seven deliveries, of which these faults make five fail now and then.
const PATIENCE: Duration = Duration::from_secs(660);

/// An environment in which what a killed worker held comes again soon.
pub(super) fn impatient(environment: &Environment) -> Environment {
    environment.but("SEARCH_IMPORT_VISIBILITY_SECONDS", "5").but("SEARCH_IMPORT_OUTBOX_STUCK_SECONDS", "10")
}

/// What this process works on: the same as its workers, without faults. It sends everything so often.
pub(super) async fn open(
    environment: &Environment,
    copies: u32,
) -> Result<Backend, Box<dyn std::error::Error + Send + Sync>> {
    let config = Config::from_pairs(environment.settings.clone())?;
    let mut backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let engine = &mut backend.ports.engine;
    engine.send = Arc::new(Copying { inner: Arc::clone(&engine.send), copies });
    Ok(backend)
}

/// Announces this many searches and uploads their files, some at a time.
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

/// How many searches have ended.
async fn ended(environment: &Environment) -> Result<usize, mongodb::error::Error> {
    let sagas = environment.database().await?.collection::<Document>(collections::SAGA);
    let count = sagas.count_documents(doc! { "CompletedAt": { "$exists": true } }).await?;
    Ok(usize::try_from(count).unwrap())
}

/// What was decided last of each search that has not ended.
async fn waiting(environment: &Environment) -> Result<String, mongodb::error::Error> {
    /// How many decisions of each.
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
        text += &format!("\n{saga}, of which was decided\n  {}", last.join("\n  "));
    }
    Ok(text)
}

/// Waits until this many searches have ended.
///
/// # Panics
/// Panics if none ends for a long time.
pub(super) async fn have_ended(environment: &Environment, searches: usize) -> Tested {
    let mut before = ended(environment).await?;
    while before < searches {
        let mut now = before;
        let more = async || {
            now = ended(environment).await?;
            Ok::<_, mongodb::error::Error>(now > before)
        };
        if !comes_true(PATIENCE, more).await? {
            let waiting = waiting(environment).await?;
            panic!("for {PATIENCE:?} no more than {before} of {searches} searches have ended; {waiting}");
        }
        before = now;
    }
    Ok(())
}

/// A worker in a process of its own. It is killed without warning when this value ends.
pub(super) struct Worker(Child);

impl Worker {
    /// Starts one that sends everything so often.
    pub(super) fn start(program: &Program, copies: u32) -> Self {
        let log = program.folder().join(unique("worker"));
        Self(program.start_logging(&["serve", "--duplicate", &copies.to_string()], &log))
    }

    /// Asks it to stop, and waits for it: whatever is under way is finished, and the rest stays in the queues.
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

/// Nothing is lost, doubled or stuck, and no more than so many commands were carried out.
pub(super) async fn check(
    backend: &Backend,
    environment: &Environment,
    searches: &[SearchId],
    commands: usize,
) -> Tested {
    check_documents(backend, environment, searches).await?;
    check_ledger(environment, searches.len(), commands).await?;
    check_dead_letters(environment).await
}

/// Each file was read by one command, each study is stored once, no search is unfinished, and no outbox has an entry.
async fn check_documents(backend: &Backend, environment: &Environment, searches: &[SearchId]) -> Tested {
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
        eventually("every outbox is empty", PATIENCE, async || {
            Ok::<_, mongodb::error::Error>(count(name, doc! { "Outbox.0": { "$exists": true } }).await? == 0)
        })
        .await?;
    }
    Ok(())
}

/// No more than so many commands were carried out, and nobody is inside a partition.
async fn check_ledger(environment: &Environment, searches: usize, commands: usize) -> Tested {
    let client = aws_sdk_dynamodb::Client::new(&aws::config().await);
    let items = async |setting: &str| {
        let table = &environment.settings[setting];
        let pages = client.scan().table_name(table).consistent_read(true).into_paginator().items();
        pages.send().collect::<Result<Vec<_>, _>>().await
    };
    // A command whose note could not be made was carried out as well.
    let noted = items(aws::ledger::PROCESSED_TABLE).await?.len();
    assert!(noted <= commands, "{noted} commands carried out");
    eventually("nobody has a lease", PATIENCE, async || {
        let items = items(aws::ledger::LEDGER_TABLE).await?;
        assert_eq!(items.len(), searches);
        // That of a worker which was killed while it looked at a duplicate has run out, and nobody needs it any more.
        let now = SystemHost.now().as_nanosecond();
        let is_free = |item: &Item| lease_end(item).is_none_or(|end| end <= now);
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(items.iter().all(is_free))
    })
    .await
}

type Item = std::collections::HashMap<String, AttributeValue>;

/// When the lease of a partition ends, in nanoseconds since 1970.
fn lease_end(item: &Item) -> Option<i128> {
    item.get("lease_until").map(|until| until.as_n().unwrap().parse().unwrap())
}

/// Nothing was given up.
async fn check_dead_letters(environment: &Environment) -> Tested {
    let client = aws_sdk_sqs::Client::new(&aws::config().await);
    for queue in QUEUES.iter().filter_map(|spec| spec.dead_letters.as_ref()) {
        let url = &environment.settings[&Queues::setting(queue)];
        let request = client.get_queue_attributes().queue_url(url).attribute_names(QueueAttributeName::All);
        let attributes = request.send().await?.attributes.unwrap_or_default();
        let waiting = &attributes[&QueueAttributeName::ApproximateNumberOfMessages];
        assert_eq!(waiting, "0", "queue {}", queue.name());
    }
    Ok(())
}
