//! Delivers the queues to the functions, as Lambda's event sources do, until everything is done.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend::Backend;
use contracts::{Delivery, Disposition, Host, StoreError};
use embedded::{Lock, Store};
use futures::FutureExt;
use futures::future::join_all;
use notify_upload::Notification;
use outbox::queue::MAX_BATCH;
use outbox::{Queue, ReceiveMessages, Received};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use tokio::task::JoinSet;

use crate::functions::Functions;
use crate::trial::{Copying, Crashes, Trial};

/// How long a received message is hidden from other receivers.
const VISIBILITY: Duration = Duration::from_secs(60);
/// How often overdue effects are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
/// How long an idle pump waits before it looks again unasked; a sent message wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// When to deliver a message again whose function failed as a whole.
const FAILURE_VISIBILITY: Duration = Duration::from_secs(1);

/// The queues that have a function behind them, and how many workers receive from each at the same time.
const PUMPS: [(Queue, usize); 5] =
    [(Queue::Uploads, 1), (Queue::Saga, 2), (Queue::Parse, 2), (Queue::ParseDead, 1), (Queue::Control, 1)];

/// Runs all functions in this process.
pub struct Runner {
    backend: Backend,
    lock: Lock,
    trial: Trial,
}

impl Runner {
    /// A runner on a backend in the data directory that `lock` is for.
    pub fn new(backend: Backend, lock: Lock, trial: Trial) -> Self {
        Self { backend, lock, trial }
    }

    /// The functions as a client of the service meets them: what they send is copied as the trial wants it, but
    /// they do not crash.
    pub fn functions(&self) -> Functions {
        Functions::over(&self.with_copies(self.backend.clone()))
    }

    /// Delivers messages until `done` resolves. The workers are torn down then, wherever they are; what they left
    /// is picked up by the next run.
    pub async fn run_until<T>(&self, done: impl Future<Output = T>) -> T {
        let crashes = self.trial.crash.map(|seed| Arc::new(Crashes::new(seed)));
        tokio::pin!(done);
        loop {
            let mut workers = self.start(crashes.as_ref());
            tokio::select! {
                value = &mut done => {
                    workers.shutdown().await;
                    return value;
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
        if let Err(error) = self.backend.store.release_held(&self.lock).await {
            // Nothing is lost: leases, claims and visibility timeouts run out by themselves.
            tracing::error!(error = error.chain(), "releasing what crashed workers held failed");
        }
    }

    /// Whether nothing is left to deliver now: messages that are held back for later do not count.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn is_idle(&self) -> Result<bool, StoreError> {
        let depths = self.backend.store.depths().await?;
        Ok(PUMPS
            .iter()
            .all(|(queue, _)| depths.get(queue).is_none_or(|depth| depth.visible + depth.in_flight == 0)))
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
    fn with_crashes(&self, crashes: &Arc<Crashes>) -> Backend {
        let store = Arc::new(self.backend.store.with_intercept(crashes.clone()));
        Backend { queue: store.clone(), store, ..self.backend.clone() }
    }

    fn start(&self, crashes: Option<&Arc<Crashes>>) -> JoinSet<()> {
        let backend = crashes.map_or_else(|| self.backend.clone(), |crashes| self.with_crashes(crashes));
        let backend = self.with_copies(backend);
        let pump = Arc::new(Pump {
            functions: Functions::over(&backend),
            store: backend.store,
            copies: self.trial.copies.max(1),
            order: self.trial.shuffle.map(|seed| Mutex::new(StdRng::seed_from_u64(seed))),
        });
        let mut workers = JoinSet::new();
        for (queue, count) in PUMPS {
            for _ in 0..count {
                workers.spawn(Arc::clone(&pump).run(queue));
            }
        }
        workers.spawn(pump.sweep(Arc::clone(&self.backend.host)));
        workers
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
    store: Arc<Store>,
    functions: Functions,
    copies: u32,
    order: Option<Mutex<StdRng>>,
}

impl Pump {
    async fn run(self: Arc<Self>, queue: Queue) {
        let mut signal = self.store.message_signal();
        loop {
            match self.deliver(queue).await {
                Ok(0) => signal.wait(IDLE_WAIT).await,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(queue = queue.name(), error = error.chain(), "delivering failed");
                    tokio::time::sleep(FAILURE_VISIBILITY).await;
                }
            }
        }
    }

    async fn sweep(self: Arc<Self>, host: Arc<dyn Host>) {
        loop {
            if let Err(error) = self.functions.dispatch_outbox.sweep().await {
                tracing::error!(error = error.chain(), "a sweep was broken off");
            }
            if let Err(error) = self.store.purge(host.now()).await {
                tracing::error!(error = error.chain(), "removing what has expired failed");
            }
            tokio::time::sleep(SWEEP_EVERY).await;
        }
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
        let mut batch = self.store.receive(queue, MAX_BATCH, VISIBILITY).await?;
        // The more is there to choose from, the more an order can differ from the sent one.
        while self.order.is_some() && !batch.is_empty() && batch.len() < 10 * MAX_BATCH {
            let more = self.store.receive(queue, MAX_BATCH, VISIBILITY).await?;
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
        let dispositions = handled.unwrap_or_else(|_| vec![failed("the function panicked"); batch.len()]);
        let settled = batch
            .iter()
            .zip(&dispositions)
            .map(|(received, disposition)| self.store.settle(queue, &received.receipt, disposition));
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
            | Queue::Events => vec![failed("no function is behind this queue"); deliveries.len()],
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
                return failed(&contracts::store::chain(&error));
            }
        }
        Disposition::Acknowledge
    }
}

fn failed(reason: &str) -> Disposition {
    Disposition::Retry { after: FAILURE_VISIBILITY, reason: reason.to_owned() }
}
