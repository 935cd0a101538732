//! A data directory in which a test decides when messages are delivered.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use contracts::ManualHost;
use embedded::{Settings, Store};
use local::DuplicatingSender;
use messages::{Consumer, Delivery, Message, PartitionKey, Queue, ReceiveMessages};
use outbox::session::CONTROL;
use outbox::{DispatchOutbox, Key};
use saga::{SAGA, System};
use tempfile::TempDir;
use travel::api::UnreliableSuppliers;
use travel::{
    Agency, BUDGETS, NEWS, News, Ports, QUEUES, SUPPLIERS, SUPPLIERS_DEAD, list, machine, planted, set_budget,
};

pub(crate) struct World {
    pub(crate) ports: Ports,
    pub(crate) agency: Box<dyn Agency>,
    pub(crate) api: Arc<UnreliableSuppliers>,
    host: Arc<ManualHost>,
    store: Arc<Store>,
    consumers: BTreeMap<Queue, Arc<dyn Consumer>>,
    sweeper: DispatchOutbox,
    /// Removed with the world.
    _dir: TempDir,
}

impl World {
    /// Opens a directory in which every message is sent twice.
    pub(crate) async fn new(variant: &str) -> Self {
        let (dir, host) = (TempDir::new().unwrap(), Arc::new(ManualHost::seeded(1)));
        let api = Arc::new(UnreliableSuppliers::without(&["full"]));
        let is_list = variant == "list";
        let system: &System<Ports> = if is_list { &list::SYSTEM } else { &machine::SYSTEM };
        let settings = Settings::of(system.name, &QUEUES);
        let store = Arc::new(Store::open(dir.path(), host.clone(), settings).unwrap());
        let mut engine = store.engine(system.name, host.clone(), Arc::new(()));
        engine.send = Arc::new(DuplicatingSender { inner: engine.send.clone(), copies: 2 });
        let agency: Box<dyn Agency> = match is_list {
            true => Box::new(list::agency(&engine).unwrap()),
            false => Box::new(machine::agency(&engine).unwrap()),
        };
        set_budget(&engine.entry_point("agency").unwrap(), "ann", 1_000).await.unwrap();
        let sweeper = engine.dispatch_outbox("dispatch-outbox").unwrap();
        let (defect, step_defect) = (planted::Defect::None, steps::Defect::None);
        let ports = Ports { engine, api: api.clone(), defect, step_defect };
        let consumers = system.functions.iter().map(|function| {
            let queue = function.source.queue().unwrap().clone();
            let engine = ports.engine.clone().declared_by(function, system.queues);
            (queue, function.build.unwrap()(&Ports { engine, ..ports.clone() }).unwrap())
        });
        let consumers = consumers.collect();
        Self { ports, agency, api, host, store, consumers, sweeper, _dir: dir }
    }

    /// Delivers all messages, including redeliveries of failed ones, until nothing changes any more.
    pub(crate) async fn settle(&self) {
        let mut idle = 0;
        while idle < 20 {
            let mut delivered = 0;
            for queue in [CONTROL, SAGA, SUPPLIERS, SUPPLIERS_DEAD, BUDGETS] {
                delivered += self.deliver(&queue).await;
            }
            idle = if delivered == 0 { idle + 1 } else { 0 };
            self.pass(Duration::from_secs(5)).await;
        }
    }

    /// Delivers all events, and then each command of the suppliers to a worker that crashes, as often as their queue
    /// allows.
    pub(crate) async fn crash_suppliers(&self) {
        while self.deliver(&SAGA).await > 0 {}
        let visibility = Duration::from_secs(1);
        while !self.store.receive(&SUPPLIERS, 10, visibility).await.unwrap().is_empty() {
            self.host.advance(2 * visibility);
        }
    }

    async fn deliver(&self, queue: &Queue) -> usize {
        let batch = self.store.receive(queue, 10, Duration::from_secs(60)).await.unwrap();
        let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
        let results = self.consumers[queue].consume(&deliveries, None).await;
        for (received, disposition) in batch.iter().zip(&results) {
            self.store.answer(queue, &received.receipt, disposition).await.unwrap();
        }
        batch.len()
    }

    /// Advances the clock and sweeps the outboxes.
    pub(crate) async fn pass(&self, time: Duration) {
        self.host.advance(time);
        self.sweeper.sweep(None).await.unwrap();
    }

    pub(crate) async fn state(&self, number: &str) -> String {
        self.agency.trip(number).await.unwrap()["state"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn budget(&self) -> u64 {
        let entry = self.ports.engine.entry_point("agency").unwrap();
        let mut session = entry.session(PartitionKey::named("budgets", "ann"));
        session.read(Key::new("budget", "ann")).await.unwrap().unwrap().body.as_u64().unwrap()
    }

    /// Returns the announcements without their duplicates.
    pub(crate) async fn news(&self) -> Vec<News> {
        let received = self.store.receive(&NEWS, 10, Duration::from_secs(60)).await.unwrap();
        let messages = received.iter().map(|received| Message::decode(&received.delivery.body).unwrap());
        let by_id: BTreeMap<_, _> = messages.map(|message| (message.id, message.read().unwrap())).collect();
        by_id.into_values().collect()
    }
}
