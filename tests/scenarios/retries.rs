//! What is tried again in place, and what is not.

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
use saga::{Persist, Persisted, ReadDocuments, WriteDocuments};

use crate::world::{TWO_RECORDS, World, deliveries};

/// What happens to the first writes; later ones are made.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// Another worker was quicker.
    Conflict,
    /// Nothing is written, and the store says that it failed.
    Failure,
    /// It is written, and the store says that it failed.
    Ambiguous,
}

/// A store in trouble.
struct Troubled {
    store: Arc<dyn WriteDocuments>,
    trouble: Trouble,
    left: AtomicUsize,
    calls: AtomicUsize,
}

#[async_trait]
impl WriteDocuments for Troubled {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let troubled =
            self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        match self.trouble {
            Trouble::Conflict if troubled => Ok(vec![Persisted::Conflict; writes.len()]),
            Trouble::Failure if troubled => Err(StoreError::unavailable("writing", "cut off before")),
            Trouble::Ambiguous if troubled => {
                self.store.persist(writes, now).await?;
                Err(StoreError::unavailable("writing", "cut off after"))
            }
            Trouble::Conflict | Trouble::Failure | Trouble::Ambiguous => {
                self.store.persist(writes, now).await
            }
        }
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.store.settle(settlements).await
    }
}

/// The saga function over a store in trouble.
fn troubled(world: &World, trouble: Trouble, times: usize) -> (Arc<dyn Consumer>, Arc<Troubled>) {
    let store = Arc::new(Troubled {
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
async fn a_conflict_is_tried_again_after_100_200_and_500_ms_and_then_left() {
    for (conflicts, sleeps) in [(0, vec![]), (2, vec![100, 200]), (3, vec![100, 200, 500])] {
        let world = World::new();
        world.announce(&["a.ris"]).await;
        let batch = world.take(&SAGA).await;
        let (function, _) = troubled(&world, Trouble::Conflict, conflicts);
        assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
        assert_eq!(world.host.sleeps(), sleeps.into_iter().map(Duration::from_millis).collect::<Vec<_>>());
    }
    let world = World::new();
    world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = troubled(&world, Trouble::Conflict, usize::MAX);
    let answers = function.consume(&deliveries(&batch), None).await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]));
    assert_eq!(store.calls.load(Ordering::SeqCst), 4);
}

#[tokio::test]
async fn any_other_failure_goes_back_to_the_queue_at_once() {
    let world = World::new();
    world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = troubled(&world, Trouble::Failure, 1);
    let answers = function.consume(&deliveries(&batch), None).await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]));
    assert_eq!(store.calls.load(Ordering::SeqCst), 1);
    assert!(world.host.sleeps().is_empty());
}

#[tokio::test]
async fn a_write_whose_answer_was_lost_is_found_by_its_attempt() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let batch = world.take(&SAGA).await;
    let (function, store) = troubled(&world, Trouble::Ambiguous, 1);
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    assert_eq!(store.calls.load(Ordering::SeqCst), 1);
    // Receiving writes too, and so waits for the notes that were taken before.
    world.run().await;
    assert_eq!(world.verdicts(announced.search_id, "SearchUploadStarted").await, [Verdict::Handled]);
}

#[tokio::test]
async fn nothing_is_begun_after_the_deadline() {
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
async fn a_batch_of_several_searches_is_written_in_one_call() {
    let world = World::new();
    let mut searches = Vec::new();
    for _ in 0..10 {
        searches.push(world.announce(&["a.ris"]).await);
    }
    let batch = world.take(&SAGA).await;
    let (function, store) = troubled(&world, Trouble::Conflict, 0);
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

/// No object store answers.
struct Away;

#[async_trait]
impl ReadObject for Away {
    async fn head(&self, _: &str, _: &str, _: Option<&str>) -> Result<Option<ObjectFacts>, StoreError> {
        Err(StoreError::unavailable("looking an object up", std::io::Error::other("away")))
    }

    async fn open(&self, _: &ObjectRef, _: u64) -> Result<Option<ObjectStream>, StoreError> {
        Err(StoreError::unavailable("opening an object", std::io::Error::other("away")))
    }
}

/// Alarms look at what is counted as tried again.
#[tokio::test]
async fn notifications_that_come_again_are_counted_whether_a_store_or_the_time_is_missing() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let batch = deliveries(&world.take(&UPLOADS).await);
    let seen = Arc::new(testing::Seen::default());
    let mut function = NotifyUpload::over(&world.backend.ports).unwrap();
    function.reporter.observer = seen.clone();
    let over = world.host.now();
    for (function, deadline) in
        [(NotifyUpload { objects: Arc::new(Away), ..function.clone() }, None), (function, Some(over))]
    {
        let answers = function.consume(&batch, deadline).await;
        assert!(matches!(answers[..], [Disposition::Retry { .. }]), "{answers:?}");
        assert_eq!(seen.take(), [Verdict::Retried]);
    }
}
