//! An order: placed, paid and shipped, or abandoned if it is not paid within an hour.
//!
//! This file is what a new saga has to write: its messages, its state machine, its command handler, and one table of
//! its queues and functions. [`shop`] receives orders and payments, and [`http`] is its HTTP API.

pub mod http;
pub mod shop;
#[cfg(feature = "simulation")]
pub mod workload;

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{CommandMessage, Handler, HandlerError, HandlerResult};
use jiff::{SignedDuration, Timestamp};
use messages::{PartitionKey, Queue, QueueSpec, Reporter, messages};
use outbox::session::CONTROL;
use outbox::{Key, View};
use saga::{
    Advance, Decision, Engine, Event, Function, ReportDeadLetters, SAGA, Saga, Service, Source, System,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

/// The queue of the warehouse.
pub const WAREHOUSE: Queue = Queue::named("warehouse");
/// Announcements of how orders ended, for other systems.
pub const NEWS: Queue = Queue::named("news");

messages! {
    /// The events of an order.
    #[allow(missing_docs, reason = "the field names are self-explanatory")]
    pub enum OrderEvent of "orders" to SAGA {
        /// A customer placed the order.
        Placed { number: String, cents: u64, at: Timestamp } = 1,
        /// A customer paid.
        Paid { cents: u64 } = 1,
        /// The warehouse shipped the order.
        Shipped { carrier: String, tracking: String } = 2,
        /// The order was not paid in time.
        PaymentOverdue {} = 1,
        /// The warehouse could not ship the order.
        NotShipped {} = 1,
    }
    upcast shipped_without_carrier
}

messages! {
    /// Commands for the warehouse.
    #[allow(missing_docs, reason = "the field names are self-explanatory")]
    pub enum Command of "orders" to WAREHOUSE {
        /// Ship an order, and report the shipment.
        Ship { number: String } = 1,
    }
}

messages! {
    /// Announcements for other systems.
    #[allow(missing_docs, reason = "the field names are self-explanatory")]
    pub enum News of "orders" to NEWS {
        /// An order has ended.
        OrderEnded { number: String, shipped: bool } = 1,
    }
}

/// Version 1 of `Shipped` did not name the carrier, because there was only one.
fn shipped_without_carrier(name: &str, from: u16, mut data: Value) -> Result<Value, String> {
    if (name, from) != ("Shipped", 1) {
        return Err(format!("version {from} of {name} is not supported"));
    }
    data["carrier"] = "post".into();
    Ok(data)
}

/// The state of an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// The number of the order; empty until the order is placed.
    pub number: String,
    /// The price in cents.
    pub cents: u64,
    /// The time at which the order was placed.
    pub placed_at: Timestamp,
    /// The progress of the order.
    #[serde(flatten)]
    pub step: Step,
}

/// The progress of an order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[allow(missing_docs, reason = "the field names are self-explanatory")]
pub enum Step {
    /// The order is unknown.
    #[default]
    New,
    /// The payment has overtaken the order.
    Prepaid { paid: u64 },
    /// The order waits for the payment.
    Placed,
    /// The order waits for the warehouse.
    Paid,
    /// The order was shipped.
    Shipped { carrier: String, tracking: String, at: Timestamp },
    /// The order was not paid in time.
    Overdue { at: Timestamp },
    /// The order was paid, but the warehouse could not ship it.
    Unshipped { at: Timestamp },
}

/// The list of all orders.
pub const ALL: Uuid = Uuid::nil();
/// The time that the customer has to pay.
pub const TIME_TO_PAY: SignedDuration = SignedDuration::from_hours(1);
/// The timer of the payment.
const PAYMENT: &str = "payment";

/// The saga.
#[derive(Debug, Clone, Copy)]
pub struct Orders;

impl Saga for Orders {
    const NAME: &'static str = "orders";
    type State = Order;
    type Event = OrderEvent;

    fn transition(&self, order: &Order, event: &Event<'_, OrderEvent>, now: Timestamp) -> Decision<Order> {
        use OrderEvent::{NotShipped, Paid, PaymentOverdue, Placed, Shipped};
        match (&order.step, event.body) {
            (Step::New, Placed { number, cents, at }) => placed(number, *cents, *at, 0, now).into(),
            (Step::Prepaid { paid }, Placed { number, cents, at }) => {
                placed(number, *cents, *at, *paid, now).into()
            }
            // Queues keep no order.
            (Step::New, Paid { cents }) => prepaid(*cents),
            (Step::Prepaid { paid }, Paid { cents }) if cents > paid => prepaid(*cents),
            (Step::Placed, Paid { cents }) if *cents >= order.cents => {
                ship(order.clone()).cancel(PAYMENT).into()
            }
            (Step::Placed, Paid { .. }) => Decision::reject("paid too little"),
            (Step::Placed, PaymentOverdue {}) => end(order, Step::Overdue { at: now }, "nobody paid in time"),
            (Step::Paid, Shipped { carrier, tracking }) => {
                let (carrier, tracking) = (carrier.clone(), tracking.clone());
                end(order, Step::Shipped { carrier, tracking, at: now }, "it is on its way")
            }
            (Step::Paid, NotShipped {}) => end(order, Step::Unshipped { at: now }, "it could not be shipped"),
            (Step::Shipped { .. } | Step::Overdue { .. } | Step::Unshipped { .. }, _) => {
                Decision::ignore("the order has ended")
            }
            (Step::New | Step::Prepaid { .. } | Step::Placed | Step::Paid, _) => Decision::ignore("not now"),
        }
    }

    fn ended_at(&self, order: &Order) -> Option<Timestamp> {
        match &order.step {
            Step::Shipped { at, .. } | Step::Overdue { at } | Step::Unshipped { at } => Some(*at),
            Step::New | Step::Prepaid { .. } | Step::Placed | Step::Paid => None,
        }
    }

    fn view(&self, partition: PartitionKey, order: &Order) -> Option<View> {
        if order.number.is_empty() {
            return None;
        }
        let view = View::of(partition, order, self.ended_at(order).is_some()).ok()?;
        Some(View { list: ALL, created_at: order.placed_at, ..view })
    }
}

fn placed(number: &str, cents: u64, placed_at: Timestamp, paid: u64, now: Timestamp) -> Advance<Order> {
    let order = Order { number: number.to_owned(), cents, placed_at, step: Step::Placed };
    if paid >= cents {
        return ship(order);
    }
    let due_at = now.saturating_add(TIME_TO_PAY).unwrap_or(Timestamp::MAX);
    Decision::to(order, "waiting for the payment")
        .schedule(PAYMENT, due_at, &OrderEvent::PaymentOverdue {})
        .show()
}

fn prepaid(paid: u64) -> Decision<Order> {
    let order = Order { step: Step::Prepaid { paid }, ..Order::default() };
    Decision::to(order, "paid; waiting for the order itself").into()
}

fn ship(order: Order) -> Advance<Order> {
    let ship = Command::Ship { number: order.number.clone() };
    let (receipt, to_pack) = (receipt(&order.number), to_pack(&order.number));
    Decision::to(Order { step: Step::Paid, ..order }, "paid; the warehouse is to ship it")
        .ask(&ship)
        .write(receipt, &"paid")
        .show()
        .write(to_pack, &ship)
}

fn end(order: &Order, step: Step, why: &str) -> Decision<Order> {
    let shipped = matches!(step, Step::Shipped { .. });
    let news = News::OrderEnded { number: order.number.clone(), shipped };
    Decision::to(Order { step, ..order.clone() }, why)
        .send(&news)
        .write(receipt(&order.number), &why)
        .show()
        .remove(to_pack(&order.number))
        .into()
}

/// Returns the key of an order's receipt, with which other programs follow its progress.
fn receipt(number: &str) -> Key {
    Key::new("receipt", number)
}

/// Returns the key of an order in the list of what the warehouse has to pack.
fn to_pack(number: &str) -> Key {
    Key::new("to-pack", number)
}

/// Ships orders. It has no state, and shipping an order twice under one tracking number is safe.
pub struct Warehouse;

#[async_trait]
impl Handler for Warehouse {
    type Command = Command;

    async fn handle(
        &self,
        asked: &CommandMessage<Command>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let Command::Ship { number } = &asked.command;
        let tracking = format!("1Z-{number}");
        HandlerResult::completed(format!("shipped as {tracking}"))
            .reply(&OrderEvent::Shipped { carrier: "dhl".into(), tracking })
    }
}

/// The event for a command that the warehouse could not execute.
struct WarehouseFaults;

impl ReportDeadLetters for WarehouseFaults {
    type Command = Command;
    type Event = OrderEvent;

    fn event(&self, command: &Command, _: &str) -> Option<OrderEvent> {
        match command {
            Command::Ship { .. } => Some(OrderEvent::NotShipped {}),
        }
    }
}

const SAGA_DEAD: Queue = Queue::named("saga-dead");
/// The queue of commands that the warehouse could not execute.
pub const WAREHOUSE_DEAD: Queue = Queue::named("warehouse-dead");
const WAREHOUSE_UNREADABLE: Queue = Queue::named("warehouse-unreadable");
const CONTROL_DEAD: Queue = Queue::named("control-dead");

/// The specification of each queue.
pub static QUEUES: [QueueSpec; 8] = [
    QueueSpec::with_consumer(SAGA, SAGA_DEAD, 20, 30, 10, 2).with_events::<OrderEvent>(),
    QueueSpec::without_consumer(SAGA_DEAD),
    QueueSpec::with_consumer(WAREHOUSE, WAREHOUSE_DEAD, 20, 30, 10, 1),
    QueueSpec::with_consumer(WAREHOUSE_DEAD, WAREHOUSE_UNREADABLE, 20, 30, 10, 1),
    QueueSpec::without_consumer(WAREHOUSE_UNREADABLE),
    QueueSpec::with_consumer(CONTROL, CONTROL_DEAD, 20, 60, 10, 1),
    QueueSpec::without_consumer(CONTROL_DEAD),
    QueueSpec::without_consumer(NEWS),
];

/// Runs the saga.
pub static ORDERS_SAGA: Function<Engine> = Function {
    name: "orders-saga",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, WAREHOUSE, NEWS],
    drains: &[],
    build: Some(|engine| engine.run("orders-saga", Orders)),
};

/// Runs the warehouse.
pub static WAREHOUSE_FUNCTION: Function<Engine> = Function {
    name: "warehouse",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(WAREHOUSE),
    sends: &[SAGA],
    drains: &[],
    build: Some(|engine| engine.guard("warehouse", Warehouse)),
};

/// Reports commands that the warehouse could not execute to the saga.
pub static WAREHOUSE_FAULTS: Function<Engine> = Function {
    name: "warehouse-faults",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(WAREHOUSE_DEAD),
    sends: &[SAGA],
    drains: &[],
    build: Some(|engine| engine.report_dead_letters("warehouse-faults", &SYSTEM, WarehouseFaults)),
};

/// Sends due timer events, and effects that a crash left unsent, to any queue.
pub static DISPATCH_OUTBOX: Function<Engine> = Function {
    name: "dispatch-outbox",
    services: &[Service::DATABASE],
    source: Source::Queue(CONTROL),
    sends: &[CONTROL, SAGA, WAREHOUSE, NEWS],
    drains: &[],
    build: Some(|engine| Ok(Arc::new(engine.dispatch_outbox("dispatch-outbox")?))),
};

/// The application. The programs that run, provision or simulate it read this table.
pub static SYSTEM: System<Engine> = System {
    name: "orders",
    queues: &QUEUES,
    functions: &[&ORDERS_SAGA, &WAREHOUSE_FUNCTION, &WAREHOUSE_FAULTS, &DISPATCH_OUTBOX],
};
