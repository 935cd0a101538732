//! Two worker processes that are killed, on servers that fail, with every message several times.

use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use aws::queues::Queues;
use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_sqs::types::QueueAttributeName;
use backend::{Backend, Config, SystemHost};
use functions::start_upload::{NewFile, NewSearch, StartUpload};
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::queues::QUEUES;
use imports::{JobState, ProjectId, SearchId};
use local::Copying;
use messages::Host;
use mongo::collections;
use mongodb::bson::{Document, doc};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use servers::Tested;
use servers::amazon::Service;
use servers::mongo::{FailPoint, OwnServer, eventually};
use servers::net::Throttling;

use super::{Environment, upload};
use crate::program::{Program, bundled};

/// How many searches are imported.
const SEARCHES: usize = 200;
/// How often everything is sent.
const COPIES: u32 = 3;
/// The file of each search, and its records.
const FILE: &str = "psycinfo.ris";
const RECORDS: u64 = 3;
/// After how many more completed searches the next thing goes wrong, at most.
const BETWEEN: usize = 15;
/// How long the whole may take.
const PATIENCE: Duration = Duration::from_secs(400);
/// The workers' name in the database, which fail points are for.
const WORKERS: &str = "workers";

/// The fault test in one picture: two workers in processes of their own receive what this process sends, three times
/// each. Whenever some more searches are complete, something goes wrong, in turn: a worker is killed, the database
/// drops connections, meets write conflicts, cannot confirm writes, or steps down. All the while the ledger's table
/// refuses every tenth request. What a killed worker had received comes again after its visibility timeout.
#[tokio::test(flavor = "multi_thread")]
async fn two_workers_import_200_searches_once_whatever_fails() -> Tested {
    Environment::with(async |environment| {
        let mongod = OwnServer::replica_set(&["ttlMonitorSleepSecs=1"]).await?;
        let uri = mongod.uri().replace("directConnection=true", "replicaSet=rs0");
        let environment = environment.but("MONGODB_URI", &uri);
        let overloaded = Throttling::before(&Service::DynamoDb.address(), |request| request % 10 == 9).await;
        let program = environment
            .but("MONGODB_URI", &format!("{uri}&appName={WORKERS}"))
            .but(Service::DynamoDb.variable(), &overloaded.address)
            .but("SEARCH_IMPORT_VISIBILITY_SECONDS", "5")
            .but("SEARCH_IMPORT_OUTBOX_STUCK_SECONDS", "10")
            .program();
        let backend = open(&environment).await?;
        let searches = announce(&backend, &environment).await?;
        let mut faults = Faults { mongod: &mongod, random: StdRng::seed_from_u64(4), next: 0, kills: 0 };
        let mut workers = Workers::start(&program, 2);
        let mut over = 0;
        let mut due = faults.random.random_range(1..BETWEEN);
        eventually("all searches have ended", PATIENCE, async || {
            over = ended(&environment).await?;
            if over >= due && over < SEARCHES {
                faults.strike(&mut workers).await?;
                due = over + faults.random.random_range(1..BETWEEN);
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(over == SEARCHES)
        })
        .await?;
        println!(
            "{} faults, of them {} kills; {} requests throttled",
            faults.next,
            faults.kills,
            overloaded.throttled()
        );
        assert!(faults.kills >= 3 && faults.next >= 12 && overloaded.throttled() > 100);
        check_documents(&backend, &environment, &searches).await?;
        check_ledger(&environment, &searches).await?;
        check_dead_letters(&environment).await?;
        // Whatever is still under way is finished, and the rest stays in the queues.
        for code in workers.stop() {
            assert_eq!(code, Some(0));
        }
        Ok(())
    })
    .await
}

/// What this process works on: the same, without faults.
async fn open(environment: &Environment) -> Result<Backend, Box<dyn std::error::Error + Send + Sync>> {
    let config = Config::from_pairs(environment.settings.clone())?;
    let mut backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let engine = &mut backend.ports.engine;
    engine.send = Arc::new(Copying { inner: Arc::clone(&engine.send), copies: COPIES });
    Ok(backend)
}

/// Announces the searches and uploads their files, some at a time.
async fn announce(
    backend: &Backend,
    environment: &Environment,
) -> Result<Vec<SearchId>, Box<dyn std::error::Error + Send + Sync>> {
    let start = StartUpload::over(&backend.ports)?;
    let content = std::fs::read(bundled(FILE))?;
    let one = async |number: usize| {
        let file = NewFile { name: FILE.into(), size_bytes: content.len() as u64 };
        let request = NewSearch { name: format!("search {number}"), files: vec![file] };
        let announced = start.create(ProjectId::from_uuid(SystemHost.fresh_id()), &request).await?;
        upload(environment, &announced.files[0].upload, &content).await?;
        Ok(announced.search_id)
    };
    stream::iter(0..SEARCHES).map(one).buffer_unordered(8).try_collect().await
}

/// How many searches have ended.
async fn ended(environment: &Environment) -> Result<usize, mongodb::error::Error> {
    let sagas = environment.database().await?.collection::<Document>(collections::SAGA);
    let count = sagas.count_documents(doc! { "CompletedAt": { "$exists": true } }).await?;
    Ok(usize::try_from(count).unwrap())
}

/// The worker processes.
struct Workers<'a> {
    program: &'a Program,
    children: Vec<Child>,
    logs: usize,
}

impl<'a> Workers<'a> {
    fn start(program: &'a Program, count: usize) -> Self {
        let mut workers = Self { program, children: Vec::new(), logs: 0 };
        for _ in 0..count {
            let child = workers.start_one();
            workers.children.push(child);
        }
        workers
    }

    fn start_one(&mut self) -> Child {
        self.logs += 1;
        let log: PathBuf = self.program.folder().join(format!("worker-{}.log", self.logs));
        self.program.start_logging(&["serve", "--duplicate", &COPIES.to_string()], &log)
    }

    /// Kills one without warning, and starts another in its place.
    fn replace(&mut self, place: usize) {
        self.children[place].kill().unwrap();
        self.children[place].wait().unwrap();
        self.children[place] = self.start_one();
    }

    /// Asks all to stop, and returns how they ended.
    fn stop(&mut self) -> Vec<Option<i32>> {
        for child in &self.children {
            let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
            assert!(asked.success());
        }
        self.children.iter_mut().map(|child| child.wait().unwrap().code()).collect()
    }
}

impl Drop for Workers<'_> {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What goes wrong.
struct Faults<'a> {
    mongod: &'a OwnServer,
    random: StdRng,
    next: usize,
    kills: usize,
}

impl Faults<'_> {
    async fn strike(&mut self, workers: &mut Workers<'_>) -> Tested {
        let times = self.random.random_range(1..6);
        match self.next % 6 {
            0 | 3 => {
                let place = self.random.random_range(0..workers.children.len());
                workers.replace(place);
                self.kills += 1;
            }
            1 => self.fail(times, doc! { "closeConnection": true }).await?,
            2 => self.fail(times, doc! { "errorCode": 112 }).await?,
            4 => {
                let unconfirmed = doc! { "code": 64, "errmsg": "waiting for replication timed out" };
                self.fail(times, doc! { "writeConcernError": unconfirmed }).await?;
            }
            _ => {
                let step_down = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 0, "force": true };
                self.mongod.admin().await?.run_command(step_down).await?;
                self.mongod.wait_for_primary().await?;
            }
        }
        self.next += 1;
        Ok(())
    }

    /// Lets the next writes of the workers fail. It stays on until they have come.
    async fn fail(&self, times: i32, how: Document) -> Tested {
        let client = self.mongod.admin().await?.client().clone();
        let point =
            FailPoint::set(&client, WORKERS, times, &["update", "findAndModify", "insert"], how).await?;
        point.leave().await?;
        Ok(())
    }
}

/// Each file was read by one command, each study is stored once, no search is unfinished, and no outbox has an entry.
async fn check_documents(backend: &Backend, environment: &Environment, searches: &[SearchId]) -> Tested {
    let (jobs, library) = (backend.ports.jobs()?, backend.ports.library()?);
    assert_eq!(jobs.unfinished().await?, []);
    for search in searches {
        let job = jobs.job(*search).await?.unwrap();
        assert_eq!((job.state, job.studies(), job.files.len()), (JobState::Completed, RECORDS, 1));
        let studies = library.read_studies.studies(*search, job.files[0].file_id, 0, 100).await?;
        let records: Vec<u64> = studies.iter().map(|study| study.record).collect();
        assert_eq!(records, (1..=RECORDS).collect::<Vec<_>>(), "search {search}");
    }
    let database = environment.database().await?;
    let count =
        async |name: &str, filter| database.collection::<Document>(name).count_documents(filter).await;
    assert_eq!(count(collections::STUDY, doc! {}).await?, RECORDS * SEARCHES as u64);
    assert_eq!(count(collections::SAGA, doc! {}).await?, SEARCHES as u64);
    for name in [collections::SAGA, collections::SESSION] {
        eventually("every outbox is empty", PATIENCE, async || {
            Ok::<_, mongodb::error::Error>(count(name, doc! { "Outbox.0": { "$exists": true } }).await? == 0)
        })
        .await?;
    }
    Ok(())
}

/// One command for each file was carried out, and nobody is inside a partition.
async fn check_ledger(environment: &Environment, searches: &[SearchId]) -> Tested {
    let client = aws_sdk_dynamodb::Client::new(&aws::config().await);
    let items = async |setting: &str| {
        let table = &environment.settings[setting];
        let pages = client.scan().table_name(table).consistent_read(true).into_paginator().items();
        pages.send().collect::<Result<Vec<_>, _>>().await
    };
    assert_eq!(items(aws::ledger::PROCESSED_TABLE).await?.len(), searches.len(), "commands carried out");
    eventually("nobody has a lease", PATIENCE, async || {
        let items = items(aws::ledger::LEDGER_TABLE).await?;
        assert_eq!(items.len(), searches.len());
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
