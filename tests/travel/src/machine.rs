//! The travel booking as a state machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use jiff::Timestamp;
use messages::{PartitionKey, Reporter, messages};
use outbox::session::CommitError;
use outbox::{Key, View};
use saga::engine::OpenSession;
use saga::{
    Advance, Decision, Engine, EntryPoint, Event, Function, MissingSetting, ReportDeadLetters, SAGA, Saga,
    Service, Source, System, Views,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use steps::ClientError;
use uuid::Uuid;

use crate::api::{BookingApi, Reservation};
use crate::{
    Agency, BUDGETS, News, Ports, QUEUES, SENDS, SUPPLIERS, SUPPLIERS_DEAD, TIME_TO_APPROVE, TIME_TO_RESERVE,
    TripRequest, refund, withdraw,
};

/// A part of a trip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The flight.
    Flight,
    /// The hotel.
    Hotel,
    /// The car.
    Car,
}

messages! {
    /// The events of a trip.
    #[allow(missing_docs, reason = "the names of the fields are clear")]
    pub enum TripEvent of "travel" to SAGA {
        /// A traveller requested it.
        Requested { number: String, trip: TripRequest, at: Timestamp } = 2,
        /// A part is reserved.
        Reserved { part: Part, code: String } = 1,
        /// A supplier refused a part.
        Refused { part: Part, reason: String } = 1,
        /// The command to reserve a part was dead-lettered.
        NotReserved { part: Part } = 1,
        /// A part is released.
        Released { part: Part } = 1,
        /// The price was returned to the budget.
        Refunded {} = 1,
        /// The trip was approved.
        Approved { by: String } = 1,
        /// The trip was rejected.
        Rejected { by: String } = 1,
        /// The traveller cancelled.
        Cancelled { by: String } = 1,
        /// The suppliers or the approval took too long.
        DeadlinePassed {} = 1,
    }
    upcast without_car
}

messages! {
    /// Commands for the suppliers.
    #[allow(missing_docs, reason = "the names of the fields are clear")]
    pub enum SupplierCommand of "travel" to SUPPLIERS {
        /// Reserve an offer.
        Reserve { part: Part, offer: String } = 1,
        /// Release it.
        Release { part: Part } = 1,
    }
}

messages! {
    /// Commands for the budgets.
    #[allow(missing_docs, reason = "the names of the fields are clear")]
    pub enum BudgetCommand of "travel" to BUDGETS {
        /// Return the price of a trip.
        Refund { trip: TripRequest } = 1,
    }
}

/// Version 1 had no cars.
fn without_car(_: &str, _: u16, mut data: Value) -> Result<Value, String> {
    data["trip"]["car"] = Value::Null;
    Ok(data)
}

/// The state of a trip.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Trip {
    /// The number of the trip; empty until it is requested.
    pub number: String,
    /// The request.
    pub request: TripRequest,
    /// When the trip was requested.
    pub requested_at: Timestamp,
    /// The parts of the trip.
    pub parts: BTreeMap<Part, Progress>,
    /// The name of the approver.
    pub approved_by: Option<String>,
    /// The phase of the trip.
    #[serde(flatten)]
    pub phase: Phase,
}

/// The state of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Progress {
    /// The supplier was asked to reserve the part.
    Requested,
    /// The part is reserved under this code.
    Reserved(String),
    /// The supplier was asked to release the part.
    Releasing,
    /// The part is not reserved.
    Free,
}

/// The phase of a trip.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Phase {
    /// The trip is unknown.
    #[default]
    New,
    /// A signal has overtaken the request.
    Signalled {
        /// The reason why it is abandoned; `None` if it is approved.
        stop: Option<String>,
    },
    /// The trip's parts are being reserved.
    Reserving,
    /// The trip waits for the approval.
    Approving,
    /// The trip's parts are being released.
    Releasing {
        /// Why.
        reason: String,
    },
    /// The price is being returned.
    Refunding {
        /// Why.
        reason: String,
    },
    /// The trip is booked.
    Booked {
        /// When.
        at: Timestamp,
    },
    /// The trip is abandoned.
    Abandoned {
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}

/// The timer of the current phase.
const DEADLINE: &str = "deadline";

/// The saga.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trips;

impl Saga for Trips {
    const NAME: &'static str = "trips";
    type State = Trip;
    type Event = TripEvent;

    fn transition(&self, trip: &Trip, event: &Event<'_, TripEvent>, now: Timestamp) -> Decision<Trip> {
        use TripEvent::*;
        match (&trip.phase, event.body) {
            (Phase::New | Phase::Signalled { .. }, Requested { number, trip: request, at }) => {
                requested(trip, number, request, *at, now)
            }
            // Queues do not preserve the order, and a signal is not sent again.
            (Phase::New | Phase::Signalled { .. }, Approved { by }) => approved_early(trip, by),
            (Phase::New | Phase::Signalled { .. }, Rejected { by } | Cancelled { by }) => {
                let stop = Some(format!("stopped by {by}"));
                to(Trip { phase: Phase::Signalled { stop }, ..trip.clone() }, "stopped before the request")
                    .into()
            }
            (Phase::Reserving, Reserved { part, code }) => reserved(trip, *part, code, now),
            (Phase::Reserving, Refused { part, reason }) => {
                stop(&with(trip, *part, Progress::Free), format!("a supplier refused: {reason}"))
            }
            (Phase::Reserving, NotReserved { part })
                if trip.parts.get(part) == Some(&Progress::Requested) =>
            {
                stop(trip, "a supplier does not answer".into())
            }
            (Phase::Reserving, Approved { by }) if trip.approved_by.is_none() => {
                to(Trip { approved_by: Some(by.clone()), ..trip.clone() }, "approved early").into()
            }
            (Phase::Approving, Approved { by }) => {
                booked(&Trip { approved_by: Some(by.clone()), ..trip.clone() }, now).cancel(DEADLINE).into()
            }
            (Phase::Reserving | Phase::Approving, Rejected { by } | Cancelled { by }) => {
                stop(trip, format!("stopped by {by}"))
            }
            (Phase::Reserving | Phase::Approving, DeadlinePassed {}) => {
                stop(trip, "the deadline has passed".into())
            }
            (Phase::Releasing { reason }, Released { part }) => released(trip, *part, reason),
            (Phase::Refunding { reason }, Refunded {}) => {
                let phase = Phase::Abandoned { reason: reason.clone(), at: now };
                end(Trip { phase, ..trip.clone() }, "abandoned").into()
            }
            _ => Decision::ignore("not expected in this phase"),
        }
    }

    fn ended_at(&self, trip: &Trip) -> Option<Timestamp> {
        match trip.phase {
            Phase::Booked { at } | Phase::Abandoned { at, .. } => Some(at),
            _ => None,
        }
    }

    fn state_name(&self, trip: &Trip) -> Option<&'static str> {
        Some(match trip.phase {
            Phase::New => "new",
            Phase::Signalled { .. } => "signalled",
            Phase::Reserving => "reserving",
            Phase::Approving => "approving",
            Phase::Releasing { .. } => "releasing",
            Phase::Refunding { .. } => "refunding",
            Phase::Booked { .. } => "booked",
            Phase::Abandoned { .. } => "abandoned",
        })
    }

    fn view(&self, partition: PartitionKey, trip: &Trip) -> Option<View> {
        let view = View::of(partition, trip, self.ended_at(trip).is_some()).ok()?;
        let list = Uuid::new_v5(&Uuid::nil(), trip.request.traveller.as_bytes());
        Some(View { list, created_at: trip.requested_at, ..view })
    }

    fn tokens(&self, events: &[&TripEvent]) -> usize {
        let tokens = |event: &&TripEvent| match event {
            TripEvent::Requested { .. } => 4,
            TripEvent::Refused { .. } | TripEvent::Rejected { .. } | TripEvent::Cancelled { .. } => 3,
            TripEvent::NotReserved { .. } | TripEvent::DeadlinePassed {} => 3,
            TripEvent::Reserved { .. } | TripEvent::Released { .. } => 1,
            TripEvent::Approved { .. } | TripEvent::Refunded {} => 0,
        };
        events.iter().map(tokens).sum()
    }
}

fn to(next: Trip, why: impl Into<String>) -> Advance<Trip> {
    Decision::to(next, why).show()
}

fn requested(
    trip: &Trip,
    number: &str,
    request: &TripRequest,
    at: Timestamp,
    now: Timestamp,
) -> Decision<Trip> {
    let parts = offers(request).into_keys().map(|part| (part, Progress::Requested));
    let next = Trip {
        number: number.to_owned(),
        request: request.clone(),
        requested_at: at,
        parts: parts.collect(),
        approved_by: trip.approved_by.clone(),
        phase: Phase::Reserving,
    };
    if let Phase::Signalled { stop: Some(reason) } = &trip.phase {
        return refund_price(Trip { parts: BTreeMap::new(), ..next }, reason.clone()).into();
    }
    let due_at = now.saturating_add(TIME_TO_RESERVE).unwrap_or(Timestamp::MAX);
    let asked = offers(request).into_iter().fold(to(next, "reserving"), |asked, (part, offer)| {
        asked.ask(&SupplierCommand::Reserve { part, offer })
    });
    asked.schedule(DEADLINE, due_at, &TripEvent::DeadlinePassed {}).into()
}

fn offers(request: &TripRequest) -> BTreeMap<Part, String> {
    let (flight, hotel) = (request.flight.clone(), request.hotel.clone());
    let fixed = [(Part::Flight, flight), (Part::Hotel, hotel)];
    fixed.into_iter().chain(request.car.clone().map(|car| (Part::Car, car))).collect()
}

fn approved_early(trip: &Trip, by: &str) -> Decision<Trip> {
    let stop = match &trip.phase {
        Phase::Signalled { stop } => stop.clone(),
        _ => None,
    };
    let next = Trip { approved_by: Some(by.to_owned()), phase: Phase::Signalled { stop }, ..trip.clone() };
    to(next, "approved before the request").into()
}

fn with(trip: &Trip, part: Part, progress: Progress) -> Trip {
    let mut next = trip.clone();
    next.parts.insert(part, progress);
    next
}

fn reserved(trip: &Trip, part: Part, code: &str, now: Timestamp) -> Decision<Trip> {
    let next = with(trip, part, Progress::Reserved(code.to_owned()));
    if !next.parts.values().all(|progress| matches!(progress, Progress::Reserved(_))) {
        return to(next, "reserved a part").into();
    }
    if !next.request.needs_approval || next.approved_by.is_some() {
        return booked(&next, now).cancel(DEADLINE).into();
    }
    let due_at = now.saturating_add(TIME_TO_APPROVE).unwrap_or(Timestamp::MAX);
    to(Trip { phase: Phase::Approving, ..next }, "waiting for the approval")
        .schedule(DEADLINE, due_at, &TripEvent::DeadlinePassed {})
        .into()
}

fn booked(trip: &Trip, now: Timestamp) -> Advance<Trip> {
    end(Trip { phase: Phase::Booked { at: now }, ..trip.clone() }, "booked")
}

fn end(trip: Trip, why: &str) -> Advance<Trip> {
    let is_booked = matches!(trip.phase, Phase::Booked { .. });
    let news = News::TripEnded { number: trip.number.clone(), is_booked };
    to(trip, why).send(&news)
}

/// Releases every part that is reserved or may be.
fn stop(trip: &Trip, reason: String) -> Decision<Trip> {
    let mut next = trip.clone();
    let is_free = |progress: &Progress| *progress == Progress::Free;
    let parts: Vec<Part> =
        next.parts.iter().filter(|(_, progress)| !is_free(progress)).map(|(part, _)| *part).collect();
    if parts.is_empty() {
        return refund_price(next, reason).cancel(DEADLINE).into();
    }
    for part in &parts {
        next.parts.insert(*part, Progress::Releasing);
    }
    next.phase = Phase::Releasing { reason: reason.clone() };
    let asked =
        parts.into_iter().fold(to(next, reason), |asked, part| asked.ask(&SupplierCommand::Release { part }));
    asked.cancel(DEADLINE).into()
}

fn released(trip: &Trip, part: Part, reason: &str) -> Decision<Trip> {
    let next = with(trip, part, Progress::Free);
    match next.parts.values().all(|progress| *progress == Progress::Free) {
        true => refund_price(next, reason.to_owned()).into(),
        false => to(next, "released a part").into(),
    }
}

fn refund_price(trip: Trip, reason: String) -> Advance<Trip> {
    let refund = BudgetCommand::Refund { trip: trip.request.clone() };
    to(Trip { phase: Phase::Refunding { reason }, ..trip }, "returning the price").ask(&refund)
}

/// Reserves and releases at a supplier.
struct Suppliers(Arc<dyn BookingApi>);

#[async_trait]
impl Handler for Suppliers {
    type Command = SupplierCommand;

    async fn handle(
        &self,
        request: &CommandMessage<SupplierCommand>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let key = |part: &Part| format!("{}/{part:?}", request.message.partition).to_lowercase();
        match &request.command {
            SupplierCommand::Reserve { part, offer } => match self.0.reserve(&key(part), offer).await? {
                Reservation::Reserved(code) => {
                    HandlerResult::completed("reserved").reply(&TripEvent::Reserved { part: *part, code })
                }
                Reservation::Refused(reason) => {
                    HandlerResult::completed("refused").reply(&TripEvent::Refused { part: *part, reason })
                }
            },
            SupplierCommand::Release { part } => {
                self.0.release(&key(part)).await?;
                HandlerResult::completed("released").reply(&TripEvent::Released { part: *part })
            }
        }
    }
}

/// The event for a command that the suppliers could not execute.
struct SupplierFaults;

impl ReportDeadLetters for SupplierFaults {
    type Command = SupplierCommand;
    type Event = TripEvent;

    fn event(&self, command: &SupplierCommand, _: &str) -> Option<TripEvent> {
        match command {
            SupplierCommand::Reserve { part, .. } => Some(TripEvent::NotReserved { part: *part }),
            SupplierCommand::Release { .. } => None,
        }
    }
}

/// Returns prices to budgets.
struct Budgets(EntryPoint);

#[async_trait]
impl Handler for Budgets {
    type Command = BudgetCommand;

    async fn handle(
        &self,
        request: &CommandMessage<BudgetCommand>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let BudgetCommand::Refund { trip } = &request.command;
        let partition = request.message.partition;
        refund(&self.0, partition, &partition.to_string(), trip).await?;
        HandlerResult::completed("refunded").reply(&TripEvent::Refunded {})
    }
}

static TRIPS: Function<Ports> = Function {
    name: "trips",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &SENDS,
    drains: &[],
    build: Some(|ports| ports.engine.run("trips", ports.defect.into_saga(Trips))),
};
static SUPPLIERS_FUNCTION: Function<Ports> = Function {
    name: "suppliers",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(SUPPLIERS),
    sends: &[SAGA],
    drains: &[],
    build: Some(|ports| ports.engine.guard("suppliers", Suppliers(Arc::clone(&ports.api)))),
};
static SUPPLIER_FAULTS: Function<Ports> = Function {
    name: "supplier-faults",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SUPPLIERS_DEAD),
    sends: &[SAGA],
    drains: &[],
    build: Some(|ports| ports.engine.report_dead_letters("supplier-faults", &SYSTEM, SupplierFaults)),
};
static BUDGETS_FUNCTION: Function<Ports> = Function {
    name: "budgets",
    services: &[Service::DATABASE, Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(BUDGETS),
    sends: &[SAGA],
    drains: &[],
    build: Some(|ports| ports.engine.guard("budgets", Budgets(ports.engine.entry_point("budgets")?))),
};
static DISPATCH_OUTBOX: Function<Ports> = Function::dispatch_outbox(&SENDS);
/// The application.
pub static SYSTEM: System<Ports> = System {
    name: "travel",
    queues: &QUEUES,
    functions: &[&TRIPS, &SUPPLIERS_FUNCTION, &SUPPLIER_FAULTS, &BUDGETS_FUNCTION, &DISPATCH_OUTBOX],
};

/// The interface for clients.
pub struct Desk {
    entry: EntryPoint,
    views: Views<Trips>,
}

/// Returns the interface for clients.
pub fn agency(engine: &Engine) -> Result<Desk, MissingSetting> {
    Ok(Desk { entry: engine.entry_point("agency")?, views: engine.views(Trips)? })
}

/// Returns the partition of a trip.
pub fn partition(number: &str) -> PartitionKey {
    PartitionKey::named(Trips::NAME, number)
}

impl Desk {
    async fn try_request(&self, number: &str, request: &TripRequest) -> Result<(), ClientError> {
        let record = Key::new("trip", number);
        let mut session = self.session(number);
        if let Some(found) = session.read(record.clone()).await? {
            return if found.body == json!(request) { Ok(()) } else { Err(ClientError::Conflict) };
        }
        session.write(record, json!(request));
        withdraw(&mut session, request).await?;
        let (number, at) = (number.to_owned(), self.views.host.now());
        session.send(&TripEvent::Requested { number: number.clone(), trip: request.clone(), at })?;
        let trip = Trip {
            number,
            request: request.clone(),
            requested_at: at,
            phase: Phase::Reserving,
            ..Trip::default()
        };
        if let Some(view) = Trips.view(partition(&trip.number), &trip) {
            session.show(view);
        }
        session.commit().await?;
        Ok(())
    }

    async fn send(&self, number: &str, event: TripEvent) -> Result<(), ClientError> {
        let view = self.views.view(partition(number)).await?.ok_or(ClientError::Unknown)?;
        if view.ended {
            return Err(ClientError::Ended);
        }
        let mut session = self.session(number);
        session.send(&event)?;
        session.commit().await?;
        Ok(())
    }

    fn session(&self, number: &str) -> OpenSession<'_> {
        self.entry.session(partition(number))
    }
}

#[async_trait]
impl Agency for Desk {
    async fn request(&self, number: &str, request: &TripRequest) -> Result<(), ClientError> {
        let is_conflict = |error: &ClientError| matches!(error, ClientError::Commit(CommitError::Changed));
        self.entry.repeat_conflicts(|| self.try_request(number, request), is_conflict).await
    }

    async fn approve(&self, number: &str, by: &str) -> Result<(), ClientError> {
        self.send(number, TripEvent::Approved { by: by.to_owned() }).await
    }

    async fn reject(&self, number: &str, by: &str) -> Result<(), ClientError> {
        self.send(number, TripEvent::Rejected { by: by.to_owned() }).await
    }

    async fn cancel(&self, number: &str, by: &str) -> Result<(), ClientError> {
        self.send(number, TripEvent::Cancelled { by: by.to_owned() }).await
    }

    async fn trip(&self, number: &str) -> Result<Value, ClientError> {
        Ok(self.views.view(partition(number)).await?.ok_or(ClientError::Unknown)?.body)
    }
}
