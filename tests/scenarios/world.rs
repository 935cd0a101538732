//! A complete installation in a temporary folder, in which the test controls every delivery.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend::{Backend, Config};
use contracts::ManualHost;
use embedded::{Call, Intercept, Phase, Settings, Store};
use functions::{dispatch_outbox, report_faults};
use imports::queues::{CONTROL, PARSE, PARSE_DEAD, QUEUES, SAGA, UPLOADS};
use imports::{
    Job, Jobs, Ports, PresignUpload, PresignedPost, ProjectId, ReadStudies, SearchId, Study, UploadGrant,
    UploadMetadata,
};
use messages::{
    Body, Consumer, Delivery, Disposition, Host, Message, MessageId, Outgoing, Queue, QueueSpec,
    ReceiveMessages, ReceivedMessage, SendError, SendMessages,
};
use outbox::DispatchOutbox;
use saga::{Document, Engine, Failures, ReadDocuments};
use service::{AnnouncedSearch, NewFile, NewSearch, SearchService};
use tempfile::TempDir;
use tokio::sync::Notify;

/// Two records, as a reference manager would write them.
pub(crate) const TWO_RECORDS: &str = "TY  - JOUR\nTI  - First\nAU  - One, Ann\nER  - \n\n\
                                      TY  - JOUR\nTI  - Second\nAU  - Two, Bob\nER  - \n";

/// The visibility timeout of a received message.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(60);

/// The queues that [`World::run`] delivers, in this order.
const PUMPED: [Queue; 5] = [UPLOADS, CONTROL, SAGA, PARSE, PARSE_DEAD];

/// The queues with a lower receive limit for parse commands.
static FEW_PARSES: LazyLock<Vec<QueueSpec>> = LazyLock::new(|| {
    let spec = |spec: &QueueSpec| match spec.queue == PARSE {
        true => QueueSpec { receive_limit: Some(3), ..spec.clone() },
        false => spec.clone(),
    };
    QUEUES.iter().map(spec).collect()
});

/// The functions on the ports of one process.
#[derive(Clone)]
pub(crate) struct Functions {
    pub(crate) start_upload: SearchService,
    pub(crate) dispatch_outbox: DispatchOutbox,
    pub(crate) failures: Failures,
    /// The consumer of each queue.
    behind: BTreeMap<Queue, Arc<dyn Consumer>>,
}

impl Functions {
    fn over(ports: &Ports) -> Self {
        let behind = functions::SYSTEM.functions.iter().filter_map(|function| {
            let queue = function.source.queue()?.clone();
            let engine = ports.engine.clone().declared_by(function, functions::SYSTEM.queues);
            let engine = without_time_limit(engine);
            Some((queue, function.build?(&Ports { engine, ..ports.clone() }).unwrap()))
        });
        Self {
            start_upload: SearchService::over(ports, &functions::SYSTEM).unwrap(),
            dispatch_outbox: dispatch_outbox::over(ports).unwrap(),
            failures: ports.engine.failures(report_faults::NAME, &functions::SYSTEM).unwrap(),
            behind: behind.collect(),
        }
    }

    /// Returns the consumer of a queue.
    pub(crate) fn behind(&self, queue: &Queue) -> &dyn Consumer {
        self.behind.get(queue).unwrap_or_else(|| panic!("no function is behind {queue}")).as_ref()
    }
}

/// Returns the engine without a time limit of handlers. Every wait passes at once with the clocks of these tests.
pub(crate) fn without_time_limit(engine: Engine) -> Engine {
    Engine { overtime: None, ..engine }
}

pub(crate) struct World {
    /// The folder, which is deleted with the world.
    _dir: TempDir,
    pub(crate) host: Arc<ManualHost>,
    pub(crate) backend: Backend,
    pub(crate) store: Arc<Store>,
    pub(crate) functions: Functions,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Config::default())
    }

    pub(crate) fn with(config: Config) -> Self {
        Self::taking_over(TempDir::new().unwrap(), ManualHost::seeded(1), config)
    }

    /// Opens a world in a folder that may contain data.
    pub(crate) fn taking_over(dir: TempDir, host: ManualHost, config: Config) -> Self {
        let host = Arc::new(host);
        let config = Config { data_dir: dir.path().to_owned(), ..config };
        let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::new(&FEW_PARSES)).unwrap());
        let mut backend = backend::embedded(&store, host.clone(), store.clone(), config);
        backend.ports.engine = without_time_limit(backend.ports.engine);
        let functions = Functions::over(&backend.ports);
        Self { _dir: dir, host, backend, store, functions }
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the data directory of the installation.
    pub(crate) fn folder(&self) -> &Path {
        &self.backend.config.data_dir
    }

    /// Stops the programs, changes their data directory, and starts them again.
    pub(crate) fn restarted(self, change: impl FnOnce(&Path)) -> Self {
        let Self { _dir: dir, host, backend, store, functions } = self;
        let (now, config) = (host.now(), backend.config.clone());
        drop((backend, store, functions));
        change(dir.path());
        // The seed differs, so that no id is drawn twice.
        Self::taking_over(dir, ManualHost::new(now, 2), config)
    }

    /// Returns the document of a search, if any.
    pub(crate) async fn document(&self, search: SearchId) -> Option<Document> {
        self.store.load(&[search], self.host.now()).await.unwrap().remove(0).unwrap()
    }

    /// Returns the functions with an intercept, such as a crash, at some steps.
    pub(crate) fn crashing<I: Intercept + 'static>(&self, crash: &Arc<I>) -> Functions {
        let store = Arc::new(self.store.with_intercept(crash.clone()));
        let Backend { ports, config } = self.backend.clone();
        Functions::over(&backend::embedded(&store, ports.engine.host, ports.engine.observer, config).ports)
    }

    /// Returns the functions of a worker with another clock.
    pub(crate) fn with_host(&self, host: ManualHost) -> Functions {
        let Backend { ports, config } = self.backend.clone();
        let observer = ports.engine.observer;
        Functions::over(&backend::embedded(&self.store, Arc::new(host), observer, config).ports)
    }

    pub(crate) async fn announce(&self, files: &[&str]) -> AnnouncedSearch {
        let files = files.iter().map(|name| NewFile { name: (*name).to_owned(), size_bytes: 100 }).collect();
        let request = NewSearch { name: "Gambling harms".into(), files };
        self.functions.start_upload.create(ProjectId::from_uuid(uuid::Uuid::nil()), &request).await.unwrap()
    }

    /// Uploads a file that was announced. The content matters, but the announced size does not.
    pub(crate) async fn upload(&self, announced: &AnnouncedSearch, index: usize, content: &str) {
        self.upload_with(&announced.files[index].upload, announced.files.len(), content).await;
    }

    /// Works like [`World::upload`], for a file that need not be UTF-8.
    pub(crate) async fn upload_bytes(&self, announced: &AnnouncedSearch, index: usize, content: Vec<u8>) {
        self.put_object(&announced.files[index].upload, announced.files.len(), content).await;
    }

    /// Works like [`World::upload`], with a form of a search with the given number of files.
    pub(crate) async fn upload_with(&self, form: &PresignedPost, files: usize, content: &str) {
        self.put_object(form, files, content.as_bytes().to_vec()).await;
    }

    async fn put_object(&self, form: &PresignedPost, files: usize, content: Vec<u8>) {
        let metadata = UploadMetadata { search_name: "Gambling harms".into(), expected_files: files };
        let grant = UploadGrant {
            key: form.fields["key"].clone(),
            size_bytes: content.len() as u64,
            metadata: metadata.to_map(),
            expires_at: form.expires_at,
        };
        let form = self.store().presign(&grant).await.unwrap();
        self.store().upload(&form, &*content).await.unwrap();
    }

    /// Sends any text to the saga queue, as an attacker might.
    pub(crate) async fn put(&self, body: &str) {
        let nobody = uuid::Uuid::nil();
        let outgoing = Outgoing {
            id: MessageId::from_uuid(nobody),
            partition: SearchId::from_uuid(nobody),
            queue: SAGA,
            body: body.to_owned(),
            delay: Duration::ZERO,
        };
        self.store().send(&[outgoing]).await.pop().unwrap().unwrap();
    }

    /// Receives all messages that a queue can deliver now.
    pub(crate) async fn take(&self, queue: &Queue) -> Vec<ReceivedMessage> {
        let mut all = Vec::new();
        loop {
            let batch = self.store().receive(queue, 10, VISIBILITY).await.unwrap();
            if batch.is_empty() {
                return all;
            }
            all.extend(batch);
        }
    }

    /// Handles a batch with the consumer of its queue, and reports the results to the queue.
    pub(crate) async fn deliver(&self, queue: &Queue, batch: &[ReceivedMessage]) -> Vec<Disposition> {
        let dispositions = call(&self.functions, queue, batch).await;
        for (received, disposition) in batch.iter().zip(&dispositions) {
            self.store().answer(queue, &received.receipt, disposition).await.unwrap();
        }
        dispositions
    }

    /// Receives and delivers the messages of these queues, one after the other.
    pub(crate) async fn deliver_all(&self, queues: &[&Queue]) {
        for queue in queues {
            let batch = self.take(queue).await;
            self.deliver(queue, &batch).await;
        }
    }

    /// Delivers messages until none are left.
    pub(crate) async fn run(&self) {
        loop {
            let mut delivered = 0;
            for queue in PUMPED {
                let batch = self.take(&queue).await;
                self.deliver(&queue, &batch).await;
                delivered += batch.len();
            }
            if delivered == 0 {
                return;
            }
        }
    }

    /// Moves the clock and runs a sweep.
    pub(crate) async fn pass(&self, time: Duration) {
        self.host.advance(time);
        self.functions.dispatch_outbox.sweep(None).await.unwrap();
    }

    pub(crate) async fn job(&self, search: SearchId) -> Job {
        self.jobs().job(search).await.unwrap().expect("a job")
    }

    pub(crate) fn jobs(&self) -> Jobs {
        self.backend.ports.jobs().unwrap()
    }

    pub(crate) async fn studies(&self, search: SearchId) -> Vec<Study> {
        let mut studies = Vec::new();
        for file in self.job(search).await.files {
            studies.extend(self.store().studies(search, file.file_id, 0, 1_000).await.unwrap());
        }
        studies
    }

    /// Returns the distinct parse commands that took effect.
    pub(crate) async fn parsed(&self, search: SearchId) -> BTreeSet<MessageId> {
        let decisions = self.store().decisions(search).await.unwrap();
        let handled = decisions.into_iter().filter(|decision| {
            decision.message == "StartParsing" && decision.verdict == messages::Verdict::Handled
        });
        handled.filter_map(|decision| decision.message_id).collect()
    }

    /// Returns the verdicts of the run-saga function about one type of message, in order.
    pub(crate) async fn verdicts(&self, search: SearchId, message: &str) -> Vec<messages::Verdict> {
        let decisions = self.store().decisions(search).await.unwrap();
        let of_saga = decisions.iter().filter(|decision| decision.function == "run-saga");
        of_saga
            .filter(|decision| decision.message == message)
            .filter_map(|decision| decision.verdict.known())
            .collect()
    }
}

/// Handles a batch with the consumer of its queue.
pub(crate) async fn call(
    functions: &Functions,
    queue: &Queue,
    batch: &[ReceivedMessage],
) -> Vec<Disposition> {
    functions.behind(queue).consume(&deliveries(batch), None).await
}

/// Converts a batch to the input of a function.
pub(crate) fn deliveries(batch: &[ReceivedMessage]) -> Vec<Delivery> {
    batch.iter().map(|received| received.delivery.clone()).collect()
}

/// Parses the body of a received message.
pub(crate) fn body(received: &ReceivedMessage) -> Body {
    Message::decode(&received.delivery.body).unwrap().body
}

/// The port of a process without the addresses of queues: it rejects all messages.
pub(crate) struct WithoutQueues;

#[async_trait]
impl SendMessages for WithoutQueues {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|message| Err(SendError::UnknownQueue(message.queue.clone()))).collect()
    }
}

/// The duration of a slow call.
pub(crate) const SLOW: Duration = Duration::from_secs(1);

/// Delays a call of the store by [`SLOW`] on the clock of the world.
pub(crate) struct Slow(pub(crate) Call, pub(crate) Arc<ManualHost>);

#[async_trait]
impl Intercept for Slow {
    async fn step(&self, call: Call, phase: Phase) {
        if (call, phase) == (self.0, Phase::Before) {
            self.1.advance(SLOW);
        }
    }
}

/// A crash before or after the `nth` call with this name: the caller stops there, unless the test resumes it.
pub(crate) struct CrashAt {
    call: Call,
    phase: Phase,
    left: Mutex<usize>,
    crashed: Notify,
    woken: Notify,
}

impl CrashAt {
    pub(crate) fn new(call: Call, phase: Phase, nth: usize) -> Arc<Self> {
        Arc::new(Self { call, phase, left: Mutex::new(nth), crashed: Notify::new(), woken: Notify::new() })
    }

    /// Runs `work` until it crashes; fails if it does not.
    pub(crate) async fn kill<T: std::fmt::Debug>(&self, work: impl Future<Output = T>) {
        tokio::select! {
            done = work => panic!("the crash at {:?} was never reached: {done:?}", self.call),
            () = self.crashed.notified() => {}
        }
    }

    /// Runs `work` until it stalls at this call, then the other future, then the rest of `work`.
    pub(crate) async fn stall<T: std::fmt::Debug>(
        &self,
        work: impl Future<Output = T>,
        meanwhile: impl Future<Output = ()>,
    ) -> T {
        let mut work = pin!(work);
        self.kill(work.as_mut()).await;
        meanwhile.await;
        self.woken.notify_one();
        work.await
    }
}

#[async_trait]
impl Intercept for CrashAt {
    async fn step(&self, call: Call, phase: Phase) {
        if call != self.call || phase != self.phase {
            return;
        }
        let fatal = {
            let mut left = self.left.lock().unwrap();
            let is_there = *left == 1;
            *left = left.saturating_sub(1);
            is_there
        };
        if fatal {
            self.crashed.notify_one();
            self.woken.notified().await;
        }
    }
}
