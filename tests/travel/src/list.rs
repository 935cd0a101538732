//! The travel booking as a list of steps.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use saga::engine::OpenSession;
use saga::{Advance, Engine, EntryPoint, Function, MissingSetting, SAGA, Service, Source, System};
use serde_json::{Value, json};
use steps::{
    Activity, ActivityError, Call, Client, ClientError, InDoubt, RetryPolicy, Run, StepMachine, StepSaga,
    Steps, dead_letters_function, par, report_dead_letters, seq, step, wait, worker, worker_function,
};
use uuid::Uuid;

use crate::api::{BookingApi, Reservation};
use crate::{
    Agency, BUDGETS, News, Ports, QUEUES, SENDS, SUPPLIERS, SUPPLIERS_DEAD, TIME_TO_APPROVE, TIME_TO_RESERVE,
    TripRequest, refund, withdraw,
};

/// Suppliers of cars do not remember releases without a reservation, so a car is released only once its reservation has an
/// outcome.
const CAR_RETRY: RetryPolicy = RetryPolicy {
    max_attempts: 2,
    initial_interval: SignedDuration::from_secs(1),
    max_interval: SignedDuration::from_secs(1),
};

#[async_trait]
impl StepSaga for TripRequest {
    const NAME: &'static str = "trips";
    const SYSTEM: &'static str = "travel";
    const VERSION: u16 = 2;

    fn steps() -> Steps<Self> {
        seq([
            step::<Budget, Self>("budget", BUDGETS, |trip| trip.input.clone()).performed_at_start(),
            par([
                par([
                    step::<Supplier, Self>("flight", SUPPLIERS, |trip| trip.flight.clone()),
                    step::<Supplier, Self>("hotel", SUPPLIERS, |trip| trip.hotel.clone()),
                ])
                .in_doubt(InDoubt::Undo),
                step::<Supplier, Self>("car", SUPPLIERS, |trip| trip.car.clone().unwrap_or_default())
                    .when(|trip| trip.car.is_some())
                    .since(2)
                    .retry(CAR_RETRY),
            ])
            .within("reserving", TIME_TO_RESERVE),
            wait::<Self>("approval").when(|trip| trip.needs_approval).within("approving", TIME_TO_APPROVE),
        ])
    }

    /// Version 1 had no cars.
    fn upcast(_: u16, mut trip: Value) -> Result<Value, String> {
        trip["car"] = Value::Null;
        Ok(trip)
    }

    fn list(&self) -> Uuid {
        Uuid::new_v5(&Uuid::nil(), self.traveller.as_bytes())
    }

    async fn start(&self, _: &str, session: &mut OpenSession<'_>) -> Result<(), ClientError> {
        withdraw(session, self).await
    }

    fn ended(run: &Run<Self>, end: Advance<Run<Self>>) -> Advance<Run<Self>> {
        end.send(&News::TripEnded { number: run.key.clone(), is_booked: run.is_completed() })
    }
}

/// Reserves and releases at a supplier.
struct Supplier(Arc<dyn BookingApi>);

#[async_trait]
impl Activity for Supplier {
    const SYSTEM: &'static str = "travel";
    const PERFORM: &'static str = "Reserve";
    const UNDO: &'static str = "Release";
    type Input = String;
    type Output = String;

    async fn perform(&self, call: &Call<'_, String>) -> Result<String, ActivityError> {
        match self.0.reserve(call.key, call.input).await? {
            Reservation::Reserved(code) => Ok(code),
            Reservation::Refused(reason) => Err(ActivityError::Refused(reason)),
        }
    }

    async fn undo(&self, call: &Call<'_, String>) -> Result<(), ActivityError> {
        Ok(self.0.release(call.key).await?)
    }
}

/// Returns the price of a trip. It was withdrawn with the request.
struct Budget(EntryPoint);

#[async_trait]
impl Activity for Budget {
    const SYSTEM: &'static str = "travel";
    const PERFORM: &'static str = "Withdraw";
    const UNDO: &'static str = "Refund";
    type Input = TripRequest;
    type Output = ();

    async fn perform(&self, _: &Call<'_, TripRequest>) -> Result<(), ActivityError> {
        Err(ActivityError::Refused("the price is withdrawn with the request".to_owned()))
    }

    async fn undo(&self, call: &Call<'_, TripRequest>) -> Result<(), ActivityError> {
        Ok(refund(&self.0, call.partition, call.key, call.input).await?)
    }
}

/// Returns the saga.
pub fn trips() -> StepMachine<TripRequest> {
    StepMachine::default()
}

static TRIPS: Function<Ports> = Function {
    name: "trips",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &SENDS,
    drains: &[],
    build: Some(|ports| {
        ports.engine.run("trips", ports.defect.into_saga(trips().with_defect(ports.step_defect)))
    }),
};
static SUPPLIERS_FUNCTION: Function<Ports> =
    worker_function::<TripRequest, _>("suppliers", SUPPLIERS, |ports| {
        worker::<TripRequest, _>(&ports.engine, "suppliers", Supplier(Arc::clone(&ports.api)))
    });
static SUPPLIER_FAULTS: Function<Ports> =
    dead_letters_function::<TripRequest, _>("supplier-faults", SUPPLIERS_DEAD, |ports| {
        report_dead_letters::<TripRequest, Supplier, _>(&ports.engine, "supplier-faults", &SYSTEM, SUPPLIERS)
    });
static BUDGETS_FUNCTION: Function<Ports> = worker_function::<TripRequest, _>("budgets", BUDGETS, |ports| {
    worker::<TripRequest, _>(&ports.engine, "budgets", Budget(ports.engine.entry_point("budgets")?))
});
static DISPATCH_OUTBOX: Function<Ports> = Function::dispatch_outbox(&SENDS);
/// The application.
pub static SYSTEM: System<Ports> = System {
    name: "travel",
    queues: &QUEUES,
    functions: &[&TRIPS, &SUPPLIERS_FUNCTION, &SUPPLIER_FAULTS, &BUDGETS_FUNCTION, &DISPATCH_OUTBOX],
};

/// Returns the interface for clients.
pub fn agency(engine: &Engine) -> Result<Client<TripRequest>, MissingSetting> {
    Client::new(engine, "agency", trips())
}

#[async_trait]
impl Agency for Client<TripRequest> {
    async fn request(&self, number: &str, trip: &TripRequest) -> Result<(), ClientError> {
        self.start(number, trip).await
    }

    async fn approve(&self, number: &str, by: &str) -> Result<(), ClientError> {
        self.resolve(number, "approval", json!(by)).await
    }

    async fn reject(&self, number: &str, by: &str) -> Result<(), ClientError> {
        Self::reject(self, number, "approval", by).await
    }

    async fn cancel(&self, number: &str, by: &str) -> Result<(), ClientError> {
        Self::cancel(self, number, by).await
    }

    async fn trip(&self, number: &str) -> Result<Value, ClientError> {
        Ok(self.run(number).await?.body)
    }
}
