//! Orders in the simulator: the functions, the customers, and the invariants of the final state.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use messages::{Message, Outgoing, PartitionKey, SendError, SendMessages};
use saga::{Control, Engine, System};
use serde_json::{Value, json};
use simulation::{Access, Call, CheckResult, Invariant, Mode, Rest, Rng, Scene, Violation, Workload};

use crate::shop::{Shop, partition};
use crate::{Order, OrderEvent, Orders, SYSTEM, Step, WAREHOUSE_FAULTS};

/// The price of an order.
const CENTS: u64 = 100;
/// The times just before and after an order is overdue.
const LATE_MS: (u64, u64) = (3_560_000, 3_640_000);

/// The defect of a function that drops dead-lettered commands without a report.
const DROPS_DEAD_LETTERS: &str = "drops dead letters";
/// The defect of a report without the reply token of its command.
const REPORTS_WITHOUT_TOKEN: &str = "reports without the reply token";

/// The workload of orders.
#[derive(Debug, Clone, Copy, Default)]
pub struct Customers;

/// The state known to the customers.
#[derive(Debug, Clone, Default)]
pub struct CustomerKnowledge {
    orders: BTreeMap<PartitionKey, Wish>,
    /// Items that were delivered to the shop, or may have been.
    items: u64,
}

#[derive(Debug, Clone, Default)]
struct Wish {
    /// `true` if the shop confirmed the order.
    placed: bool,
    /// `true` if the order was paid, or may have been.
    paid: bool,
}

impl Workload for Customers {
    type Saga = Orders;
    type Ports = Engine;
    type World = CustomerKnowledge;

    fn saga(&self) -> Orders {
        Orders
    }

    fn system(&self) -> &'static System<Engine> {
        &SYSTEM
    }

    fn ports(&self, engine: Engine, access: Access<CustomerKnowledge>) -> Engine {
        let defect =
            [DROPS_DEAD_LETTERS, REPORTS_WITHOUT_TOKEN].into_iter().find(|defect| access.has(defect));
        match defect.filter(|_| access.function() == Some(WAREHOUSE_FAULTS.name)) {
            Some(defect) => Engine {
                send: Arc::new(DefectiveReports { inner: Arc::clone(&engine.send), defect }),
                ..engine
            },
            None => engine,
        }
    }

    fn defects(&self) -> &'static [(&'static str, &'static [Mode])] {
        &[(DROPS_DEAD_LETTERS, &Mode::ALL), (REPORTS_WITHOUT_TOKEN, &[Mode::Ledger])]
    }

    fn unused(&self) -> &'static [Call] {
        &[]
    }

    fn client(&self, engine: Engine, access: Access<CustomerKnowledge>, rng: Rng) -> BoxFuture<'static, ()> {
        Box::pin(customer(engine, access, rng))
    }

    /// A paid order waits for the warehouse or for the report that its command was dead-lettered. An order that is paid
    /// before it is placed waits for a message that is already stored.
    fn may_wait(&self, order: &Order) -> bool {
        matches!(order.step, Step::Paid | Step::Prepaid { .. })
    }

    fn refuses(&self, _: &CustomerKnowledge, message: &Message) -> bool {
        matches!(message.read(), Ok(OrderEvent::Paid { cents }) if cents < CENTS)
    }

    fn controls(&self) -> &'static [Control] {
        &[Control::Pause, Control::Terminate]
    }

    /// The operator pays orders that the customer has placed.
    fn operator_event(
        &self,
        scene: &mut Scene<'_, CustomerKnowledge>,
        order: PartitionKey,
    ) -> Option<(&'static str, Value)> {
        scene.orders.get_mut(&order)?.paid = true;
        Some(("Paid", json!({ "cents": CENTS })))
    }

    fn succeeded(&self, order: &Order) -> bool {
        matches!(order.step, Step::Shipped { .. })
    }

    fn check(&self, rest: &Rest<'_, Self>) -> CheckResult {
        let placed = rest.orders.keys().filter(|order| rest.is_committed(**order)).count() as u64;
        if placed > rest.items {
            return broken(Invariant::SessionIsAtomic, format!("{placed} of {} items were sold", rest.items));
        }
        rest.orders.iter().try_for_each(|(order, wish)| ended(rest, *order, wish))
    }
}

/// Adds one or two items to the stock, and orders one or two. A failed request is repeated once.
async fn customer(engine: Engine, access: Access<CustomerKnowledge>, mut rng: Rng) {
    let Ok(shop) = Shop::over(&engine) else { return };
    let items = rng.between(1, 2);
    access.with(|scene| scene.items += items);
    let _ = shop.restock(items).await;
    for _ in 0..rng.between(1, 2) {
        let number = format!("{:x}", rng.draw());
        access.with(|scene| scene.orders.insert(partition(&number), Wish::default()));
        if shop.place(&number, CENTS).await.is_err() && shop.place(&number, CENTS).await.is_err() {
            continue;
        }
        access.with(|scene| scene.orders.entry(partition(&number)).or_default().placed = true);
        pay(&shop, &access, &mut rng, &number).await;
    }
}

async fn pay(shop: &Shop, access: &Access<CustomerKnowledge>, rng: &mut Rng, number: &str) {
    if rng.one_in(5) {
        return;
    }
    if rng.one_in(2) {
        let (from, to) = if rng.one_in(3) { LATE_MS } else { (0, 1_000) };
        access.sleep(Duration::from_millis(rng.between(from, to))).await;
    }
    if rng.one_in(6) {
        let _ = shop.pay(number, CENTS - 1).await;
    }
    for _ in 0..rng.between(1, 2) {
        access.with(|scene| scene.orders.entry(partition(number)).or_default().paid = true);
        let _ = shop.pay(number, CENTS).await;
    }
}

/// A placed order is shipped if it was paid, and abandoned otherwise, unless an operator terminated it.
fn ended(rest: &Rest<'_, Customers>, order: PartitionKey, wish: &Wish) -> CheckResult {
    if wish.placed && !rest.is_committed(order) {
        return broken(Invariant::SessionIsAtomic, format!("order {order} was placed, but is not stored"));
    }
    let is_terminated = rest.content(order).is_some_and(|content| content.terminated.is_some());
    match rest.state(order).map(|order| &order.step) {
        None if rest.is_committed(order) => {
            broken(Invariant::Quiescence, format!("order {order} was placed, but has not begun"))
        }
        Some(Step::Shipped { .. }) if !wish.paid => {
            broken(Invariant::Application, format!("order {order} was shipped without a payment"))
        }
        Some(Step::Unshipped { .. }) if !wish.paid => {
            broken(Invariant::Application, format!("order {order} was to be shipped without a payment"))
        }
        None | Some(Step::Shipped { .. } | Step::Overdue { .. } | Step::Unshipped { .. }) => Ok(()),
        Some(_) if is_terminated => Ok(()),
        Some(step) => broken(Invariant::Quiescence, format!("order {order} has not ended: {step:?}")),
    }
}

/// Sends the reports of dead-lettered commands with a defect.
struct DefectiveReports {
    inner: Arc<dyn SendMessages>,
    defect: &'static str,
}

#[async_trait]
impl SendMessages for DefectiveReports {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        if self.defect == DROPS_DEAD_LETTERS {
            return messages.iter().map(|_| Ok(())).collect();
        }
        let without_token = |outgoing: &Outgoing| {
            let message = Message::decode(&outgoing.body).map(|message| Message { token: None, ..message });
            let body = message.ok().and_then(|message| message.encode().ok());
            Outgoing { body: body.unwrap_or_default(), ..outgoing.clone() }
        };
        let messages: Vec<Outgoing> = messages.iter().map(without_token).collect();
        self.inner.send(&messages).await
    }
}

fn broken(invariant: Invariant, detail: String) -> CheckResult {
    Err(Violation { invariant, detail })
}
