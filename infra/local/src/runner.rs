//! Delivers the queues to the functions, as Lambda's event sources do, until everything is done.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend::{Backend, Missing};
use config::BackendKind;
use contracts::{Backoff, Delivery, Disposition, Host, StoreError};
use embedded::{Lock, Store};
use functions::Functions;
use functions::notify_upload::Notification;
use futures::FutureExt;
use futures::future::join_all;
use jiff::Timestamp;
use outbox::queue::MAX_BATCH;
use outbox::{Queue, ReceiveMessages, Received};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::trial::{Copying, Crashes, Trial};

/// How long a received message is hidden from other receivers: longer than a function takes for it.
const VISIBILITY: Duration = Duration::from_secs(60);
/// The same for a parse command, which may be about a file of a gigabyte.
const PARSE_VISIBILITY: Duration = Duration::from_secs(900);
/// How often overdue effects are looked for, on this machine and in a database that others sweep as well.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_SERVICES_EVERY: Duration = Duration::from_secs(5);
/// How long an idle pump waits before it looks again unasked; a sent message wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// How long a pump waits when its queue does not answer.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// The queues that have a function behind them, and how many workers receive from each at the same time.
const PUMPS: [(Queue, usize); 5] =
    [(Queue::Uploads, 1), (Queue::Saga, 2), (Queue::Parse, 2), (Queue::ParseDead, 1), (Queue::Control, 1)];

/// The data directory that a runner is alone in.
#[derive(Clone)]
pub struct Home {
    /// Its store.
    pub store: Arc<Store>,
    /// The right to work in it.
    pub lock: Arc<Lock>,
}

/// Runs all functions in this process.
pub struct Runner {
    backend: Backend,
    home: Option<Home>,
    trial: Trial,
}

impl Runner {
    /// A runner on a backend: on the embedded one with the data directory that it works in, on any other beside
    /// whoever else receives from the same queues. Only workers in a data directory of their own crash on trial.
    pub fn new(backend: Backend, home: Option<Home>, trial: Trial) -> Self {
        Self { backend, home, trial }
    }

    /// The functions as a client of the service meets them: what they send is copied as the trial wants it, but
    /// they do not crash.
    ///
    /// # Errors
    /// When a service is not configured.
    pub fn functions(&self) -> Result<Functions, Missing> {
        Functions::over(&self.with_copies(self.backend.clone()))
    }

    /// Delivers messages until `done` resolves. The workers finish what they have begun.
    ///
    /// # Errors
    /// When a service is not configured.
    pub async fn run_until<T>(&self, done: impl Future<Output = T>) -> Result<T, Missing> {
        let crashes = self.trial.crash.map(|seed| Arc::new(Crashes::new(seed)));
        tokio::pin!(done);
        loop {
            let (stop, stopped) = watch::channel(());
            let mut workers = self.start(crashes.as_ref(), &stopped)?;
            tokio::select! {
                value = &mut done => {
                    drop(stop);
                    while workers.join_next().await.is_some() {}
                    return Ok(value);
                }
                () = crashed(crashes.as_deref()) => {
                    workers.shutdown().await;
                    self.release_held().await;
                }
            }
        }
    }

    async fn release_held(&self) {
        tracing::debug!("the workers crashed and are started again");
        let Some(Home { store, lock }) = &self.home else { return };
        if let Err(error) = store.release_held(lock).await {
            // Nothing is lost: leases, claims and visibility timeouts run out by themselves.
            tracing::error!(error = error.chain(), "releasing what crashed workers held failed");
        }
    }

    /// Whether nothing is left to deliver now: messages that are held back for later do not count. None when only
    /// the queues' owner could tell.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn is_idle(&self) -> Result<Option<bool>, StoreError> {
        let Some(home) = &self.home else { return Ok(None) };
        let depths = home.store.depths().await?;
        let is_empty = |queue| depths.get(queue).is_none_or(|depth| depth.visible + depth.in_flight == 0);
        Ok(Some(PUMPS.iter().all(|(queue, _)| is_empty(queue))))
    }

    fn with_copies(&self, backend: Backend) -> Backend {
        match self.trial.copies {
            0 | 1 => backend,
            copies => {
                Backend { queue: Arc::new(Copying { inner: Arc::clone(&backend.queue), copies }), ..backend }
            }
        }
    }

    /// The backend of workers that may crash.
    fn with_crashes(&self, crashes: Option<&Arc<Crashes>>) -> Backend {
        let backend = self.backend.clone();
        let (Some(crashes), Some(home)) = (crashes, &self.home) else { return backend };
        let store = Arc::new(home.store.with_intercept(crashes.clone()));
        adapters::embedded(&store, backend.host, backend.observer, backend.config)
    }

    fn start(
        &self,
        crashes: Option<&Arc<Crashes>>,
        stopped: &watch::Receiver<()>,
    ) -> Result<JoinSet<()>, Missing> {
        let backend = self.with_copies(self.with_crashes(crashes));
        let pump = Arc::new(Pump {
            functions: Functions::over(&backend)?,
            source: backend.source,
            store: self.home.as_ref().map(|home| Arc::clone(&home.store)),
            visibility: backend.config.visibility,
            copies: self.trial.copies.max(1),
            order: self.trial.shuffle.map(|seed| Mutex::new(StdRng::seed_from_u64(seed))),
        });
        let mut workers = JoinSet::new();
        for (queue, count) in PUMPS.into_iter().filter(|(queue, _)| self.has(*queue)) {
            for _ in 0..count {
                workers.spawn(Arc::clone(&pump).run(queue, stopped.clone()));
            }
        }
        workers.spawn(pump.sweep(Arc::clone(&self.backend.host), stopped.clone()));
        Ok(workers)
    }

    /// Whether there is such a queue. Where S3 invokes a function for each upload there is none for uploads.
    fn has(&self, queue: Queue) -> bool {
        let config = &self.backend.config;
        queue != Queue::Uploads
            || config.backend == BackendKind::Embedded
            || config.services.queue_urls.contains_key(&adapters::queue_setting(queue))
    }
}

/// Whether whoever started the workers still wants them.
fn is_running(stopped: &watch::Receiver<()>) -> bool {
    stopped.has_changed().is_ok()
}

async fn unless_stopped(stopped: &mut watch::Receiver<()>, wait: impl Future<Output = ()>) {
    tokio::select! {
        () = wait => {}
        _ = stopped.changed() => {}
    }
}

async fn crashed(crashes: Option<&Crashes>) {
    match crashes {
        Some(crashes) => crashes.crashed().await,
        None => std::future::pending().await,
    }
}

/// What one event source needs.
struct Pump {
    source: Arc<dyn ReceiveMessages>,
    store: Option<Arc<Store>>,
    functions: Functions,
    visibility: Option<Duration>,
    copies: u32,
    order: Option<Mutex<StdRng>>,
}

impl Pump {
    async fn run(self: Arc<Self>, queue: Queue, mut stopped: watch::Receiver<()>) {
        let mut signal = self.store.as_ref().map(|store| store.message_signal());
        while is_running(&stopped) {
            match (self.deliver(queue).await, &mut signal) {
                (Ok(0), Some(signal)) => unless_stopped(&mut stopped, signal.wait(IDLE_WAIT)).await,
                // A queue elsewhere has waited for messages before it said that there are none.
                (Ok(_), _) => {}
                (Err(error), _) => {
                    tracing::error!(queue = queue.name(), error = error.chain(), "delivering failed");
                    unless_stopped(&mut stopped, tokio::time::sleep(FAILURE_WAIT)).await;
                }
            }
        }
    }

    async fn sweep(self: Arc<Self>, host: Arc<dyn Host>, mut stopped: watch::Receiver<()>) {
        let every = if self.store.is_some() { SWEEP_EVERY } else { SWEEP_SERVICES_EVERY };
        while is_running(&stopped) {
            self.sweep_once(host.now()).await;
            unless_stopped(&mut stopped, tokio::time::sleep(every)).await;
        }
    }

    async fn sweep_once(&self, now: Timestamp) {
        if let Err(error) = self.functions.dispatch_outbox.sweep().await {
            tracing::error!(error = error.chain(), "a sweep was broken off");
        }
        // Elsewhere what has expired goes by itself.
        let Some(store) = &self.store else { return };
        if let Err(error) = store.purge(now).await {
            tracing::error!(error = error.chain(), "removing what has expired failed");
        }
    }

    fn visibility(&self, queue: Queue) -> Duration {
        self.visibility.unwrap_or(match queue {
            Queue::Parse => PARSE_VISIBILITY,
            _ => VISIBILITY,
        })
    }

    /// Receives one batch and has it handled. Returns how many messages that was.
    async fn deliver(&self, queue: Queue) -> Result<usize, StoreError> {
        let mut batch = self.receive(queue).await?;
        if let Some(order) = &self.order {
            let mut random = order.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            batch.shuffle(&mut *random);
        }
        // With a drawn order each message is a batch of its own, so that searches and kinds mix.
        let size = if self.order.is_some() { 1 } else { MAX_BATCH };
        for part in batch.chunks(size) {
            self.handle(queue, part).await?;
        }
        Ok(batch.len())
    }

    async fn receive(&self, queue: Queue) -> Result<Vec<Received>, StoreError> {
        let visibility = self.visibility(queue);
        let mut batch = self.source.receive(queue, MAX_BATCH, visibility).await?;
        // The more is there to choose from, the more an order can differ from the sent one.
        while self.order.is_some() && !batch.is_empty() && batch.len() < 10 * MAX_BATCH {
            let more = self.source.receive(queue, MAX_BATCH, visibility).await?;
            if more.is_empty() {
                break;
            }
            batch.extend(more);
        }
        Ok(batch)
    }

    async fn handle(&self, queue: Queue, batch: &[Received]) -> Result<(), StoreError> {
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let handled = AssertUnwindSafe(self.call(queue, &deliveries)).catch_unwind().await;
        let panicked =
            |_| deliveries.iter().map(|delivery| failed(delivery, "the function panicked")).collect();
        let dispositions = handled.unwrap_or_else(panicked);
        let settled = batch
            .iter()
            .zip(&dispositions)
            .map(|(received, disposition)| self.source.settle(queue, &received.receipt, disposition));
        join_all(settled).await.into_iter().collect()
    }

    async fn call(&self, queue: Queue, deliveries: &[Delivery]) -> Vec<Disposition> {
        match queue {
            Queue::Uploads => join_all(deliveries.iter().map(|delivery| self.notify(delivery))).await,
            Queue::Saga => self.functions.run_saga.handle(deliveries, None).await,
            Queue::Parse => self.functions.parse_references.handle(deliveries).await,
            Queue::ParseDead => self.functions.report_faults.handle(deliveries).await,
            Queue::Control => self.functions.dispatch_outbox.handle(deliveries).await,
            Queue::UploadsDead
            | Queue::SagaDead
            | Queue::ParseUnreadable
            | Queue::ControlDead
            | Queue::Events => {
                let nobody = |delivery| failed(delivery, "no function is behind this queue");
                deliveries.iter().map(nobody).collect()
            }
        }
    }

    async fn notify(&self, delivery: &Delivery) -> Disposition {
        let notifications =
            serde_json::from_str(&delivery.body).map_err(|error| error.to_string()).and_then(|event| {
                Notification::read_all(&event).map_err(|error| contracts::store::chain(&error))
            });
        let notifications = match notifications {
            Ok(notifications) => notifications,
            Err(reason) => return Disposition::DeadLetter { reason },
        };
        for _ in 0..self.copies {
            if let Err(error) = self.functions.notify_upload.handle(&notifications).await {
                return failed(delivery, &contracts::store::chain(&error));
            }
        }
        Disposition::Acknowledge
    }
}

fn failed(delivery: &Delivery, reason: &str) -> Disposition {
    Disposition::Retry { after: Backoff::FAILURE.after(delivery.receive_count), reason: reason.to_owned() }
}
