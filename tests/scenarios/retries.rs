//! Retries within an attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use functions::notify_upload::NotifyUpload;
use functions::run_saga;
use imports::messages::ObjectRef;
use imports::queues::{SAGA, UPLOADS};
use imports::{JobState, ObjectFacts, ObjectStream, ReadObject, SearchImport};
use jiff::Timestamp;
use messages::{Consumer, Disposition, Host, PartitionKey, ReceiveMessages, StoreError, Verdict};
use outbox::Settlement;
use saga::{Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::world::{TWO_RECORDS, World, deliveries};

/// The result of the first writes; later writes succeed.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Another worker has written first.
    Conflict,
    /// The write fails and is reported as failed.
    Failure,
    /// The write succeeds and is reported as failed.
    Ambiguous,
}

struct FaultyStore {
    store: Arc<dyn WriteDocuments>,
    trouble: Fault,
    left: AtomicUsize,
    calls: AtomicUsize,
}

#[async_trait]
impl WriteDocuments for FaultyStore {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let faulty_store =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        match self.trouble {
            Fault::Conflict if faulty_store => Ok(vec![PersistOutcome::Conflict; writes.len()]),
            Fault::Failure if faulty_store => Err(StoreError::unavailable("writing", "cut off before")),
            Fault::Ambiguous if faulty_store => {
                self.store.persist(writes, now).await?;
                Err(StoreError::unavailable("writing", "cut off after"))
            }
            Fault::Conflict | Fault::Failure | Fault::Ambiguous => self.store.persist(writes, now).await,
        }
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.store.settle(settlements).await
    }
}

/// Returns the saga function on a faulty store.
fn faulty_store(world: &World, trouble: Fault, times: usize) -> (Arc<dyn Consumer>, Arc<FaultyStore>) {
    let store = Arc::new(FaultyStore {
        store: world.store.clone(),
        trouble,
        left: AtomicUsize::new(times),
        calls: AtomicUsize::new(0),
    });
    let mut engine = world.backend.ports.engine.clone();
    let stores = engine.stores().unwrap().clone();
    engine.stores = Ok(saga::Stores { write_documents: store.clone(), ..stores });
    (engine.run(run_saga::NAME, SearchImport::default()).unwrap(), store)
}

#[tokio::test]
async fn conflict_is_retried_three_times() {
    for (conflicts, sleeps) in [(0, vec![]), (2, vec![100, 200]), (3, vec![100, 200, 500])] {
        let world = World::new();
        world.announce(&["a.ris"]).await;
        let batch = world.take(&SAGA).await;
        let (function, _) = faulty_store(&world, Fault::Conflict, conflicts);
        assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
        assert_eq!(world.host.sleeps(), sleeps.into_iter().map(Duration::from_millis).collect::<Vec<_>>());
    }
    let world = World::new();
    world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = faulty_store(&world, Fault::Conflict, usize::MAX);
    let answers = function.consume(&deliveries(&batch), None).await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]));
    assert_eq!(store.calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn other_failures_return_to_queue_immediately() {
    let world = World::new();
    world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = faulty_store(&world, Fault::Failure, 1);
    let answers = function.consume(&deliveries(&batch), None).await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]));
    assert_eq!(store.calls.load(Ordering::SeqCst), 1);
    assert!(world.host.sleeps().is_empty());
}

#[tokio::test]
async fn write_with_lost_response_is_found_by_attempt() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = faulty_store(&world, Fault::Ambiguous, 1);
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    assert_eq!(store.calls.load(Ordering::SeqCst), 1);
    // Receiving also writes, so it waits for the records that were queued before.
    world.run().await;
    assert_eq!(world.verdicts(announced.search_id, "SearchUploadStarted").await, [Verdict::Handled]);
}

#[tokio::test]
async fn no_work_starts_after_deadline() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let now = world.host.now();
    let answers = world.functions.behind(&SAGA).consume(&deliveries(&batch), Some(now)).await;
    assert!(matches!(answers[..], [Disposition::Retry { after: Duration::ZERO, .. }]));
    let documents = world.store().load(&[announced.search_id], now).await.unwrap();
    assert!(matches!(documents[..], [Ok(None)]));
}

#[tokio::test]
async fn batch_of_searches_is_written_in_one_call() {
    let world = World::new();
    let mut searches = Vec::new();
    for _ in 0..10 {
        searches.push(world.announce(&["a.ris"]).await);
    }
    let batch = world.take(&SAGA).await;
    let (function, store) = faulty_store(&world, Fault::Conflict, 0);
    let answers = function.consume(&deliveries(&batch), None).await;
    assert_eq!(answers, vec![Disposition::Acknowledge; 10]);
    assert_eq!(store.calls.load(Ordering::SeqCst), 1);
    for search in &searches {
        world.upload(search, 0, TWO_RECORDS).await;
    }
    for received in &batch {
        world.store().answer(&SAGA, &received.receipt, &Disposition::Acknowledge).await.unwrap();
    }
    world.run().await;
    for search in searches {
        assert_eq!(world.job(search.search_id).await.state, JobState::Completed);
    }
}

/// An unavailable object store.
struct UnavailableObjects;

#[async_trait]
impl ReadObject for UnavailableObjects {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        Err(StoreError::unavailable("looking an object up", std::io::Error::other("away")))
    }

    async fn open(&self, _: &ObjectRef, _: u64) -> Result<Option<ObjectStream>, StoreError> {
        Err(StoreError::unavailable("opening an object", std::io::Error::other("away")))
    }
}

struct HangingObjects;

#[async_trait]
impl ReadObject for HangingObjects {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        std::future::pending().await
    }

    async fn open(&self, _: &ObjectRef, _: u64) -> Result<Option<ObjectStream>, StoreError> {
        std::future::pending().await
    }
}

/// Alarms use the number of retries. A store that does not answer delays the notification, too.
#[tokio::test]
async fn retried_notifications_are_counted_for_any_cause() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let batch = deliveries(&world.take(&UPLOADS).await);
    let seen = Arc::new(contracts::RecordingSink::default());
    let mut function = NotifyUpload::over(&world.backend.ports).unwrap();
    function.reporter.observer = seen.clone();
    let over = world.host.now();
    let soon = over.checked_add(Duration::from_secs(20)).unwrap();
    let overtime = Some(Duration::from_secs(3));
    for (function, deadline) in [
        (NotifyUpload { objects: Arc::new(UnavailableObjects), ..function.clone() }, None),
        (NotifyUpload { objects: Arc::new(HangingObjects), overtime, ..function.clone() }, Some(soon)),
        (function, Some(over)),
    ] {
        let answers = function.consume(&batch, deadline).await;
        let is_delayed = |after: &Duration| *after > Duration::ZERO;
        assert!(
            matches!(&answers[..], [Disposition::Retry { after, .. }] if is_delayed(after)),
            "{answers:?}"
        );
        assert_eq!(seen.take(), [Verdict::Retried]);
    }
}
