//! Orders in a temporary folder; the test controls every delivery.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use backend::Config;
use contracts::ManualHost;
use embedded::{Settings, Store};
use local::DuplicatingSender;
use messages::{
    Body, Consumer, Delivery, Disposition, Message, MessageId, PartitionKey, Queue, ReceiveMessages,
    ReceivedMessage, Token, Verdict, send_one,
};
use orders::shop::{Shop, partition};
use orders::{Order, QUEUES, SYSTEM};
use outbox::DispatchOutbox;
use outbox::session::CONTROL;
use saga::{Engine, SAGA};
use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

pub(crate) type TestResult = contracts::CheckResult;

pub(crate) struct World {
    pub(crate) host: Arc<ManualHost>,
    pub(crate) store: Arc<Store>,
    pub(crate) engine: Engine,
    pub(crate) shop: Shop,
    behind: BTreeMap<Queue, Arc<dyn Consumer>>,
    sweeper: DispatchOutbox,
    /// Removed with the world.
    _dir: TempDir,
}

impl World {
    /// Returns a world with `items` items in stock.
    pub(crate) async fn with_stock(items: u64) -> Self {
        Self::with_copies(items, 1).await
    }

    /// Returns a world in which every message is sent several times.
    pub(crate) async fn with_copies(items: u64, copies: u32) -> Self {
        let (dir, host) = (TempDir::new().unwrap(), Arc::new(ManualHost::seeded(1)));
        let store =
            Arc::new(Store::open(dir.path(), host.clone(), Settings::of(SYSTEM.name, &QUEUES)).unwrap());
        let backend =
            backend::engine::embedded(&SYSTEM, &store, host.clone(), store.clone(), Config::of(SYSTEM.name));
        let engine = Engine {
            send: Arc::new(DuplicatingSender { inner: backend.ports.send.clone(), copies }),
            ..backend.ports
        };
        let shop = Shop::over(&engine).unwrap();
        if items > 0 {
            shop.restock(items).await.unwrap();
        }
        let functions = SYSTEM.functions.iter();
        let behind = functions
            .map(|function| {
                let queue = function.source.queue().unwrap().clone();
                (
                    queue,
                    function.build.unwrap()(&engine.clone().declared_by(function, SYSTEM.queues)).unwrap(),
                )
            })
            .collect();
        let sweeper = engine.dispatch_outbox("dispatch-outbox").unwrap();
        Self { host, store, engine, shop, behind, sweeper, _dir: dir }
    }

    /// Returns the messages that a queue delivers now, up to a batch.
    pub(crate) async fn take(&self, queue: &Queue) -> Vec<ReceivedMessage> {
        self.store.receive(queue, 10, Duration::from_secs(60)).await.unwrap()
    }

    pub(crate) async fn deliver(&self, queue: &Queue, batch: &[ReceivedMessage]) -> Vec<Disposition> {
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let said = self.behind[queue].consume(&deliveries, None).await;
        for (received, disposition) in batch.iter().zip(&said) {
            self.store.answer(queue, &received.receipt, disposition).await.unwrap();
        }
        said
    }

    /// Delivers messages until no visible message is left.
    pub(crate) async fn run(&self) {
        loop {
            let mut delivered = 0;
            for queue in [CONTROL, SAGA, orders::WAREHOUSE, orders::WAREHOUSE_DEAD] {
                let batch = self.take(&queue).await;
                self.deliver(&queue, &batch).await;
                delivered += batch.len();
            }
            if delivered == 0 {
                return;
            }
        }
    }

    /// Advances the clock and sweeps.
    pub(crate) async fn pass(&self, time: Duration) {
        self.host.advance(time);
        self.sweeper.sweep(None).await.unwrap();
        self.run().await;
    }

    /// Sends an event to an order without checks.
    pub(crate) async fn event(&self, order: PartitionKey, name: &str, version: u16, data: Value) {
        let id = MessageId::from_uuid(Uuid::from_u128(99));
        let body = Body { system: "orders".into(), name: name.into(), version, data: data.into() };
        let message = Message::new(id, "test", order, self.engine.host.now(), body);
        let token = Some(Token::minted_at_entry(order, Uuid::from_u128(99)));
        let message = Message { token, ..message };
        send_one(self.engine.send.as_ref(), &message, SAGA, Duration::ZERO).await.unwrap();
    }

    pub(crate) async fn state(&self, number: &str) -> Value {
        self.shop.order(number).await.unwrap().body["state"].clone()
    }

    pub(crate) async fn order(&self, number: &str) -> Order {
        serde_json::from_value(self.shop.order(number).await.unwrap().body).unwrap()
    }

    /// Returns the decisions about the deliveries of a message.
    pub(crate) async fn verdicts(&self, number: &str, message: &str) -> Vec<Verdict> {
        let decisions = self.store.decisions(partition(number)).await.unwrap();
        let of_it = decisions.iter().filter(|seen| seen.message == message);
        of_it
            .filter_map(|seen| seen.verdict.known())
            .filter(|verdict| *verdict != Verdict::Dispatched)
            .collect()
    }
}

/// Returns the messages of a batch.
pub(crate) fn messages(batch: &[ReceivedMessage]) -> Vec<Message> {
    batch.iter().map(|received| Message::decode(&received.delivery.body).unwrap()).collect()
}
