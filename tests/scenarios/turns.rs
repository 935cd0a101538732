//! Files of several people at once: nobody waits for the end of a large one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use embedded::{Call, Settings, Store};
use functions::SYSTEM;
use imports::queues::{QUEUES, SAGA, UPLOADS};
use imports::{Job, SearchId};
use jiff::Timestamp;
use local::{Home, Runner, Trial};
use messages::Host;
use testing::ManualHost;
use uuid::Uuid;

use crate::parsing::many_records;
use crate::world::{SLOW, Slow, TWO_RECORDS, World};

/// A search of one file that is uploaded, and whose parse command waits.
async fn waiting(world: &World, file: &str) -> SearchId {
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, file).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    announced.search_id
}

/// A machine whose clock moves when records are stored, and not while somebody waits.
struct Standing(Arc<ManualHost>);

#[async_trait]
impl Host for Standing {
    fn now(&self) -> Timestamp {
        self.0.now()
    }

    fn fresh_id(&self) -> Uuid {
        self.0.fresh_id()
    }

    fn random_id(&self) -> Uuid {
        self.0.random_id()
    }

    fn unit_random(&self) -> f64 {
        self.0.unit_random()
    }

    async fn sleep(&self, _: Duration) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Runs the functions on what a world has, until the searches have ended.
async fn run(world: &World, searches: &[SearchId]) -> Vec<Job> {
    let host: Arc<dyn Host> = Arc::new(Standing(Arc::clone(&world.host)));
    let store = Store::open(world.store.dir(), Arc::clone(&host), Settings::new(&QUEUES)).unwrap();
    let store = Arc::new(store.with_intercept(Arc::new(Slow(Call::StudiesStore, Arc::clone(&world.host)))));
    let ports = backend::embedded(&store, host, store.clone(), world.backend.config.clone()).ports;
    let jobs = ports.jobs().unwrap();
    let again = ports.clone();
    let home = Home {
        store: Arc::clone(&store),
        lock: Arc::new(Store::lock(store.dir()).unwrap()),
        ports: Arc::new(move |_: &Arc<Store>| again.clone()),
    };
    let runner = Runner::new(&SYSTEM, ports, Some(home), Trial::default()).with_turns_of(2 * SLOW);
    let ended = async {
        let mut signal = store.message_signal();
        loop {
            let mut found = Vec::new();
            for search in searches {
                found.push(jobs.job(*search).await.unwrap().unwrap());
            }
            if found.iter().all(|job| job.state.has_ended()) {
                return found;
            }
            signal.wait(Duration::MAX).await;
        }
    };
    runner.run_until(ended).await.unwrap()
}

/// There are two workers, and two large files that came before.
#[tokio::test]
async fn a_small_file_is_read_while_larger_ones_of_others_are() {
    let world = World::new();
    let large = many_records(30_000);
    let searches =
        [waiting(&world, &large).await, waiting(&world, &large).await, waiting(&world, TWO_RECORDS).await];
    let jobs = run(&world, &searches).await;
    assert_eq!(jobs.iter().map(Job::studies).collect::<Vec<_>>(), [30_000, 30_000, 2]);
    let [first, second, small] = &jobs[..] else { panic!() };
    assert!(small.completed_at < first.completed_at && small.completed_at < second.completed_at, "{jobs:?}");
}
