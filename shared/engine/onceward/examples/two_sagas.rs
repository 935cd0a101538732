//! Two sagas: an order starts a shipment and waits for its reply. Every message is delivered three times.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use serde::{Deserialize, Serialize};

const SHIPMENTS: Queue = Queue::named("shipments");

messages! { enum OrderEvent of "shop" to SAGA { Paid { parcels: u32 } = 1, Delivered {} = 1 } }
messages! { enum ShipmentEvent of "shop" to SHIPMENTS { Requested { parcels: u32 } = 1, Arrived {} = 1 } }

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum Order {
    #[default]
    New,
    Paid,
    Delivered(Timestamp),
}

#[derive(Default)]
struct Orders;

impl Saga for Orders {
    const NAME: &'static str = "orders";
    type State = Order;
    type Event = OrderEvent;

    fn transition(&self, order: &Order, event: &Event<'_, OrderEvent>, now: Timestamp) -> Decision<Order> {
        let shipment = Instance::<Shipments>::with_id(event.partition.as_uuid());
        match (order, event.body) {
            (Order::New, OrderEvent::Paid { parcels }) => Decision::to(Order::Paid, "paid")
                .request(&shipment, &ShipmentEvent::Requested { parcels: *parcels })
                .into(),
            (Order::Paid, OrderEvent::Delivered {}) => {
                Decision::to(Order::Delivered(now), "delivered").into()
            }
            _ => Decision::ignore("not expected in this state"),
        }
    }

    fn ended_at(&self, order: &Order) -> Option<Timestamp> {
        if let Order::Delivered(at) = order { Some(*at) } else { None }
    }

    fn view(&self, partition: PartitionKey, order: &Order) -> Option<View> {
        View::of(partition, order, self.ended_at(order).is_some()).ok()
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Shipment {
    order: Option<Requester<OrderEvent>>,
    parcels: u32,
    arrived: u32,
    ended_at: Option<Timestamp>,
}

#[derive(Default)]
struct Shipments;

impl Saga for Shipments {
    const NAME: &'static str = "shipments";
    type State = Shipment;
    type Event = ShipmentEvent;

    fn transition(
        &self,
        old: &Shipment,
        event: &Event<'_, ShipmentEvent>,
        now: Timestamp,
    ) -> Decision<Shipment> {
        let mut next = old.clone();
        match event.body {
            ShipmentEvent::Requested { parcels } => {
                (next.order, next.parcels) = (event.requester(), *parcels);
            }
            ShipmentEvent::Arrived {} => next.arrived += 1,
        }
        let Some(order) = next.order.clone().filter(|_| next.arrived == next.parcels) else {
            return Decision::to(next, "waiting for parcels").into();
        };
        let ended = Decision::to(Shipment { ended_at: Some(now), ..next }, "all parcels have arrived");
        ended.reply(&order, &OrderEvent::Delivered {}).into()
    }

    fn ended_at(&self, shipment: &Shipment) -> Option<Timestamp> {
        shipment.ended_at
    }
}

static QUEUES: [QueueSpec; 6] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(SHIPMENTS, Queue::named("shipments-dead")),
    QueueSpec::without_consumer(Queue::named("shipments-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 3] = [CONTROL, SAGA, SHIPMENTS];
static ORDERS: Function<Engine> = Function::saga::<Orders>(&SENDS);
static SHIPS: Function<Engine> = Function::saga::<Shipments>(&SENDS);
static OUTBOX: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> =
    System { name: "shop", queues: &QUEUES, functions: &[&ORDERS, &SHIPS, &OUTBOX] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, faults) = (tempfile::tempdir()?, FaultInjection { copies: 3, ..FaultInjection::default() });
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await?;
    let (entry, views) = (runner.ports().entry_point("shop")?, runner.ports().views(Orders)?);
    let order = Instance::<Orders>::named("4711");
    let shipment = Instance::<Shipments>::with_id(order.partition().as_uuid());
    let customer = async {
        let mut session = entry.session(order.partition());
        session.notify(&order, &OrderEvent::Paid { parcels: 2 })?;
        // A parcel may arrive before the shipment is requested.
        session.notify(&shipment, &ShipmentEvent::Arrived {})?;
        session.notify(&shipment, &ShipmentEvent::Arrived {})?;
        session.commit().await?;
        runner.settled().await?;
        views.view(order.partition()).await?.ok_or_else(|| Box::<dyn Error>::from("the order is unknown"))
    };
    let view = runner.run_until(customer).await??;
    assert!(view.ended, "each parcel is counted once");
    println!("the order was delivered after two parcels");
    Ok(())
}
