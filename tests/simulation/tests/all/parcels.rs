//! Two sagas: a batch starts a child for each of its parcels, recalls them, and waits for their replies.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use messages::{PartitionKey, Queue, QueueSpec, Reporter, messages};
use outbox::View;
use saga::{
    Advance, Decision, Engine, Event, Function, Instance, Requester, SAGA, Saga, Service, Source, System,
};
use serde::{Deserialize, Serialize};
use simulation::{Access, Bounds, Call, CheckResult, Mode, OtherSaga, Rest, Rng, Workload};
use uuid::Uuid;

const PARCELS: Queue = Queue::named("parcels");
const CARRIER: Queue = Queue::named("carrier");

messages! {
    /// The events of a batch.
    pub(crate) enum BatchEvent of "parcels" to SAGA {
        Announced { parcels: u8 } = 1,
        BatchRecalled {} = 1,
        BatchNudged {} = 1,
        ParcelDone { parcel: u8, delivered: bool } = 1,
        RecallAnswered { parcel: u8 } = 1,
    }
}

messages! {
    /// The events of a parcel.
    pub(crate) enum ParcelEvent of "parcels" to PARCELS {
        Ordered { parcel: u8 } = 1,
        Recalled { parcel: u8 } = 1,
        Nudged {} = 1,
        Carried {} = 1,
        PatienceEnded {} = 1,
    }
}

messages! {
    /// Commands for the carrier.
    pub(crate) enum Command of "parcels" to CARRIER {
        Carry { parcel: u8 } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Batch {
    #[default]
    New,
    Waiting {
        open: BTreeSet<u8>,
        delivered: u8,
        failed: u8,
    },
    Over {
        delivered: u8,
        failed: u8,
        at: Timestamp,
    },
}

pub(crate) struct Batches;

impl Saga for Batches {
    const NAME: &'static str = "batches";
    type State = Batch;
    type Event = BatchEvent;

    fn transition(&self, batch: &Batch, event: &Event<'_, BatchEvent>, now: Timestamp) -> Decision<Batch> {
        match (batch, event.body) {
            (Batch::New, BatchEvent::Announced { parcels }) => {
                let open: BTreeSet<u8> = (0..*parcels).collect();
                let waiting = Batch::Waiting { open: open.clone(), delivered: 0, failed: 0 };
                let advance = Decision::to(waiting, "ordered the parcels").show();
                let order = |advance: Advance<Batch>, parcel: u8| {
                    advance.request(&parcel_of(event.partition, parcel), &ParcelEvent::Ordered { parcel })
                };
                open.into_iter().fold(advance, order).into()
            }
            (Batch::Waiting { open, .. }, BatchEvent::BatchRecalled {}) => {
                // A parcel that ends before its recall arrives does not answer, so the batch does not wait for answers.
                let recall = |advance: Advance<Batch>, parcel: &u8| {
                    let recalled = ParcelEvent::Recalled { parcel: *parcel };
                    advance.request(&parcel_of(event.partition, *parcel), &recalled)
                };
                open.iter().fold(Decision::to(batch.clone(), "recalled the parcels"), recall).into()
            }
            (
                Batch::Waiting { open, delivered, failed },
                BatchEvent::ParcelDone { parcel, delivered: good },
            ) => {
                let mut open = open.clone();
                open.remove(parcel);
                let (delivered, failed) = (delivered + u8::from(*good), failed + u8::from(!good));
                match open.is_empty() {
                    true => {
                        Decision::to(Batch::Over { delivered, failed, at: now }, "all are done").show().into()
                    }
                    false => Decision::to(Batch::Waiting { open, delivered, failed }, "one is done").into(),
                }
            }
            (Batch::Waiting { open, .. }, BatchEvent::BatchNudged {}) => {
                let nudge = |advance: Advance<Batch>, parcel: &u8| {
                    advance.notify(&parcel_of(event.partition, *parcel), &ParcelEvent::Nudged {})
                };
                open.iter().fold(Decision::to(batch.clone(), "nudged the parcels"), nudge).into()
            }
            (Batch::Waiting { .. }, BatchEvent::RecallAnswered { .. }) => {
                Decision::to(batch.clone(), "a parcel was recalled").into()
            }
            _ => Decision::ignore("nothing to do"),
        }
    }

    fn ended_at(&self, batch: &Batch) -> Option<Timestamp> {
        if let Batch::Over { at, .. } = batch { Some(*at) } else { None }
    }

    fn view(&self, partition: PartitionKey, batch: &Batch) -> Option<View> {
        View::of(partition, batch, self.ended_at(batch).is_some()).ok()
    }

    fn tokens(&self, events: &[&BatchEvent]) -> usize {
        2 * events.len()
    }
}

/// The first parcel has the same id as its batch.
fn parcel_of(batch: PartitionKey, parcel: u8) -> Instance<Parcels> {
    match parcel {
        0 => Instance::with_id(batch.as_uuid()),
        _ => Instance::with_id(Uuid::new_v5(&batch.as_uuid(), &[parcel])),
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) enum Parcel {
    #[default]
    New,
    Carrying {
        parcel: u8,
        requester: Requester<BatchEvent>,
        nudges: u8,
    },
    Over {
        delivered: bool,
        at: Timestamp,
    },
}

pub(crate) struct Parcels;

impl Saga for Parcels {
    const NAME: &'static str = "parcels";
    type State = Parcel;
    type Event = ParcelEvent;

    fn transition(&self, state: &Parcel, event: &Event<'_, ParcelEvent>, now: Timestamp) -> Decision<Parcel> {
        match (state, event.body) {
            (Parcel::New, ParcelEvent::Ordered { parcel }) => {
                let Some(requester) = event.requester() else {
                    return Decision::reject("no batch has requested it");
                };
                let patience = SignedDuration::from_mins(if is_kept(*parcel) { 40 } else { 1 });
                let due_at = now + patience;
                Decision::to(Parcel::Carrying { parcel: *parcel, requester, nudges: 0 }, "ordered")
                    .ask(&Command::Carry { parcel: *parcel })
                    .schedule("patience", due_at, &ParcelEvent::PatienceEnded {})
                    .show()
                    .into()
            }
            (Parcel::Carrying { parcel, requester, .. }, ParcelEvent::Carried {}) => {
                done(*parcel, requester, true, now).into()
            }
            (Parcel::Carrying { parcel, requester, .. }, ParcelEvent::PatienceEnded {}) => {
                done(*parcel, requester, false, now).into()
            }
            (Parcel::Carrying { parcel, requester, .. }, ParcelEvent::Recalled { .. }) => {
                answer_recall(done(*parcel, requester, false, now), event)
            }
            // Each nudge changes the state, so the check finds a nudge that takes effect twice.
            (Parcel::Carrying { parcel, requester, nudges }, ParcelEvent::Nudged {}) => {
                let (parcel, requester, nudges) = (*parcel, requester.clone(), nudges + 1);
                Decision::to(Parcel::Carrying { parcel, requester, nudges }, "nudged").into()
            }
            // An ended instance replies too.
            (Parcel::Over { .. }, ParcelEvent::Recalled { .. })
                if event.requester::<BatchEvent>().is_some() =>
            {
                answer_recall(Decision::to(state.clone(), "it was recalled too late"), event)
            }
            _ => Decision::ignore("nothing to do"),
        }
    }

    fn ended_at(&self, state: &Parcel) -> Option<Timestamp> {
        if let Parcel::Over { at, .. } = state { Some(*at) } else { None }
    }

    fn view(&self, partition: PartitionKey, state: &Parcel) -> Option<View> {
        View::of(partition, state, self.ended_at(state).is_some()).ok()
    }

    fn tokens(&self, events: &[&ParcelEvent]) -> usize {
        2 * events.len()
    }
}

fn done(parcel: u8, requester: &Requester<BatchEvent>, delivered: bool, now: Timestamp) -> Advance<Parcel> {
    Decision::to(Parcel::Over { delivered, at: now }, "done")
        .reply(requester, &BatchEvent::ParcelDone { parcel, delivered })
        .cancel("patience")
        .show()
}

/// Answers a recall, unless a client has sent it.
fn answer_recall(advance: Advance<Parcel>, event: &Event<'_, ParcelEvent>) -> Decision<Parcel> {
    match (event.body, event.requester()) {
        (ParcelEvent::Recalled { parcel }, Some(requester)) => {
            advance.reply(&requester, &BatchEvent::RecallAnswered { parcel: *parcel }).into()
        }
        _ => advance.into(),
    }
}

/// The carrier keeps the parcel, which waits long enough for events that are sent again.
fn is_kept(parcel: u8) -> bool {
    parcel == 1
}

struct Carrier;

#[async_trait]
impl Handler for Carrier {
    type Command = Command;

    async fn handle(
        &self,
        asked: &CommandMessage<Command>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        match asked.command {
            Command::Carry { parcel } if is_kept(parcel) => Ok(HandlerResult::completed("kept")),
            Command::Carry { .. } => HandlerResult::completed("carried").reply(&ParcelEvent::Carried {}),
        }
    }
}

static BATCHES: Function<Engine> = Function {
    name: "batches",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, PARCELS],
    drains: &[],
    build: Some(|engine| engine.run("batches", Batches)),
};

static PARCEL_SAGA: Function<Engine> = Function {
    name: "parcels",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(PARCELS),
    sends: &[SAGA, CARRIER],
    drains: &[],
    build: Some(|engine| engine.run("parcels", Parcels)),
};

static CARRIES: Function<Engine> = Function {
    name: "carrier",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(CARRIER),
    sends: &[PARCELS],
    drains: &[],
    build: Some(|engine| engine.guard("carrier", Carrier)),
};

static SYSTEM: System<Engine> = System {
    name: "parcels",
    queues: &[
        QueueSpec::with_consumer(SAGA, Queue::named("saga-dead"), 20, 30, 10, 2),
        QueueSpec::without_consumer(Queue::named("saga-dead")),
        QueueSpec::with_consumer(PARCELS, Queue::named("parcels-dead"), 20, 30, 10, 2),
        QueueSpec::without_consumer(Queue::named("parcels-dead")),
        QueueSpec::with_consumer(CARRIER, Queue::named("carrier-dead"), 20, 30, 10, 2),
        QueueSpec::without_consumer(Queue::named("carrier-dead")),
    ],
    functions: &[&BATCHES, &PARCEL_SAGA, &CARRIES],
};

/// The workload.
#[derive(Clone, Copy, Default)]
pub(crate) struct Shipments;

impl Workload for Shipments {
    type Saga = Batches;
    type Ports = Engine;
    type World = ();

    fn saga(&self) -> Batches {
        Batches
    }

    fn others(&self) -> Vec<OtherSaga> {
        vec![OtherSaga::new(Parcels, |_| false)]
    }

    fn system(&self) -> &'static System<Engine> {
        &SYSTEM
    }

    fn ports(&self, engine: Engine, _: Access<()>) -> Engine {
        engine
    }

    /// Each parcel replies in time.
    fn may_wait(&self, batch: &Batch) -> bool {
        matches!(batch, Batch::Waiting { .. })
    }

    fn bounds(&self, (): &(), _: PartitionKey) -> Bounds {
        // An attempt whose write fails leaves the token that it granted.
        Bounds { awaited: 6, granted: 100, ..Bounds::default() }
    }

    fn unused(&self) -> &'static [Call] {
        &[Call::VIEWS_READ, Call::RECORDS_READ, Call::RECORDS_ADVANCE]
    }

    fn client(&self, engine: Engine, access: Access<()>, mut rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            for _ in 0..rng.between(1, 2) {
                let batch = PartitionKey::from_uuid(engine.host.fresh_id());
                let parcels = if rng.one_in(2) { 1 } else { 2 };
                let announced = send(&engine, batch, &BatchEvent::Announced { parcels }).await;
                for _ in 0..if announced { rng.below(5) } else { 0 } {
                    access.sleep(Duration::from_millis(rng.between(0, 400_000))).await;
                    send(&engine, batch, &BatchEvent::BatchNudged {}).await;
                }
                if announced && rng.one_in(2) {
                    access.sleep(Duration::from_millis(rng.between(0, 3_000))).await;
                    // Without a ledger, a recall that overtakes its order is ignored, and its duplicate is not.
                    let whole = rng.one_in(2) && access.mode() == Mode::Ledger;
                    recall(&engine, batch, whole).await;
                }
            }
        })
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        for batch in rest.partitions() {
            let Some(Batch::Over { delivered, .. }) = rest.state(batch) else { continue };
            let parcels = (0..2).map(|parcel| parcel_of(batch, parcel).partition());
            let states = parcels.clone().filter_map(|parcel| rest.state_of::<Parcels>(parcel));
            let arrived =
                states.filter(|state| matches!(state, Parcel::Over { delivered: true, .. })).count();
            if arrived < usize::from(*delivered) {
                return Err(format!("{arrived} parcels of {batch} arrived, not {delivered}").into());
            }
            let carried =
                |parcel| rest.effects(parcel).filter(|message| message.body.name == "Carry").count();
            if let Some(parcel) = parcels.clone().find(|parcel| carried(*parcel) > 1) {
                return Err(format!("parcel {parcel} was carried twice").into());
            }
        }
        Ok(())
    }

    fn succeeded(&self, batch: &Batch) -> bool {
        matches!(batch, Batch::Over { failed: 0, .. })
    }
}

/// Sends an event to a batch. Returns `true` if it certainly arrives.
async fn send(engine: &Engine, batch: PartitionKey, event: &BatchEvent) -> bool {
    let Ok(entry) = engine.entry_point("desk") else { return false };
    let mut session = entry.session(batch);
    session.send(event).is_ok() && session.commit().await.is_ok()
}

/// Recalls a batch, or one of its parcels alone.
async fn recall(engine: &Engine, batch: PartitionKey, whole: bool) {
    let Ok(entry) = engine.entry_point("desk") else { return };
    let mut session = entry.session(batch);
    let sent = match whole {
        true => session.notify(&Instance::<Batches>::at(batch), &BatchEvent::BatchRecalled {}),
        false => session.notify(&parcel_of(batch, 0), &ParcelEvent::Recalled { parcel: 0 }),
    };
    if sent.is_ok() {
        // A lost recall changes nothing.
        let _ = session.commit().await;
    }
}
