//! Deliveries to functions that do not return.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use local::{FaultInjection, Runner};
use messages::{Consumer, Delivery, Disposition, PartitionKey, Queue, QueueSpec};
use outbox::session::CONTROL;
use saga::{Engine, Function, Source, System};
use system_host::SystemHost;
use tokio::sync::Semaphore;
use uuid::Uuid;

const WORK: Queue = Queue::named("work");
const WORK_DEAD: Queue = Queue::named("work-dead");
const CONTROL_DEAD: Queue = Queue::named("control-dead");

messages::messages! {
    enum Job of "jobs" to WORK { Hang {} = 1, Finish {} = 1 }
}

/// A permit for each batch that a function has received.
static RECEIVED: Semaphore = Semaphore::const_new(0);

/// Never returns from a batch with [`Job::Hang`].
struct Worker;

#[async_trait]
impl Consumer for Worker {
    async fn consume(&self, batch: &[Delivery], _: Option<Timestamp>) -> Vec<Disposition> {
        RECEIVED.add_permits(1);
        if batch.iter().any(|delivery| delivery.body.contains("Hang")) {
            std::future::pending::<()>().await;
        }
        batch.iter().map(|_| Disposition::Acknowledge).collect()
    }
}

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::with_consumer(WORK, WORK_DEAD, 20, 30, 1, 1),
    QueueSpec::without_consumer(WORK_DEAD),
    QueueSpec::standard(CONTROL, CONTROL_DEAD),
    QueueSpec::without_consumer(CONTROL_DEAD),
];
static WORKER: Function<Engine> = Function {
    name: "work",
    services: &[],
    source: Source::Queue(WORK),
    sends: &[],
    drains: &[],
    build: Some(|_| Ok(Arc::new(Worker))),
};
static OUTBOX: Function<Engine> = Function::dispatch_outbox(&[]);
static SYSTEM: System<Engine> = System { name: "jobs", queues: &QUEUES, functions: &[&WORKER, &OUTBOX] };

#[tokio::test(flavor = "multi_thread")]
async fn function_that_hangs_does_not_stop_its_queue() {
    let dir = tempfile::tempdir().unwrap();
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), FaultInjection::default());
    let runner = runner.await.unwrap().with_time_limit(Duration::from_millis(20));
    let engine = runner.ports();
    let received = async || RECEIVED.acquire().await.unwrap().forget();
    let work = async {
        engine.send_now("test", PartitionKey::from_uuid(Uuid::nil()), &Job::Hang {}).await.unwrap();
        received().await;
        engine.send_now("test", PartitionKey::from_uuid(Uuid::from_u128(1)), &Job::Finish {}).await.unwrap();
        received().await;
    };
    runner.run_until(work).await.unwrap();
}
