//! The functions on real servers, with a clock that a test controls and a database that it can disconnect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws::queues::{Queues, Sqs};
use backend::{Backend, Config};
use contracts::ManualHost;
use functions::{dispatch_outbox, report_faults};
use futures::future::join3;
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::queues::{CONTROL, PARSE, PARSE_DEAD, SAGA, UPLOADS};
use imports::{ProjectId, SearchId};
use jiff::{SignedDuration, Timestamp};
use messages::{
    Consumer, DecisionRecord, DecisionSink, Delivery, Host, Queue, QueueSpec, ReceiveMessages,
    ReceivedMessage, StoreError, Verdict,
};
use outbox::DispatchOutbox;
use saga::failures::{Failure, FailureStatus, Selection};
use saga::{Failures, SweepHeartbeat};
use servers::TestResult;
use servers::mongo::{Proxy, eventually, with_option};
use service::health::Health;
use service::{AnnouncedSearch, NewFile, NewSearch, SearchService};

use super::time::InjectedTime;
use super::{Environment, upload};
use crate::program::bundled;

/// An error outside a test's own assertions.
pub(super) type Unexpected = Box<dyn std::error::Error + Send + Sync>;

/// The queues with a consumer, in the order in which a search uses them.
const CONSUMED: [Queue; 5] = [UPLOADS, CONTROL, SAGA, PARSE, PARSE_DEAD];
/// The number of batches that a function handles concurrently, and of searches that are announced concurrently.
const CONCURRENCY: usize = 16;
/// The server selection timeout, which is short so that an hour without a server passes quickly. The default is five
/// seconds.
const SELECTION: &str = "serverSelectionTimeoutMS=20";
/// The interval of the schedule.
pub(super) const MINUTE: Duration = Duration::from_secs(60);
/// The maximum time to wait for an event.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The file of each search.
const FILE: &str = "psycinfo.ris";

/// The decisions about messages.
#[derive(Default)]
pub(super) struct Log(Mutex<Vec<DecisionRecord>>);

impl DecisionSink for Log {
    fn observe(&self, observation: DecisionRecord) {
        self.0.lock().unwrap().push(observation);
    }
}

impl Log {
    /// Returns the searches for which messages of this name were handled, once for each message.
    pub(super) fn handled(&self, message: &str) -> Vec<SearchId> {
        let log = self.0.lock().unwrap();
        let handled = log
            .iter()
            .filter(|observation| observation.message == message && observation.verdict == Verdict::Handled);
        handled.filter_map(|observation| observation.partition).collect()
    }
}

/// All functions with the ports of one process.
pub(super) struct Deployment {
    pub(super) host: Arc<ManualHost>,
    pub(super) log: Arc<Log>,
    pub(super) backend: Backend,
    /// The work of `report-faults` on schedule, and of operators over the API.
    pub(super) failures: Failures,
    pub(super) mongo: Proxy,
    environment: Environment,
    queues: Arc<InjectedTime>,
    consumers: BTreeMap<Queue, Arc<dyn Consumer>>,
    sweeper: DispatchOutbox,
    sweeps: SweepHeartbeat,
}

impl Deployment {
    /// Creates a deployment in an environment with these queues. Its clock is a few hours behind, so that all its times
    /// are in the past for real clocks.
    pub(super) async fn open(
        environment: &Environment,
        queues: &'static [QueueSpec],
    ) -> Result<Self, Unexpected> {
        let mongo = Proxy::before(servers::mongo::host().await?).await?;
        let uri = with_option(&mongo.uri(), SELECTION);
        // Writers of the history wait by the clock of the test, on which every wait ends immediately.
        let environment = environment.but("MONGODB_URI", &uri).but("SEARCH_IMPORT_HISTORY_SECONDS", "0");
        let now = Timestamp::now().checked_sub(SignedDuration::from_hours(24))?;
        let host = Arc::new(ManualHost::new(now, 1));
        let log = Arc::new(Log::default());
        let mut opened = None;
        eventually("MongoDB is found", TIMEOUT, async || {
            let config = Config::from_pairs(imports::SYSTEM, environment.settings.clone())?;
            opened = backend::open(config, host.clone(), log.clone()).await.ok();
            Ok::<_, Unexpected>(opened.is_some())
        })
        .await?;
        let mut backend = opened.unwrap();
        let client = aws::queues::client(&aws::config().await, TIMEOUT);
        let urls = Queues::from_pairs(imports::SYSTEM, environment.settings.clone());
        let sqs = Sqs::new(client, urls, queues, host.clone()).waiting(Duration::ZERO);
        let queues = Arc::new(InjectedTime::new(sqs, queues, host.clone()));
        backend.ports.engine.send = queues.clone();
        backend.ports.engine.receive = queues.clone();
        let behind = functions::SYSTEM.functions.iter().filter_map(|function| {
            let queue = function.source.queue()?.clone();
            Some((queue, function.build?(&backend.ports).unwrap()))
        });
        let (consumers, sweeper) = (behind.collect(), dispatch_outbox::over(&backend.ports)?);
        let engine = &backend.ports.engine;
        let failures = engine.failures(report_faults::NAME, &functions::SYSTEM)?;
        let sweeps = engine.sweeps()?;
        Ok(Self { host, log, backend, failures, mongo, environment, queues, consumers, sweeper, sweeps })
    }

    /// Announces searches of one file each.
    pub(super) async fn announce(&self, searches: usize) -> Result<Vec<AnnouncedSearch>, Unexpected> {
        let one = |number| self.announce_one(format!("search {number}"), 1);
        stream::iter(0..searches).map(one).buffer_unordered(CONCURRENCY).try_collect().await
    }

    /// Announces a search with this many files in a new project.
    pub(super) async fn announce_one(
        &self,
        name: String,
        files: usize,
    ) -> Result<AnnouncedSearch, Unexpected> {
        let size_bytes = std::fs::metadata(bundled(FILE))?.len();
        let file = |number| NewFile { name: format!("{number}-{FILE}"), size_bytes };
        let request = NewSearch { name, files: (0..files).map(file).collect() };
        let project = ProjectId::from_uuid(self.host.fresh_id());
        Ok(SearchService::over(&self.backend.ports, &functions::SYSTEM)?.create(project, &request).await?)
    }

    /// Uploads the files of searches, and delivers each notification.
    pub(super) async fn upload(&self, searches: &[AnnouncedSearch]) -> Result<(), Unexpected> {
        let one = |search| self.upload_file(search, 0);
        stream::iter(searches).map(one).buffer_unordered(CONCURRENCY).try_collect::<()>().await?;
        let mut notified = 0;
        eventually("all uploads are notified", TIMEOUT, async || {
            notified += self.deliver(&UPLOADS).await?;
            Ok(notified >= searches.len())
        })
        .await
    }

    /// Uploads a file of a search, and leaves its notification in the queue.
    pub(super) async fn upload_file(&self, search: &AnnouncedSearch, file: usize) -> TestResult {
        upload(&self.environment, &search.files[file].upload, &std::fs::read(bundled(FILE))?).await
    }

    /// Advances the clock minute by minute, runs the schedule and delivers due messages. Returns the number of failed
    /// scheduled invocations.
    pub(super) async fn pass(&self, minutes: u32) -> Result<u32, Unexpected> {
        let mut failed = 0;
        for _ in 0..minutes {
            self.host.advance(MINUTE);
            let deadline = self.host.now().checked_add(SignedDuration::from_secs(25))?;
            let (swept, gathered, delivered) =
                join3(self.sweep(), self.failures.run(Some(deadline)), self.run()).await;
            delivered?;
            failed += u32::from(swept.is_err()) + u32::from(gathered.is_err());
        }
        Ok(failed)
    }

    /// Runs `dispatch-outbox` as on schedule.
    pub(super) async fn sweep(&self) -> Result<(), StoreError> {
        self.sweeper.sweep(None).await?;
        self.sweeps.note().await
    }

    /// Delivers messages until no queue has a visible message.
    pub(super) async fn run(&self) -> Result<(), Unexpected> {
        loop {
            let mut delivered = 0;
            for queue in &CONSUMED {
                delivered += self.deliver(queue).await?;
            }
            if delivered == 0 {
                return Ok(());
            }
        }
    }

    /// Delivers the visible messages of a queue.
    pub(super) async fn deliver(&self, queue: &Queue) -> Result<usize, Unexpected> {
        let spec = QueueSpec::of(functions::SYSTEM.queues, queue).unwrap();
        let batches = stream::try_unfold((), async |()| {
            let batch = self.queues.receive(queue, spec.batch_size, spec.visibility).await?;
            Ok::<_, StoreError>((!batch.is_empty()).then_some((batch, ())))
        });
        let handled = batches.map_ok(|batch| self.handle(queue, batch)).try_buffer_unordered(CONCURRENCY);
        Ok(handled.try_fold(0, async |sum, handled| Ok(sum + handled)).await?)
    }

    /// Delivers one batch. Returns the number of its messages.
    pub(super) async fn deliver_one(&self, queue: &Queue) -> Result<usize, Unexpected> {
        let spec = QueueSpec::of(functions::SYSTEM.queues, queue).unwrap();
        let batch = self.queues.receive(queue, spec.batch_size, spec.visibility).await?;
        Ok(self.handle(queue, batch).await?)
    }

    async fn handle(&self, queue: &Queue, batch: Vec<ReceivedMessage>) -> Result<usize, StoreError> {
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let said = self.consumers[queue].consume(&deliveries, None).await;
        assert_eq!(said.len(), batch.len(), "each delivery is answered");
        for (received, said) in batch.iter().zip(&said) {
            self.queues.answer(queue, &received.receipt, said).await?;
        }
        Ok(batch.len())
    }

    /// Waits until the database responds.
    pub(super) async fn found(&self) -> Result<(), Unexpected> {
        let health = Health::over(&self.backend.ports, &functions::SYSTEM)?;
        eventually("MongoDB is found again", TIMEOUT, async || Ok(health.reach().await.ok)).await
    }

    /// Returns the number of messages in a queue, including hidden ones.
    pub(super) async fn depth(&self, queue: &Queue) -> Result<u64, Unexpected> {
        let mut depths = self.backend.ports.engine.inspect.depths().await;
        Ok(depths.remove(queue).unwrap()?.total())
    }

    /// Returns the failures in this state.
    pub(super) async fn all(&self, standing: FailureStatus) -> Result<Vec<Failure>, StoreError> {
        self.failures.store.select(&Selection::of(standing), None, 10_000).await
    }
}
