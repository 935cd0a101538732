//! A travel booking: a flight, a hotel and optionally a car are reserved in parallel at suppliers whose API is
//! unreliable. Either all are reserved, or none. The price is withdrawn from the traveller's budget with the request.
//!
//! The saga is written twice: [`machine`] is a state machine, and [`list`] a list of steps. This file and [`api`]
//! contain what they share.

pub mod api;
pub mod list;
pub mod machine;
pub mod planted;
#[cfg(feature = "simulation")]
pub mod workload;

use std::sync::Arc;

use async_trait::async_trait;
use jiff::SignedDuration;
use messages::{PartitionKey, Queue, QueueSpec, StoreError, messages};
use outbox::Key;
use outbox::session::CONTROL;
use saga::engine::OpenSession;
use saga::{Engine, EntryPoint, SAGA};
use serde::{Deserialize, Serialize};
use serde_json::json;
use steps::ClientError;

use crate::api::BookingApi;
use crate::planted::Defect;

/// The queue of the suppliers.
pub const SUPPLIERS: Queue = Queue::named("suppliers");
/// The queue of commands that the suppliers could not execute.
pub const SUPPLIERS_DEAD: Queue = Queue::named("suppliers-dead");
/// The queue of the budgets.
pub const BUDGETS: Queue = Queue::named("budgets");
/// Announcements of how trips ended, for other systems.
pub const NEWS: Queue = Queue::named("news");
/// The maximum time until everything is reserved.
pub const TIME_TO_RESERVE: SignedDuration = SignedDuration::from_mins(15);
/// The maximum time until a trip is approved.
pub const TIME_TO_APPROVE: SignedDuration = SignedDuration::from_hours(24);

/// The request of a traveller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TripRequest {
    /// The name of the traveller.
    pub traveller: String,
    /// The flight.
    pub flight: String,
    /// The hotel.
    pub hotel: String,
    /// The car; since version 2.
    #[serde(default)]
    pub car: Option<String>,
    /// The price.
    pub cents: u64,
    /// `true` if the trip is booked only after an approval.
    #[serde(default)]
    pub needs_approval: bool,
}

messages! {
    /// Announcements to other systems.
    #[allow(missing_docs, reason = "the names of the fields are clear")]
    pub enum News of "travel" to NEWS {
        /// A trip has ended.
        TripEnded { number: String, is_booked: bool } = 1,
    }
}

/// The queues of both variants.
pub static QUEUES: [QueueSpec; 10] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(SUPPLIERS, SUPPLIERS_DEAD),
    QueueSpec::standard(SUPPLIERS_DEAD, Queue::named("suppliers-unreadable")),
    QueueSpec::without_consumer(Queue::named("suppliers-unreadable")),
    QueueSpec::standard(BUDGETS, Queue::named("budgets-dead")),
    QueueSpec::without_consumer(Queue::named("budgets-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
    QueueSpec::without_consumer(NEWS),
];
/// Every queue that a function may send to.
pub static SENDS: [Queue; 5] = [CONTROL, SAGA, SUPPLIERS, BUDGETS, NEWS];

/// The ports of the functions: the engine's, and the suppliers.
#[derive(Clone)]
pub struct Ports {
    /// The engine.
    pub engine: Engine,
    /// The suppliers.
    pub api: Arc<dyn BookingApi>,
    /// A defect that tests plant into the saga.
    pub defect: Defect,
    /// A defect that tests plant into the list of steps.
    pub step_defect: steps::Defect,
}

impl AsRef<Engine> for Ports {
    fn as_ref(&self) -> &Engine {
        &self.engine
    }
}

impl AsMut<Engine> for Ports {
    fn as_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}

/// The interface of both variants for clients.
#[async_trait]
pub trait Agency: Send + Sync {
    /// Requests a trip. A repeated request changes nothing.
    ///
    /// # Errors
    /// Returns an error if the budget is too small, the number has another request, or a store is unavailable.
    async fn request(&self, number: &str, trip: &TripRequest) -> Result<(), ClientError>;
    /// Approves a trip, possibly before it is reserved.
    ///
    /// # Errors
    /// Returns an error if the trip is unknown or has ended, or a store is unavailable.
    async fn approve(&self, number: &str, by: &str) -> Result<(), ClientError>;
    /// Rejects a trip.
    ///
    /// # Errors
    /// Returns the errors of [`Agency::approve`].
    async fn reject(&self, number: &str, by: &str) -> Result<(), ClientError>;
    /// Cancels a trip.
    ///
    /// # Errors
    /// Returns the errors of [`Agency::approve`].
    async fn cancel(&self, number: &str, by: &str) -> Result<(), ClientError>;
    /// Returns the state of a trip.
    ///
    /// # Errors
    /// Returns an error if the trip is unknown, or a store is unavailable.
    async fn trip(&self, number: &str) -> Result<serde_json::Value, ClientError>;
}

/// Sets the budget of a traveller.
///
/// # Errors
/// Returns an error if the budget changes at the same time, or a store is unavailable.
pub async fn set_budget(entry: &EntryPoint, traveller: &str, cents: u64) -> Result<(), ClientError> {
    let (budget, mut session) =
        (Key::new("budget", traveller), entry.session(PartitionKey::named("budgets", traveller)));
    // The read makes the write conditional. A delayed duplicate of the commit would otherwise reset the budget.
    session.read(budget.clone()).await?;
    session.write(budget, json!(cents));
    session.commit().await?;
    Ok(())
}

/// Withdraws the price of a trip with the request.
///
/// # Errors
/// Returns an error if the budget is too small, or a store is unavailable.
pub async fn withdraw(session: &mut OpenSession<'_>, trip: &TripRequest) -> Result<(), ClientError> {
    let budget = Key::new("budget", &trip.traveller);
    let cents = session.read(budget.clone()).await?.and_then(|record| record.body.as_u64());
    let Some(left) = cents.unwrap_or(0).checked_sub(trip.cents) else {
        return Err(ClientError::Refused("the budget is too small".to_owned()));
    };
    session.write(budget, json!(left));
    Ok(())
}

/// Returns the price of a trip to the budget, once for each key.
///
/// # Errors
/// Returns an error if a store is unavailable or the budget changes at the same time.
pub async fn refund(
    entry: &EntryPoint,
    partition: PartitionKey,
    key: &str,
    trip: &TripRequest,
) -> Result<(), StoreError> {
    let (receipt, budget) = (Key::new("refund", key), Key::new("budget", &trip.traveller));
    let mut session = entry.session(partition);
    if session.read(receipt.clone()).await?.is_some() {
        return Ok(());
    }
    let cents = session.read(budget.clone()).await?.and_then(|record| record.body.as_u64());
    session.write(receipt, json!(trip.cents));
    session.write(budget, json!(cents.unwrap_or(0) + trip.cents));
    let committed = session.commit().await;
    committed.map(drop).map_err(|error| StoreError::unavailable("returning the price of a trip", error))
}
