//! Delivers the queues of an application to its functions, as Lambda's event sources do, until everything is done.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use embedded::{Lock, Store};
use futures::future::join_all;
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{
    Consumer, Delivery, Disposition, Host, Message, Observe, Queue, QueueSpec, ReceiveMessages, Received,
    Reporter, StoreError,
};
use outbox::DispatchOutbox;
use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use saga::{Engine, Failures, Missing, Source, SweepHeartbeat, System};
use tokio::sync::watch;

use crate::trial::{Copying, Crashes, Trial};
use crate::workers::Workers;

/// How often overdue effects are looked for, on this machine and in a database that others sweep as well.
const SWEEP_EVERY: Duration = Duration::from_secs(1);
const SWEEP_SERVICES_EVERY: Duration = Duration::from_secs(5);
/// How often what was observed is brought to where it belongs.
const RECORD_EVERY: Duration = Duration::from_secs(1);
/// How long an idle pump waits before it looks again unasked; a sent message wakes it at once.
const IDLE_WAIT: Duration = Duration::from_millis(100);
/// How long a pump waits when its queue does not answer.
const FAILURE_WAIT: Duration = Duration::from_secs(1);
/// How many times a function's timeout fits into the visibility timeout of its queue.
const LAMBDA_FACTOR: u32 = 6;
/// Shorter, and a busy machine would have messages delivered twice.
const LEAST_VISIBILITY: Duration = Duration::from_secs(60);
/// How long a message that is handled by itself may be worked on before others have their turn. A function that cannot end
/// within it stores how far it is and has its message sent again, behind those of other partitions; so whoever sends a
/// small file waits for a large one of somebody else no longer than this.
const TURN: Duration = Duration::from_secs(2);
/// How often a turn doubles at most, for a message that came to nothing within the one before.
const MOST_DOUBLINGS: u32 = 10;
/// The function that sweeps, where the application has none of that name.
const SWEEPER: &str = "dispatch-outbox";
/// The function that gathers what was given up, where the application has none of that name.
const GATHERER: &str = "report-faults";

/// The data directory that a runner is alone in.
pub struct Home<P> {
    /// Its store.
    pub store: Arc<Store>,
    /// The right to work in it.
    pub lock: Arc<Lock>,
    /// The application's ports over a store.
    pub ports: PortsOver<P>,
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
    trial: Trial,
    visibility: Option<Duration>,
    turn: Duration,
    crashes: AtomicU32,
}

/// Why a sweep was broken off.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// No database is configured.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A store does not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The consumers of an application, each with what is agreed about its queue.
struct Consumers(BTreeMap<Queue, Behind>);

struct Behind {
    spec: &'static QueueSpec,
    consumer: Arc<dyn Consumer>,
    /// Takes note of a panic that the function itself has not contained.
    reporter: Reporter,
    /// How often each batch is handled.
    times: u32,
}

impl<P> Runner<P>
where
    P: AsRef<Engine> + AsMut<Engine> + Clone,
{
    /// A runner of an application over its ports: on the embedded stores with the data directory that it works in, on
    /// any other beside whoever else receives from the same queues. Only workers in a data directory of their own crash
    /// on trial.
    pub fn new(system: &'static System<P>, ports: P, home: Option<Home<P>>, trial: Trial) -> Self {
        Self { system, ports, home, trial, visibility: None, turn: TURN, crashes: AtomicU32::new(0) }
    }

    /// The same with another visibility timeout than that of the queues.
    #[must_use]
    pub fn with_visibility(self, visibility: Option<Duration>) -> Self {
        Self { visibility, ..self }
    }

    /// The same with other turns than of two seconds.
    #[must_use]
    pub fn with_turns_of(self, turn: Duration) -> Self {
        Self { turn, ..self }
    }

    /// The ports as a client of the service meets them: what is sent is copied as the trial wants it, but nothing
    /// crashes.
    pub fn ports(&self) -> P {
        self.with_copies(self.ports.clone())
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

    /// How often the workers were torn down on trial.
    pub fn crashes(&self) -> u32 {
        self.crashes.load(Ordering::Relaxed)
    }

    async fn release_held(&self) {
        tracing::debug!("the workers crashed and are started again");
        let Some(Home { store, lock, .. }) = &self.home else { return };
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
        let depths = home.store.count_messages().await?;
        let is_empty = |queue| depths.get(queue).is_none_or(|depth| depth.visible + depth.in_flight == 0);
        let mut worked = self.system.functions.iter().filter_map(|function| function.source.queue());
        Ok(Some(worked.all(is_empty)))
    }

    /// Performs what is due in the outboxes now, as the workers do from time to time. Once everything is done that a
    /// program waits for, this leaves nothing over that only the next program would perform.
    ///
    /// # Errors
    /// When no database is configured, or a store does not answer; then the next sweep does the rest.
    pub async fn sweep(&self) -> Result<(), SweepError> {
        self.ports.as_ref().dispatch_outbox(SWEEPER)?.sweep(None).await?;
        Ok(())
    }

    fn with_copies(&self, mut ports: P) -> P {
        if self.trial.copies > 1 {
            let engine = ports.as_mut();
            let inner = Arc::clone(&engine.send);
            engine.send = Arc::new(Copying { inner, copies: self.trial.copies });
        }
        ports
    }

    /// The ports of workers that may crash.
    fn with_crashes(&self, crashes: Option<&Arc<Crashes>>) -> P {
        let (Some(crashes), Some(home)) = (crashes, &self.home) else { return self.ports.clone() };
        (home.ports)(&Arc::new(home.store.with_intercept(crashes.clone())))
    }

    fn start(
        &self,
        crashes: Option<&Arc<Crashes>>,
        stopped: &watch::Receiver<()>,
    ) -> Result<Workers, Missing> {
        let ports = self.with_copies(self.with_crashes(crashes));
        let engine = ports.as_ref();
        let pump = Arc::new(Pump {
            consumers: self.consumers(&ports)?,
            sweeper: engine.dispatch_outbox(SWEEPER)?,
            sweeps: engine.sweeps()?,
            failures: engine.failures(GATHERER, self.system)?,
            source: Arc::clone(&engine.receive),
            store: self.home.as_ref().map(|home| Arc::clone(&home.store)),
            host: Arc::clone(&engine.host),
            observer: Arc::clone(&engine.observer),
            turn: self.turn,
            visibility: self.visibility,
            order: self.trial.shuffle.map(|seed| Mutex::new(StdRng::seed_from_u64(seed))),
        });
        let mut workers = Workers::default();
        for (queue, behind) in &pump.consumers.0 {
            for number in 0..behind.spec.workers {
                let work = Arc::clone(&pump).run(queue.clone(), stopped.clone());
                if is_long(behind.spec) {
                    workers.spawn_thread(&format!("{}-{number}", queue.name()), work);
                } else {
                    workers.spawn(work);
                }
            }
        }
        workers.spawn(Arc::clone(&pump).record(stopped.clone()));
        workers.spawn(pump.sweep(Arc::clone(&self.ports.as_ref().host), stopped.clone()));
        Ok(workers)
    }

    fn consumers(&self, ports: &P) -> Result<Consumers, Missing> {
        let mut consumers = BTreeMap::new();
        for function in self.system.functions {
            let (Some(queue), Some(build)) = (function.source.queue(), function.build) else { continue };
            let notified = matches!(function.source, Source::Notifications(_));
            let Some(spec) = QueueSpec::of(self.system.queues, queue) else { continue };
            // What is sent is copied on its way; notifications are not sent, so they are handled several times.
            let times = if notified { self.trial.copies.max(1) } else { 1 };
            let reporter = ports.as_ref().reporter(function.name);
            consumers.insert(queue.clone(), Behind { spec, consumer: build(ports)?, reporter, times });
        }
        Ok(Consumers(consumers))
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
    consumers: Consumers,
    sweeper: DispatchOutbox,
    sweeps: SweepHeartbeat,
    failures: Failures,
    source: Arc<dyn ReceiveMessages>,
    store: Option<Arc<Store>>,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
    turn: Duration,
    visibility: Option<Duration>,
    order: Option<Mutex<StdRng>>,
}

impl Pump {
    async fn run(self: Arc<Self>, queue: Queue, mut stopped: watch::Receiver<()>) {
        let Some(behind) = self.consumers.0.get(&queue) else { return };
        let mut signal = self.store.as_ref().map(|store| store.message_signal());
        while is_running(&stopped) {
            match (self.deliver(&queue, behind).await, &mut signal) {
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

    /// Has what was observed brought to where it belongs, beside the work: a database that is slow to take it delays
    /// nobody else.
    async fn record(self: Arc<Self>, mut stopped: watch::Receiver<()>) {
        while is_running(&stopped) {
            unless_stopped(&mut stopped, tokio::time::sleep(RECORD_EVERY)).await;
            self.observer.flush().await;
        }
    }

    async fn sweep_once(&self, now: Timestamp) {
        tell(self.sweep_outboxes().await, "a sweep was broken off");
        tell(self.failures.run(None).await, "gathering what was given up was broken off");
        // Elsewhere what has expired goes by itself.
        if let Some(store) = &self.store {
            tell(store.purge(now).await, "removing what has expired failed");
        }
    }

    async fn sweep_outboxes(&self) -> Result<(), StoreError> {
        self.sweeper.sweep(None).await?;
        self.sweeps.note().await
    }

    /// Receives one batch and has it handled. Returns how many messages that was.
    async fn deliver(&self, queue: &Queue, behind: &Behind) -> Result<usize, StoreError> {
        let mut batch = self.receive(queue, behind.spec).await?;
        if let Some(order) = &self.order {
            let mut random = order.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            batch.shuffle(&mut *random);
        }
        // With a drawn order each message is a batch of its own, so that partitions and kinds mix.
        let size = if self.order.is_some() { 1 } else { behind.spec.batch_size };
        for part in batch.chunks(size) {
            self.handle(queue, behind, part).await?;
        }
        Ok(batch.len())
    }

    async fn receive(&self, queue: &Queue, spec: &QueueSpec) -> Result<Vec<Received>, StoreError> {
        let visibility = self.visibility.unwrap_or_else(|| visibility(spec));
        let mut batch = self.source.receive(queue, spec.batch_size, visibility).await?;
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

    /// When a message that is handled by itself has to make room for others; batches are short. One that comes again because
    /// its turn was too short for it has a longer one.
    fn end_of_turn(&self, spec: &QueueSpec, deliveries: &[Delivery]) -> Option<Timestamp> {
        let [delivery] = deliveries else { return None };
        let turn = turn(self.turn, delivery.receive_count);
        is_long(spec).then(|| self.host.now().checked_add(turn).unwrap_or(Timestamp::MAX))
    }

    async fn handle(&self, queue: &Queue, behind: &Behind, batch: &[Received]) -> Result<(), StoreError> {
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let mut said = Vec::new();
        for _ in 0..behind.times {
            let deadline = self.end_of_turn(behind.spec, &deliveries);
            said = messages::deliver(&*behind.consumer, &deliveries, deadline, &behind.reporter).await;
        }
        batch.iter().zip(&said).for_each(|(received, said)| tell_last(behind.spec, &received.delivery, said));
        let answered = batch
            .iter()
            .zip(&said)
            .map(|(received, disposition)| self.source.answer(queue, &received.receipt, disposition));
        join_all(answered).await.into_iter().collect()
    }
}

/// Says so when a message has failed for the last time, since its queue moves it to the dead letters in silence. What is
/// wrong in itself is a decision, which whoever observes them is told of.
fn tell_last(spec: &QueueSpec, delivery: &Delivery, said: &Disposition) {
    let Some((dead, why)) = gives_up(spec, delivery, said) else { return };
    let message = Message::decode(&delivery.body).ok();
    let message_id = message.as_ref().map(|message| message.id.to_string());
    let correlation_id = message.as_ref().map(|message| message.partition.to_string());
    let (queue, attempts) = (dead.name(), delivery.receive_count);
    tracing::error!(queue, correlation_id, message_id, attempts, why, "a message was given up");
}

/// Where a message goes that was not handled this time either, if it is not delivered again; and why.
fn gives_up<'a>(
    spec: &'a QueueSpec,
    delivery: &Delivery,
    said: &'a Disposition,
) -> Option<(&'a Queue, &'a str)> {
    let Disposition::Retry { reason, .. } = said else { return None };
    let is_last = spec.receive_limit.is_some_and(|limit| delivery.receive_count >= limit);
    spec.dead_letters.as_ref().filter(|_| is_last).map(|dead| (dead, reason.as_str()))
}

/// Tells what a sweep could not do; the next one tries it again.
fn tell<T>(swept: Result<T, StoreError>, what: &'static str) {
    if let Err(error) = swept {
        tracing::error!(error = error.chain(), "{what}");
    }
}

/// How long this process hides what it has received. Lambda's factor of six leaves room for retries of its own, which
/// nobody makes here: once what the function may take is enough, and what a killed process held comes back sooner.
fn visibility(spec: &QueueSpec) -> Duration {
    (spec.visibility / LAMBDA_FACTOR).max(LEAST_VISIBILITY)
}

/// Returns `true` if a message of the queue may take long: it is handled by itself. Reading, unpacking, comparing and
/// exporting occupy a processor without a pause, so the workers of such a queue have threads of their own.
fn is_long(spec: &QueueSpec) -> bool {
    spec.batch_size == 1
}

/// How long a message may be worked on that was received so often, counting this time.
fn turn(first: Duration, receive_count: u32) -> Duration {
    first.saturating_mul(1 << receive_count.saturating_sub(1).min(MOST_DOUBLINGS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_that_was_too_short_is_followed_by_one_that_is_twice_as_long() {
        let turns = [1, 2, 3, 11, 12, u32::MAX].map(|received| turn(TURN, received).as_secs());
        assert_eq!(turns, [2, 4, 8, 2_048, 2_048, 2_048]);
    }

    #[test]
    fn what_fails_as_often_as_its_queue_delivers_it_is_given_up() {
        let (queue, dead) = (Queue::named("work"), Queue::named("work-dead"));
        let worked = QueueSpec::worked(queue, dead.clone(), 3, 30, 1, 1);
        let kept = QueueSpec::kept(dead.clone());
        let delivery =
            |receive_count| Delivery { record_id: String::new(), body: String::new(), receive_count };
        let retry = Disposition::Retry { after: Duration::ZERO, reason: "away".to_owned() };
        let given_up = [2, 3].map(|received| gives_up(&worked, &delivery(received), &retry));
        assert_eq!(given_up, [None, Some((&dead, "away"))]);
        assert_eq!(gives_up(&kept, &delivery(3), &retry), None);
        assert_eq!(gives_up(&worked, &delivery(3), &Disposition::Acknowledge), None);
    }
}
