//! The workers: each function in the loop that its event source gives it.

use std::time::Duration;

use ::functions::notify_upload::Notification;
use contracts::{Delivery, Disposition, ProjectId};
use futures::future::BoxFuture;
use jiff::Timestamp;
use outbox::{Queue, Received};

use crate::coverage::{Call, Phase};
use crate::functions;
use crate::mutants;
use crate::options::Invariant;
use crate::point::{Gate, Kind};
use crate::port::Port;
use crate::workload::Intent;
use crate::world::timestamp;

/// A sweep starts on the minute, so that two of them meet.
const SWEEP_EVERY_MS: u64 = 60_000;

/// When to deliver a notification again whose function failed.
const NOTIFY_AGAIN: Duration = Duration::from_secs(1);

/// A kind of worker.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// A client with its request; it is never started again.
    Client(Intent),
    /// `notify-upload`.
    Notify,
    /// `run-saga`.
    Saga,
    /// `parse-references`.
    Parse,
    /// `report-faults`.
    Faults,
    /// `dispatch-outbox` on its queue.
    Control,
    /// `dispatch-outbox` on its schedule.
    Sweep,
}

impl Role {
    /// Its name.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Client(_) => "start-upload",
            Self::Notify => "notify",
            Self::Saga => "replica",
            Self::Parse => "parser",
            Self::Faults => "report-faults",
            Self::Control => "control",
            Self::Sweep => "sweep",
        }
    }

    /// Whether a crashed one is started again.
    pub(crate) fn restarts(&self) -> bool {
        !matches!(self, Self::Client(_))
    }

    /// A worker of this kind, which works until it is dropped.
    pub(crate) fn start(&self, port: Port) -> BoxFuture<'static, ()> {
        match self {
            Self::Client(intent) => Box::pin(client(port, intent.clone())),
            Self::Notify => Box::pin(notify(port)),
            Self::Saga => Box::pin(saga(port)),
            Self::Parse => Box::pin(parse(port)),
            Self::Faults => Box::pin(faults(port)),
            Self::Control => Box::pin(control(port)),
            Self::Sweep => Box::pin(sweep(port)),
        }
    }
}

async fn client(port: Port, intent: Intent) {
    let function = functions::start_upload(&port);
    Gate::new(&port, Kind::Call(Call::HostSleep, Phase::Before), intent.begins_ms).await;
    let project = ProjectId::from_uuid(uuid::Uuid::nil());
    let Ok(prepared) = function.prepare(project, &intent.request()).await else { return };
    let announced = &prepared.announced;
    port.perform(|world| {
        world.prepared(announced, &intent);
        if intent.remembers {
            world.upload_all(announced, &intent);
        }
    });
    if function.announce(&prepared).await.is_err() {
        return;
    }
    port.perform(|world| {
        world.announced(announced.search_id);
        if !intent.remembers {
            world.upload_all(announced, &intent);
        }
    });
    let Some(after_ms) = intent.withdraws_after_ms else { return };
    let then = port.universe.with(|world| world.now + after_ms);
    Gate::new(&port, Kind::Call(Call::HostSleep, Phase::Before), then).await;
    port.perform(|world| world.withdraws(announced.search_id));
    // What came of it, the client may or may not learn.
    let _ = function.withdraw(announced.search_id).await;
}

async fn notify(port: Port) {
    let function = functions::notify_upload(&port);
    loop {
        for received in port.receive(Queue::Uploads, 4).await {
            let event = serde_json::from_str(&received.delivery.body).unwrap_or_default();
            let notifications = Notification::read_all(&event).unwrap_or_default();
            let answer = match function.handle(&notifications).await {
                Ok(()) => Disposition::Acknowledge,
                Err(error) => Disposition::Retry { after: NOTIFY_AGAIN, reason: error.to_string() },
            };
            port.answer(Queue::Uploads, &received, answer).await;
        }
    }
}

async fn saga(port: Port) {
    let function = functions::run_saga(&port);
    loop {
        let batch = port.receive(Queue::Saga, 4).await;
        let deliveries = deliveries(&batch);
        let answers = function.handle(&deliveries, deadline(&port)).await;
        let answers = mutants::insist(&port, &function, &deliveries, answers).await;
        settle(&port, Queue::Saga, &batch, answers).await;
    }
}

async fn parse(port: Port) {
    let function = functions::parse_references(&port);
    loop {
        let batch = port.receive(Queue::Parse, 2).await;
        let answers = function.handle(&deliveries(&batch)).await;
        settle(&port, Queue::Parse, &batch, answers).await;
    }
}

async fn faults(port: Port) {
    let function = functions::report_faults(&port);
    loop {
        let batch = port.receive(Queue::ParseDead, 2).await;
        let answers = function.handle(&deliveries(&batch)).await;
        settle(&port, Queue::ParseDead, &batch, answers).await;
    }
}

async fn control(port: Port) {
    let function = functions::dispatch_outbox(&port);
    loop {
        let batch = port.receive(Queue::Control, 2).await;
        let answers = function.handle(&deliveries(&batch)).await;
        settle(&port, Queue::Control, &batch, answers).await;
    }
}

async fn sweep(port: Port) {
    let function = functions::dispatch_outbox(&port);
    loop {
        let next = port.universe.with(|world| (world.now / SWEEP_EVERY_MS + 1) * SWEEP_EVERY_MS);
        // A sweep that finds nothing changes nothing, so it waits until there is something to find.
        Gate::new(&port, Kind::Sweep, next).await;
        // What it did not get to is found by the next one.
        let _ = function.sweep().await;
    }
}

/// When the time of a call is nearly over: the functions know it on Lambda, and nowhere else.
fn deadline(port: &Port) -> Option<Timestamp> {
    let left_ms = port.universe.with(|world| match world.rng.below(3) {
        0 => Some(world.now + world.rng.between(500, 50_000)),
        _ => None,
    });
    left_ms.map(timestamp)
}

fn deliveries(batch: &[Received]) -> Vec<Delivery> {
    batch.iter().map(|received| received.delivery.clone()).collect()
}

async fn settle(port: &Port, queue: Queue, batch: &[Received], answers: Vec<Disposition>) {
    if answers.len() != batch.len() {
        let detail = || format!("{} answers to {} deliveries", answers.len(), batch.len());
        port.perform(|world| world.violate(Invariant::Answers, detail));
    }
    for (received, answer) in batch.iter().zip(answers) {
        port.answer(queue, received, answer).await;
    }
}
