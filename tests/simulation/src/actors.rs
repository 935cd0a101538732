//! The workers: each function in the loop of its event source, the scheduled sweep, and the clients.

use std::sync::Arc;
use std::time::Duration;

use dedup::ledger::NoLedger;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{Delivery, Disposition, Host, Message, ReceivedMessage};
use outbox::session::CONTROL;
use outbox::{Entry, Owner};
use saga::failures::{FailureStatus, Retry, Selection};
use saga::operator::Readmission;
use saga::{Operator, Partitions};

use crate::application::{Application, engine};
use crate::control::actor::control;
use crate::coverage::{Call, Phase};
use crate::model::{SETTLES, Station};
use crate::mutants;
use crate::options::{Invariant, Mode, Mutant};
use crate::point::Kind;
use crate::port::Port;
use crate::restore::{AGAIN, MAX_AGAIN, Shift, Task};
use crate::rng::Rng;
use crate::world::World;

/// The interval of sweeps, which start on the minute, so that two of them coincide.
const SWEEP_EVERY_MS: u64 = 60_000;

/// The time within which all clients start.
const BEGINNING_MS: u64 = 2_000;

/// A type of worker.
#[derive(Clone)]
pub(crate) enum Role {
    /// A client, and `true` if it starts again after a crash.
    Client(Rng, bool),
    /// The function that consumes the queue with this index.
    Station(Station, usize),
    /// The sweep of the function with this name.
    Sweep,
    /// An operator, who handles dead letters and exhausted effects.
    Operator,
    /// A worker that runs the steps of operations on failures.
    Retrier,
    /// An operator, who handles a restore.
    Restorer,
    /// An operator, who pauses and terminates instances.
    Controller,
}

impl Role {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Client(..) => "client",
            Self::Station(station, _) => station.function,
            Self::Sweep => "sweep",
            Self::Operator => "operator",
            Self::Retrier => "retrier",
            Self::Restorer => "restorer",
            Self::Controller => "controller",
        }
    }

    /// Returns the index of the queue that the actor receives from.
    pub(crate) fn queue(&self) -> Option<usize> {
        if let Self::Station(_, place) = self { Some(*place) } else { None }
    }

    /// Returns `true` if the actor is started again after a crash.
    pub(crate) fn restarts(&self) -> bool {
        !matches!(self, Self::Client(_, false))
    }

    /// Returns a worker of this type, which runs until it is dropped.
    pub(crate) fn start(&self, port: Port, application: Arc<dyn Application>) -> BoxFuture<'static, ()> {
        match self {
            Self::Client(rng, _) => Box::pin(client(port, application, rng.clone())),
            Self::Station(station, queue) => Box::pin(work(port, application, station.clone(), *queue)),
            Self::Sweep => Box::pin(sweep(port, application)),
            Self::Operator => Box::pin(operate(port, application)),
            Self::Retrier => Box::pin(retry(port, application)),
            Self::Restorer => Box::pin(handle_restore(port, application)),
            Self::Controller => Box::pin(control(port, application)),
        }
    }
}

impl World {
    /// Returns the workers of a schedule.
    pub(crate) fn roles(&mut self) -> Vec<Role> {
        let (mut roles, again) = (Vec::new(), self.application.clients_return());
        for _ in 0..self.rng.pick(&[1, 1, 2]) {
            roles.push(Role::Client(Rng::new(self.rng.draw()), again));
        }
        for station in self.stations.clone() {
            let Some(place) = self.queues.place(&station.queue) else { continue };
            let workers = match &station.queue {
                queue if self.saga_queues.contains(queue) => self.rng.pick(&[2, 2, 3]),
                // Two workers can then settle a session concurrently.
                queue if *queue == CONTROL => 2,
                _ => self.queues.spec(place).workers.clamp(1, 2),
            };
            roles.extend(vec![Role::Station(station, place); workers]);
        }
        roles.extend([Role::Sweep, Role::Sweep, Role::Operator, Role::Retrier, Role::Retrier]);
        roles.extend(self.has_restore().then_some(Role::Restorer));
        roles.extend(self.has_control().then_some(Role::Controller));
        roles
    }
}

async fn client(port: Port, application: Arc<dyn Application>, mut rng: Rng) {
    let begins = rng.below(BEGINNING_MS);
    port.stop_at(Kind::Call(Call::HOST_SLEEP, Phase::Before), begins).await;
    application.client(&port, rng).await;
}

async fn work(port: Port, application: Arc<dyn Application>, station: Station, queue: usize) {
    let consumer = match application.consumer(&port, station.function) {
        Ok(consumer) => mutants::around(&port, consumer),
        Err(missing) => {
            let detail = || format!("{} cannot be built: {missing}", station.function);
            return port.perform(|world| world.violate(Invariant::Answers, detail));
        }
    };
    // Usually, batches of the saga contain several messages of one partition; larger batches would find the queue
    // empty.
    let runs_saga = port.universe.with(|world| world.saga_queues.contains(&station.queue));
    let max = if runs_saga { 4 } else { 2 };
    let max = port.universe.with(|world| world.queues.spec(queue).batch_size).clamp(1, max);
    // The saga and the outbox start nothing that could end after the deadline, so they need more time.
    let is_handler = !runs_saga && station.queue != CONTROL;
    let mut is_connected = false;
    loop {
        let batch = port.receive_some(queue, max).await;
        is_connected |= port.perform(World::can_connect);
        if !is_connected && port.has(Mutant::ExitsWithoutStore) {
            continue;
        }
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        // A handler always begins the first message of a batch.
        let may_be_short = is_handler && batch.len() == 1;
        let answers = consumer.consume(&deliveries, deadline(&port, may_be_short)).await;
        port.perform(|world| world.check_neighbours(queue, &batch, &answers));
        answer(&port, queue, &batch, answers).await;
    }
}

async fn sweep(port: Port, application: Arc<dyn Application>) {
    let Ok(function) = engine(application.system(), &port).dispatch_outbox(SETTLES) else { return };
    loop {
        let next = port.universe.with(|world| (world.now / SWEEP_EVERY_MS + 1) * SWEEP_EVERY_MS);
        // A sweep that finds nothing changes nothing, so it waits until there is something to find.
        port.stop_at(Kind::Sweep, next).await;
        // The next sweep finds the remaining effects.
        let _ = function.sweep(None).await;
    }
}

impl World {
    /// The additional delay of an operator, which may exceed the lifetime of a ledger item. Without a ledger, a message
    /// may not arrive after its document has expired. Dead letters are kept for 14 days, so there may be none at that
    /// time, and none may follow.
    fn operates_later_by_ms(&mut self) -> u64 {
        const MONTH_MS: u64 = 31 * 24 * 3_600_000;
        let is_quiet = self.has_no_dead_letters() && self.queues.left().is_none();
        let may_be_late = self.duplicate_detection() == Mode::Ledger && is_quiet;
        if may_be_late && !self.rng.one_in(4) { MONTH_MS } else { 0 }
    }
}

/// The minimum delay of an operator.
const OPERATES_AFTER_MS: u64 = 6 * 3_600_000;

async fn operate(port: Port, application: Arc<dyn Application>) {
    let mut engine = engine(application.system(), &port);
    if port.has(Mutant::RequeueWithoutTokens) {
        engine.partitions = Ok(Partitions::of(Arc::new(NoLedger)));
        engine.check_tokens = Ok(Arc::new(NoLedger));
    }
    let Ok(operator) = engine.operator() else { return };
    loop {
        port.stop_at(Kind::Operate, 0).await;
        // The latest delayed notification has arrived by then.
        let comes = port.universe.with(|world| world.now + OPERATES_AFTER_MS);
        port.stop_at(Kind::Operate, comes).await;
        let later = port.universe.with(|world| world.now + world.operates_later_by_ms());
        port.stop_at(Kind::Operate, later).await;
        port.perform(World::begin_batch);
        for outbox in [&operator.stores.saga_outbox, &operator.stores.session_outbox] {
            let pending = outbox.pending(None, usize::MAX).await.unwrap_or_default();
            for (owner, stored) in pending.into_iter().filter_map(|of| Some((of.owner?, of.entries))) {
                for entry in stored.into_iter().flatten().filter(|entry| entry.poisoned) {
                    port.perform(|world| world.requeues(&entry));
                    // Failed work is retried the next time.
                    if let Ok(Readmission::Forgotten) = operator.try_requeue(owner, &entry).await {
                        decide_forgotten(&port, &operator, owner, &entry).await;
                    }
                }
            }
        }
    }
}

/// Treats a message after its partition has forgotten whether the message was processed. The operator knows that from
/// the state: the entry is deleted, or the event is sent with a new grant of its token.
async fn decide_forgotten(port: &Port, operator: &Operator, owner: Owner, entry: &Entry) {
    let Ok(message) = Message::decode(&entry.payload) else { return };
    let was_processed = port.perform(|world| world.checks.changed.contains(&message.id));
    let Some(token) = message.token.filter(|_| !was_processed) else {
        let _ = operator.discard(owner, entry).await;
        return;
    };
    if operator.partitions.tokens.grant(message.partition, &[token], port.now()).await.is_ok() {
        let _ = operator.try_requeue(owner, entry).await;
    }
}

/// The interval at which a worker checks for the next step of an operation.
const STEP: Duration = Duration::from_secs(1);

/// Retries all failures when the operator has requested it, together with another worker.
async fn retry(port: Port, application: Arc<dyn Application>) {
    let Ok(failures) = application.failures(&port) else { return };
    loop {
        port.stop_at(Kind::Retry, 0).await;
        let (per_second, gathers) =
            port.perform(|world| (world.more.pick(&[1, 2, 100]), world.gathers_dead_letters));
        // The next round repeats a step that fails.
        if gathers {
            let _ = failures.collect(None).await;
        }
        // A canary requires the history, which is not simulated.
        let retry =
            Retry { selection: Selection::of(FailureStatus::Open), limit: None, per_second, canary: 0 };
        let _ = failures.retry(retry, "operator").await;
        while let Ok(is_running) = failures.run_step(None).await {
            // An earlier answer may not contain the operation yet.
            if !is_running && port.perform(|world| world.failures.running().is_none()) {
                break;
            }
            port.sleep(STEP).await;
        }
        port.perform(|world| world.is_retrying = false);
    }
}

/// Repeats the command of the current task until it has succeeded. An outage may last for hours, so the operator waits
/// longer each time.
async fn handle_restore(port: Port, application: Arc<dyn Application>) {
    let mut wait = AGAIN;
    loop {
        let (task, what) = port.perform(|world| {
            world.begin_batch();
            (world.restores.task, world.restored())
        });
        let (Some(task), Some(what)) = (task, what) else { return };
        let is_done = match task {
            Task::Settle => application.after_restore(&port, what).await,
            Task::Check => application.check_stored(&port).await,
        };
        if is_done {
            return port.perform(|world| {
                world.restores.task = None;
                world.restores.shift = (task == Task::Settle).then_some(Shift::Resume);
            });
        }
        port.sleep(wait).await;
        wait = (wait * 2).min(MAX_AGAIN);
    }
}

/// Returns the deadline of a call, which the functions know only on Lambda.
fn deadline(port: &Port, may_be_short: bool) -> Option<Timestamp> {
    let left_ms = port.universe.with(|world| {
        if may_be_short && world.has_short_deadlines {
            return Some(world.more.between(50, 150));
        }
        match world.rng.below(3) {
            0 => Some(world.rng.between(500, 50_000)),
            _ => None,
        }
    });
    let left = SignedDuration::from_millis(i64::try_from(left_ms?).ok()?);
    port.now().checked_add(left).ok()
}

/// Answers the deliveries of a batch. A message without an answer becomes visible again after its timeout.
async fn answer(port: &Port, queue: usize, batch: &[ReceivedMessage], answers: Vec<Disposition>) {
    if answers.len() != batch.len() {
        let detail = || format!("{} answers to {} deliveries", answers.len(), batch.len());
        port.perform(|world| world.violate(Invariant::Answers, detail));
    }
    for (received, answer) in batch.iter().zip(answers) {
        port.answer_one(queue, received, &answer).await;
    }
}
