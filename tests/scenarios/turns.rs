//! Concurrent files of several reviewers: no file waits for the end of a large one, and no request waits for a file.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use async_trait::async_trait;
use contracts::ManualHost;
use embedded::{Call, Intercept, Phase, Settings, Store};
use functions::SYSTEM;
use http_api::router;
use imports::queues::{QUEUES, SAGA, UPLOADS};
use imports::{Job, Ports, SearchId};
use jiff::Timestamp;
use local::{FaultInjection, Home, Runner};
use messages::Host;
use service::SearchService;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::api;
use crate::parsing::many_records;
use crate::world::{SLOW, Slow, TWO_RECORDS, World, without_time_limit};

/// Creates a search with one uploaded file, whose parse command waits.
async fn waiting(world: &World, file: &str) -> SearchId {
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, file).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    announced.search_id
}

/// A host whose clock moves when records are stored, and not during a wait.
struct StoppedClock(Arc<ManualHost>);

#[async_trait]
impl Host for StoppedClock {
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

/// Runs the functions on the stores of a world, with all calls of the store intercepted.
fn runner(world: &World, intercept: Arc<dyn Intercept>) -> (Runner<Ports>, Arc<Store>) {
    let host: Arc<dyn Host> = Arc::new(StoppedClock(Arc::clone(&world.host)));
    let store = Store::open(world.store.dir(), Arc::clone(&host), Settings::new(&QUEUES)).unwrap();
    let store = Arc::new(store.with_intercept(intercept));
    let mut ports = backend::embedded(&store, host, store.clone(), world.backend.config.clone()).ports;
    ports.engine = without_time_limit(ports.engine);
    let again = ports.clone();
    let home = Home {
        store: Arc::clone(&store),
        lock: Arc::new(Store::lock(store.dir()).unwrap()),
        ports: Arc::new(move |_: &Arc<Store>| again.clone()),
    };
    (Runner::new(&SYSTEM, ports, Some(home), FaultInjection::default()).with_turns_of(2 * SLOW), store)
}

/// Waits until the searches have ended.
async fn ended(store: &Store, ports: &Ports, searches: &[SearchId]) -> Vec<Job> {
    let jobs = ports.jobs().unwrap();
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
}

/// There are two workers, and two earlier large files.
#[tokio::test]
async fn small_file_is_read_alongside_larger_ones() {
    let world = World::new();
    let large = many_records(30_000);
    let searches =
        [waiting(&world, &large).await, waiting(&world, &large).await, waiting(&world, TWO_RECORDS).await];
    let (runner, store) = runner(&world, Arc::new(Slow(Call::StudiesStore, Arc::clone(&world.host))));
    let ports = runner.ports();
    let jobs = runner.run_until(ended(&store, &ports, &searches)).await.unwrap();
    assert_eq!(jobs.iter().map(Job::studies).collect::<Vec<_>>(), [30_000, 30_000, 2]);
    let [first, second, small] = &jobs[..] else { panic!() };
    assert!(small.completed_at < first.completed_at && small.completed_at < second.completed_at, "{jobs:?}");
}

/// Readers that compute without yielding until they are released, and so occupy the thread that polls them.
struct BlockingReaders {
    begun: Mutex<Vec<oneshot::Sender<()>>>,
    released: Mutex<mpsc::Receiver<()>>,
    /// `true` if a reader ended at its time limit without being released, because no other work was done while it
    /// computed.
    was_waited_for: AtomicBool,
}

/// The time after which a reader that is not released ends.
const BOUND: Duration = Duration::from_secs(5);

#[async_trait]
impl Intercept for BlockingReaders {
    async fn step(&self, call: Call, phase: Phase) {
        if (call, phase) != (Call::ObjectsOpen, Phase::Before) {
            return;
        }
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(begun) = begun else { return };
        begun.send(()).unwrap();
        let released = self.released.lock().unwrap_or_else(PoisonError::into_inner).recv_timeout(BOUND);
        if released.is_err() {
            self.was_waited_for.store(true, Ordering::SeqCst);
        }
    }
}

/// The runtime of this test has one thread.
#[tokio::test]
async fn api_answers_while_all_readers_compute() {
    let world = World::new();
    let searches = [waiting(&world, TWO_RECORDS).await, waiting(&world, TWO_RECORDS).await];
    let (release, released) = mpsc::channel();
    let (begun, begins): (Vec<_>, Vec<_>) = searches.iter().map(|_| oneshot::channel()).unzip();
    let computing = Arc::new(BlockingReaders {
        begun: Mutex::new(begun),
        released: Mutex::new(released),
        was_waited_for: AtomicBool::new(false),
    });
    let (runner, store) = runner(&world, computing.clone());
    let ports = runner.ports();
    let asked = async {
        for begin in begins {
            begin.await.unwrap();
        }
        let api = router(SearchService::over(&ports, &functions::SYSTEM).unwrap());
        api::get(&api, "/health").await;
        let shown = api::get(&api, &format!("/searches/{}", searches[0])).await;
        assert_eq!(shown["state"], "Parsing");
        searches.iter().for_each(|_| release.send(()).unwrap());
        ended(&store, &ports, &searches).await
    };
    let jobs = runner.run_until(asked).await.unwrap();
    assert_eq!(jobs.iter().map(Job::studies).collect::<Vec<_>>(), [2, 2]);
    assert!(!computing.was_waited_for.load(Ordering::SeqCst));
}
