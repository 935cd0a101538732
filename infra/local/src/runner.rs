//! Delivers messages from the queues of an application to its functions, like Lambda's event sources.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use embedded::{Lock, LockError, OpenError, Settings, Store};
use futures::future::join_all;
use jiff::Timestamp;
use messages::panics::contain_async;
use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{
    Backoff, Consumer, DecisionSink, Delivery, Depth, Disposition, Host, Message, Queue, QueueSpec,
    ReceiveMessages, ReceivedMessage, Reporter, StoreError,
};
use outbox::DispatchOutbox;
use outbox::session::CONTROL;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use saga::{
    AccessError, Engine, Failures, MissingSetting, Source, SweepHeartbeat, System, Upkeep, WrongTable,
};
use tokio::sync::watch;

use crate::fault_injection::{Crashes, DuplicatingSender, FaultInjection};
use crate::workers::Workers;

/// The interval between sweeps of a data directory.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between sweeps of a database, which other processes sweep as well.
const REMOTE_SWEEP_INTERVAL: Duration = Duration::from_secs(5);
/// The interval between checks for background work.
const UPKEEP_INTERVAL: Duration = Duration::from_secs(1);
/// The wait after a step of the work in the background while long messages are handled, in durations of that step. Users
/// wait for an import, which then loses at most a tenth of the time.
const UPKEEP_REST: u32 = 9;
/// The maximum of this wait, so that slow steps do not stop the work in the background.
const MAX_UPKEEP_REST: Duration = Duration::from_secs(5);
/// The interval between flushes of the observer.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);
/// The interval between polls of an idle queue. A message sent by this process wakes the pump immediately.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// The delay after a queue was unavailable.
const FAILURE_WAIT: Duration = Duration::from_secs(1);
/// The ratio of a queue's visibility timeout to its function's timeout on Lambda.
const LAMBDA_FACTOR: u32 = 6;
/// The minimum time limit of a function. With a shorter one, a busy machine would deliver messages twice.
const MIN_TIME_LIMIT: Duration = Duration::from_secs(60);
/// The part of the visibility timeout that a batch leaves unused, to store its results.
const RESERVE: Duration = Duration::from_secs(5);
/// The time slice of a message that is handled alone. A function that needs longer stores a checkpoint, and its message
/// is sent again after those of other partitions. Small files therefore wait at most this long for a large one.
const TURN: Duration = Duration::from_secs(2);
/// The maximum number of times that a turn is doubled for a message that made no progress in the previous one.
const MAX_DOUBLINGS: u32 = 10;
/// The name of the sweeping function, if the application has no function with this name.
const SWEEPER: &str = "dispatch-outbox";
/// The name of the function that collects failures, if the application has no function with this name.
const GATHERER: &str = "report-faults";

/// A data directory that a runner uses exclusively.
pub struct Home<P> {
    /// The store in the data directory.
    pub store: Arc<Store>,
    /// The exclusive lock on the directory.
    pub lock: Arc<Lock>,
    /// Opens the application's ports over a store.
    pub ports: PortsOver<P>,
}

/// The reason why a data directory cannot be opened for a runner.
#[derive(Debug, thiserror::Error)]
pub enum OpenRunnerError {
    /// Another process works in the data directory.
    #[error(transparent)]
    Locked(#[from] LockError),
    /// The data directory cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The table of the application is wrong.
    #[error(transparent)]
    Table(#[from] WrongTable),
}

/// Opens an application's ports over a store.
pub type PortsOver<P> = Arc<dyn Fn(&Arc<Store>) -> P + Send + Sync>;

impl<P> Clone for Home<P> {
    fn clone(&self) -> Self {
        Self { store: Arc::clone(&self.store), lock: Arc::clone(&self.lock), ports: Arc::clone(&self.ports) }
    }
}

/// Runs all functions of an application in this process.
pub struct Runner<P: 'static> {
    system: &'static System<P>,
    ports: P,
    home: Option<Home<P>>,
    faults: FaultInjection,
    visibility: Option<Duration>,
    time_limit: Option<Duration>,
    turn: Duration,
    crashes: AtomicU32,
    upkeep: Option<Arc<dyn Upkeep>>,
}

/// The consumers of an application by their queues.
struct Consumers(BTreeMap<Queue, QueueConsumer>);

struct QueueConsumer {
    spec: &'static QueueSpec,
    consumer: Arc<dyn Consumer>,
    /// Records panics that the function itself did not catch.
    reporter: Reporter,
    /// The number of times that each batch is handled.
    times: u32,
}

impl Runner<Engine> {
    /// Opens a data directory for an application without further ports; see [`Runner::open_with`].
    ///
    /// # Errors
    /// Returns the errors of [`Runner::open_with`].
    pub async fn open(
        system: &'static System<Engine>,
        dir: &Path,
        host: Arc<dyn Host>,
        faults: FaultInjection,
    ) -> Result<Self, OpenRunnerError> {
        Self::open_with(system, dir, host, faults, |engine| engine).await
    }
}

impl<P> Runner<P>
where
    P: AsRef<Engine> + AsMut<Engine> + Clone,
{
    /// Opens a data directory for an application. The directory is created if it does not exist. `ports` adds the
    /// application's own ports to the engine. Decisions about messages are recorded in the directory.
    ///
    /// # Errors
    /// Returns an error if the table of the application is wrong, another process works in the directory, or
    /// it cannot be opened.
    pub async fn open_with(
        system: &'static System<P>,
        dir: &Path,
        host: Arc<dyn Host>,
        faults: FaultInjection,
        ports: impl Fn(Engine) -> P + Send + Sync + 'static,
    ) -> Result<Self, OpenRunnerError> {
        system.check()?;
        let lock = Arc::new(Store::lock(dir)?);
        let store = Arc::new(Store::open(dir, Arc::clone(&host), Settings::of(system.name, system.queues))?);
        store.recover(&lock).await?;
        let observer: Arc<dyn DecisionSink> = store.clone();
        let over = move |store: &Arc<Store>| {
            ports(store.engine(system.name, Arc::clone(&host), Arc::clone(&observer)))
        };
        let engine = over(&store);
        let home = Home { store, lock, ports: Arc::new(over) };
        Ok(Self::new(system, engine, Some(home), faults))
    }

    /// Creates a runner of an application with its ports. With the embedded stores, `home` is the data directory.
    /// Otherwise other processes may receive from the same queues. Crashes are injected only with a data directory.
    pub fn new(system: &'static System<P>, ports: P, home: Option<Home<P>>, faults: FaultInjection) -> Self {
        Self {
            system,
            ports,
            home,
            faults,
            visibility: None,
            time_limit: None,
            turn: TURN,
            crashes: AtomicU32::new(0),
            upkeep: None,
        }
    }

    /// Overrides the visibility timeout of the queues.
    #[must_use]
    pub fn with_visibility(self, visibility: Option<Duration>) -> Self {
        Self { visibility, ..self }
    }

    /// Overrides the maximum duration of one call of a function.
    #[must_use]
    pub fn with_time_limit(self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self }
    }

    /// Overrides the turn of two seconds.
    #[must_use]
    pub fn with_turns_of(self, turn: Duration) -> Self {
        Self { turn, ..self }
    }

    /// Adds work in the background.
    #[must_use]
    pub fn with_upkeep(self, upkeep: Arc<dyn Upkeep>) -> Self {
        Self { upkeep: Some(upkeep), ..self }
    }

    /// Returns the ports for a client of the service. Sent messages are duplicated as configured, but calls never
    /// crash.
    pub fn ports(&self) -> P {
        self.with_copies(self.ports.clone())
    }

    /// Returns the ports for the requests of clients, restricted to what the table declares for them
    /// ([`Engine::declared_for_requests`]).
    pub fn request_ports(&self) -> P {
        let mut ports = self.ports();
        *ports.as_mut() = ports.as_ref().clone().declared_for_requests(self.system);
        ports
    }

    /// Delivers messages until `done` resolves. The workers finish their work in progress.
    ///
    /// # Errors
    /// Returns an error if a service that a function declares is not configured; a retry does not help.
    pub async fn run_until<T>(&self, done: impl Future<Output = T>) -> Result<T, MissingSetting> {
        let crashes = self.faults.crash.map(|seed| Arc::new(Crashes::new(seed)));
        tokio::pin!(done);
        loop {
            let (stop, stopped) = watch::channel(());
            let workers = self.start(crashes.as_ref(), &stopped)?;
            tokio::select! {
                value = &mut done => {
                    drop(stop);
                    workers.ended().await;
                    self.ports.as_ref().observer.flush().await;
                    return Ok(value);
                }
                () = crashed(crashes.as_deref()) => {
                    self.crashes.fetch_add(1, Ordering::Relaxed);
                    workers.abort().await;
                    self.release_held().await;
                }
            }
        }
    }

    /// Returns the store in the data directory; `None` without one.
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.home.as_ref().map(|home| &home.store)
    }

    /// Returns the number of injected crashes.
    pub fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    async fn release_held(&self) {
        tracing::debug!("the workers crashed and are started again");
        let Some(Home { store, lock, .. }) = &self.home else { return };
        if let Err(error) = store.release_held(lock).await {
            // Nothing is lost: leases, claims and visibility timeouts expire on their own.
            tracing::error!(error = error.chain(), "releasing the claims of crashed workers failed");
        }
    }

    /// Returns `true` if no message is visible or in flight; delayed messages do not count. Returns `None` without a
    /// data directory, because this process cannot count the messages of other queues.
    pub async fn is_idle(&self) -> Result<Option<bool>, StoreError> {
        self.has_none(|_, depth| depth.total() - depth.delayed).await
    }

    /// Returns `true` if no consumed queue has messages that `count` counts; `None` without a data directory.
    async fn has_none(&self, count: impl Fn(&Queue, &Depth) -> u64) -> Result<Option<bool>, StoreError> {
        let Some(home) = &self.home else { return Ok(None) };
        let depths = home.store.count_messages().await?;
        let is_empty = |queue| depths.get(queue).is_none_or(|depth| count(queue, depth) == 0);
        let mut consumed = self.system.functions.iter().filter_map(|function| function.source.queue());
        Ok(Some(consumed.all(is_empty)))
    }

    /// Waits until no message is visible, in flight or delayed. Does not wait for timers, for the queues of another
    /// process, or for delayed messages of the control queue, which only confirm that a session was not committed. Call
    /// it inside [`Runner::run_until`].
    pub async fn settled(&self) -> Result<(), StoreError> {
        let open = |queue: &Queue, depth: &Depth| {
            if *queue == CONTROL { depth.total() - depth.delayed } else { depth.total() }
        };
        while self.has_none(open).await? == Some(false) {
            self.ports.as_ref().host.sleep(IDLE_WAIT).await;
        }
        Ok(())
    }

    /// Performs all due effects of the outboxes, like the workers' periodic sweeps. A program calls this before it
    /// ends, so that no due effect waits for the next start.
    ///
    /// # Errors
    /// Returns an error if no database is configured or a store is unavailable. The next sweep performs the rest.
    pub async fn sweep(&self) -> Result<(), AccessError> {
        self.sweeper(self.ports.as_ref())?.sweep(None).await?;
        Ok(())
    }

    /// Returns the sweeper of the outboxes, which sends to the queues that the function behind the control queue
    /// declares. Without such a function, other programs perform the sweeps in production.
    fn sweeper(&self, engine: &Engine) -> Result<DispatchOutbox, MissingSetting> {
        match self.system.behind(&CONTROL) {
            Some(function) => {
                engine.clone().declared_by(function, self.system.queues).dispatch_outbox(SWEEPER)
            }
            None => engine.dispatch_outbox(SWEEPER),
        }
    }

    fn with_copies(&self, mut ports: P) -> P {
        if self.faults.copies > 1 {
            let engine = ports.as_mut();
            let inner = Arc::clone(&engine.send);
            engine.send = Arc::new(DuplicatingSender { inner, copies: self.faults.copies });
        }
        ports
    }

    /// Returns the ports for workers, whose calls may crash.
    fn with_crashes(&self, crashes: Option<&Arc<Crashes>>) -> P {
        let (Some(crashes), Some(home)) = (crashes, &self.home) else { return self.ports.clone() };
        (home.ports)(&Arc::new(home.store.with_intercept(crashes.clone())))
    }

    fn start(
        &self,
        crashes: Option<&Arc<Crashes>>,
        stopped: &watch::Receiver<()>,
    ) -> Result<Workers, MissingSetting> {
        let ports = self.with_copies(self.with_crashes(crashes));
        let engine = ports.as_ref();
        let pump = Arc::new(Pump {
            consumers: self.consumers(&ports)?,
            sweeper: self.sweeper(engine)?,
            sweeps: engine.sweeps()?,
            failures: engine.failures(GATHERER, self.system)?,
            source: Arc::clone(&engine.receive),
            store: self.home.as_ref().map(|home| Arc::clone(&home.store)),
            host: Arc::clone(&engine.host),
            observer: Arc::clone(&engine.observer),
            turn: self.turn,
            visibility: self.visibility,
            time_limit: self.time_limit,
            order: self.faults.shuffle.map(|seed| Mutex::new(StdRng::seed_from_u64(seed))),
            long: AtomicUsize::new(0),
        });
        let mut workers = Workers::default();
        for (queue, consumer) in &pump.consumers.0 {
            for number in 0..consumer.spec.workers {
                let work = Arc::clone(&pump).run(queue.clone(), stopped.clone());
                if is_long(consumer.spec) {
                    workers.spawn_thread(&format!("{}-{number}", queue.name()), work);
                } else {
                    workers.spawn(work);
                }
            }
        }
        workers.spawn(Arc::clone(&pump).flush_observer(stopped.clone()));
        if let Some(upkeep) = &self.upkeep {
            workers.spawn_thread("upkeep", Arc::clone(&pump).keep_up(Arc::clone(upkeep), stopped.clone()));
        }
        workers.spawn(pump.sweep(stopped.clone()));
        Ok(workers)
    }

    fn consumers(&self, ports: &P) -> Result<Consumers, MissingSetting> {
        let mut consumers = BTreeMap::new();
        for function in self.system.functions {
            let (Some(queue), Some(build)) = (function.source.queue(), function.build) else { continue };
            let notified = matches!(function.source, Source::Notifications(_));
            let Some(spec) = QueueSpec::of(self.system.queues, queue) else { continue };
            // Sent messages are duplicated by the sender. Notifications are not sent, so they are handled several
            // times.
            let times = if notified { self.faults.copies.max(1) } else { 1 };
            let reporter = ports.as_ref().reporter(function.name);
            let mut declared = ports.clone();
            *declared.as_mut() = ports.as_ref().clone().declared_by(function, self.system.queues);
            if is_long(spec) {
                // A turn is shorter than a call may last. Only the time limit of the function stops the call.
                declared.as_mut().overtime = None;
            }
            let consumer = build(&declared)?;
            consumers.insert(queue.clone(), QueueConsumer { spec, consumer, reporter, times });
        }
        Ok(Consumers(consumers))
    }
}

/// Returns `true` until the runner stops the workers.
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

/// The shared state of the workers.
struct Pump {
    consumers: Consumers,
    sweeper: DispatchOutbox,
    sweeps: SweepHeartbeat,
    failures: Failures,
    source: Arc<dyn ReceiveMessages>,
    store: Option<Arc<Store>>,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
    turn: Duration,
    visibility: Option<Duration>,
    time_limit: Option<Duration>,
    order: Option<Mutex<StdRng>>,
    /// The number of workers that handle a long message.
    long: AtomicUsize,
}

impl Pump {
    async fn run(self: Arc<Self>, queue: Queue, mut stopped: watch::Receiver<()>) {
        let Some(consumer) = self.consumers.0.get(&queue) else { return };
        let mut signal = self.store.as_ref().map(|store| store.message_signal());
        while is_running(&stopped) {
            let delivered = contain_async(self.deliver(&queue, consumer)).await;
            let delivered = delivered
                .unwrap_or_else(|panicked| Err(StoreError::unusable("delivering messages", panicked)));
            match (delivered, &mut signal) {
                (Ok(0), Some(signal)) => unless_stopped(&mut stopped, signal.wait(IDLE_WAIT)).await,
                // Remote queues use long polling, so no wait is needed.
                (Ok(_), _) => {}
                (Err(error), _) => {
                    tracing::error!(queue = queue.name(), error = error.chain(), "delivering failed");
                    unless_stopped(&mut stopped, tokio::time::sleep(FAILURE_WAIT)).await;
                }
            }
        }
    }

    async fn sweep(self: Arc<Self>, mut stopped: watch::Receiver<()>) {
        let interval = if self.store.is_some() { SWEEP_INTERVAL } else { REMOTE_SWEEP_INTERVAL };
        while is_running(&stopped) {
            if let Err(panicked) = contain_async(self.sweep_once(self.host.now())).await {
                tracing::error!(error = chain(&panicked), "a sweep failed");
            }
            unless_stopped(&mut stopped, tokio::time::sleep(interval)).await;
        }
    }

    /// Works in the background.
    async fn keep_up(self: Arc<Self>, upkeep: Arc<dyn Upkeep>, mut stopped: watch::Receiver<()>) {
        while is_running(&stopped) {
            let began = Instant::now();
            let step = contain_async(upkeep.step()).await;
            let step = step
                .unwrap_or_else(|panicked| Err(StoreError::unusable("working in the background", panicked)));
            let is_more = matches!(step, Ok(true));
            log_error(step, "work in the background failed");
            let is_busy = self.long.load(Ordering::Relaxed) > 0;
            let wait = match (is_more, is_busy) {
                (true, true) => (began.elapsed() * UPKEEP_REST).min(MAX_UPKEEP_REST),
                (true, false) => Duration::ZERO,
                (false, _) => UPKEEP_INTERVAL,
            };
            unless_stopped(&mut stopped, tokio::time::sleep(wait)).await;
        }
    }

    /// Flushes the observer concurrently with the work, so that a slow database for decisions does not delay messages.
    async fn flush_observer(self: Arc<Self>, mut stopped: watch::Receiver<()>) {
        while is_running(&stopped) {
            unless_stopped(&mut stopped, tokio::time::sleep(FLUSH_INTERVAL)).await;
            if let Err(panicked) = contain_async(self.observer.flush()).await {
                tracing::error!(error = chain(&panicked), "storing decisions failed");
            }
        }
    }

    async fn sweep_once(&self, now: Timestamp) {
        log_error(self.sweep_outboxes().await, "a sweep failed");
        log_error(self.failures.run(None).await, "collecting failures failed");
        // Services delete expired data themselves.
        if let Some(store) = &self.store {
            log_error(store.purge(now).await, "deleting expired data failed");
        }
    }

    async fn sweep_outboxes(&self) -> Result<(), StoreError> {
        self.sweeper.sweep(None).await?;
        self.sweeps.note().await
    }

    /// Receives and handles one batch. Returns the number of messages.
    async fn deliver(&self, queue: &Queue, consumer: &QueueConsumer) -> Result<usize, StoreError> {
        let mut batch = self.receive(queue, consumer.spec).await?;
        if let Some(order) = &self.order {
            let mut random = order.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            batch.shuffle(&mut *random);
        }
        // In random order, each message is its own batch, so that partitions and types mix.
        let size = if self.order.is_some() { 1 } else { consumer.spec.batch_size };
        let _long = (is_long(consumer.spec) && !batch.is_empty()).then(|| CountedWork::begin(&self.long));
        for part in batch.chunks(size) {
            self.handle(queue, consumer, part).await?;
        }
        Ok(batch.len())
    }

    async fn receive(&self, queue: &Queue, spec: &QueueSpec) -> Result<Vec<ReceivedMessage>, StoreError> {
        let visibility = self.visibility(spec);
        let mut batch = self.source.receive(queue, spec.batch_size, visibility).await?;
        // A larger choice of messages allows larger deviations from the order in which they were sent.
        while self.order.is_some() && !batch.is_empty() && batch.len() < 10 * MAX_BATCH {
            let more = self.source.receive(queue, MAX_BATCH, visibility).await?;
            if more.is_empty() {
                break;
            }
            batch.extend(more);
        }
        Ok(batch)
    }

    /// Returns the deadline of a batch. Messages that are handled alone have a limited turn. A message that is
    /// redelivered because its turn was too short gets a longer turn. Other batches end before their messages are
    /// visible again, which another worker would then handle as well.
    fn deadline(&self, spec: &QueueSpec, deliveries: &[Delivery]) -> Timestamp {
        let time = match deliveries {
            [delivery] if is_long(spec) => turn(self.turn, delivery.receive_count),
            _ => {
                let visibility = self.visibility(spec);
                visibility.saturating_sub(RESERVE).max(visibility / 2)
            }
        };
        self.host.now().checked_add(time).unwrap_or(Timestamp::MAX)
    }

    /// Returns the visibility timeout of received messages. Lambda's factor of six allows for its own retries, which do
    /// not exist here. The function's time limit is sufficient, and messages of a killed process are redelivered sooner.
    fn visibility(&self, spec: &QueueSpec) -> Duration {
        self.visibility.unwrap_or_else(|| time_limit(spec))
    }

    async fn handle(
        &self,
        queue: &Queue,
        consumer: &QueueConsumer,
        batch: &[ReceivedMessage],
    ) -> Result<(), StoreError> {
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let mut dispositions = Vec::new();
        for _ in 0..consumer.times {
            let deadline = Some(self.deadline(consumer.spec, &deliveries));
            let delivered = messages::deliver(&*consumer.consumer, &deliveries, deadline, &consumer.reporter);
            let limit = self.time_limit.unwrap_or_else(|| time_limit(consumer.spec));
            dispositions = match tokio::time::timeout(limit, delivered).await {
                Ok(dispositions) => dispositions,
                Err(_) => overdue(&deliveries, limit, &consumer.reporter),
            };
        }
        for (received, disposition) in batch.iter().zip(&dispositions) {
            log_dead_letter(consumer.spec, &received.delivery, disposition);
        }
        let answers = batch
            .iter()
            .zip(&dispositions)
            .map(|(received, disposition)| self.source.answer(queue, &received.receipt, disposition));
        join_all(answers).await.into_iter().collect()
    }
}

/// Work in progress, which is counted until this is dropped.
struct CountedWork<'a>(&'a AtomicUsize);

impl<'a> CountedWork<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for CountedWork<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Logs a message that failed for the last time, because its queue dead-letters it without notice. Rejected messages
/// are decisions, which observers receive.
fn log_dead_letter(spec: &QueueSpec, delivery: &Delivery, disposition: &Disposition) {
    let Some((dead, why)) = dead_letter_queue(spec, delivery, disposition) else { return };
    let message = Message::decode(&delivery.body).ok();
    let message_id = message.as_ref().map(|message| message.id.to_string());
    let correlation_id = message.as_ref().map(|message| message.partition.to_string());
    let (queue, attempts) = (dead.name(), delivery.receive_count);
    tracing::error!(queue, correlation_id, message_id, attempts, why, "a message was dead-lettered");
}

/// Returns the dead-letter queue of a failed message that will not be redelivered, and the reason of the failure.
fn dead_letter_queue<'a>(
    spec: &'a QueueSpec,
    delivery: &Delivery,
    disposition: &'a Disposition,
) -> Option<(&'a Queue, &'a str)> {
    let Disposition::Retry { reason, .. } = disposition else { return None };
    let is_last = spec.receive_limit.is_some_and(|limit| delivery.receive_count >= limit);
    spec.dead_letters.as_ref().filter(|_| is_last).map(|dead| (dead, reason.as_str()))
}

/// Logs an error of a sweep. The next sweep tries again.
fn log_error<T>(result: Result<T, StoreError>, what: &'static str) {
    if let Err(error) = result {
        tracing::error!(error = error.chain(), "{what}");
    }
}

/// Returns the maximum duration of one call of the function behind a queue: its timeout on Lambda, and at least a minute.
fn time_limit(spec: &QueueSpec) -> Duration {
    (spec.visibility / LAMBDA_FACTOR).max(MIN_TIME_LIMIT)
}

/// Returns the answers to a batch whose function did not return in time, and was stopped like an invocation of Lambda.
/// The growing delays have a random part, so a message that stops its function meets the others of its batch less and
/// less often.
fn overdue(batch: &[Delivery], limit: Duration, reporter: &Reporter) -> Vec<Disposition> {
    let why = format!("the function did not return within {} s", limit.as_secs());
    let answers = batch.iter().map(|delivery| match Message::decode(&delivery.body) {
        Ok(message) => reporter.retry(&message, Backoff::FAILURE, delivery.receive_count, why.clone()),
        Err(error) => reporter.reject(None, chain(&error)),
    });
    answers.collect()
}

/// Returns `true` if messages of the queue may take long, which are handled alone. Reading, unpacking, comparing and
/// exporting compute without yielding, so the workers of such a queue have their own threads.
fn is_long(spec: &QueueSpec) -> bool {
    spec.batch_size == 1
}

/// Returns the turn of a message for its receive count, which includes this delivery.
fn turn(first: Duration, receive_count: u32) -> Duration {
    first.saturating_mul(1 << receive_count.saturating_sub(1).min(MAX_DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turn_doubles_with_every_redelivery() {
        let turns = [1, 2, 3, 11, 12, u32::MAX].map(|received| turn(TURN, received).as_secs());
        assert_eq!(turns, [2, 4, 8, 2_048, 2_048, 2_048]);
    }

    #[test]
    fn message_at_receive_limit_is_dead_lettered() {
        let (queue, dead) = (Queue::named("work"), Queue::named("work-dead"));
        let worked = QueueSpec::with_consumer(queue, dead.clone(), 3, 30, 1, 1);
        let kept = QueueSpec::without_consumer(dead.clone());
        let delivery = |receive_count| Delivery {
            record_id: String::new(),
            body: String::new(),
            receive_count,
            reason: None,
        };
        let retry = Disposition::Retry { after: Duration::ZERO, reason: "away".to_owned() };
        let queues = [2, 3].map(|received| dead_letter_queue(&worked, &delivery(received), &retry));
        assert_eq!(queues, [None, Some((&dead, "away"))]);
        assert_eq!(dead_letter_queue(&kept, &delivery(3), &retry), None);
        assert_eq!(dead_letter_queue(&worked, &delivery(3), &Disposition::Acknowledge), None);
    }
}
