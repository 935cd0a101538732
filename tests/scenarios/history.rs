//! Decisions that are stored alongside the work, independent of failures of their store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use contracts::history::observation;
use contracts::{ManualHost, RecordingSink, sample};
use messages::{DecisionRecord, DecisionSink, Host, PartitionKey, RecordedVerdict, StoreError, Verdict};
use saga::KeepHistory;
use saga::history::{FLUSH_TIMEOUT, MAX_BUFFERED, Place, Recorder};

/// The behaviour of a history store.
#[derive(Clone, Copy, PartialEq)]
enum StoreBehavior {
    Well,
    Failing,
    Hanging,
}

struct FlakyHistory {
    mood: Mutex<StoreBehavior>,
    calls: Mutex<Vec<Vec<DecisionRecord>>>,
}

#[async_trait]
impl KeepHistory for FlakyHistory {
    async fn append(&self, observations: &[DecisionRecord]) -> Result<(), StoreError> {
        self.calls.lock().unwrap().push(observations.to_vec());
        let mood = *self.mood.lock().unwrap();
        match mood {
            StoreBehavior::Well => Ok(()),
            StoreBehavior::Failing => Err(StoreError::unavailable("storing decisions", "away")),
            StoreBehavior::Hanging => std::future::pending().await,
        }
    }

    async fn history(
        &self,
        _: Option<PartitionKey>,
        _: Option<Place>,
        _: usize,
    ) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: PartitionKey) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Desk {
    host: Arc<ManualHost>,
    store: Arc<FlakyHistory>,
    seen: Arc<RecordingSink>,
    recorder: Recorder,
}

impl Desk {
    fn new(mood: StoreBehavior) -> Self {
        let (host, seen) = (Arc::new(ManualHost::seeded(1)), Arc::new(RecordingSink::default()));
        let store = Arc::new(FlakyHistory { mood: Mutex::new(mood), calls: Mutex::default() });
        let recorder = Recorder::new(seen.clone(), store.clone(), host.clone());
        Self { host, store, seen, recorder }
    }

    fn observe(&self, n: u32) -> DecisionRecord {
        let observed = observation(&*self.host, sample::partition(&*self.host), n, n.into());
        self.recorder.observe(observed.clone());
        observed
    }
}

#[tokio::test]
async fn decisions_since_flush_are_stored_in_one_call() {
    let desk = Desk::new(StoreBehavior::Well);
    let observed: Vec<DecisionRecord> = (0..20).map(|n| desk.observe(n)).collect();
    assert!(desk.store.calls.lock().unwrap().is_empty(), "nothing is stored during work");
    desk.recorder.flush().await;
    desk.recorder.flush().await;
    assert_eq!(*desk.store.calls.lock().unwrap(), [observed]);
    assert_eq!(desk.seen.take(), [Verdict::Ignored; 20], "other sinks receive each decision");
}

#[tokio::test]
async fn failed_history_store_loses_only_its_batch() {
    let desk = Desk::new(StoreBehavior::Failing);
    desk.observe(0);
    desk.recorder.flush().await;
    *desk.store.mood.lock().unwrap() = StoreBehavior::Well;
    let next = desk.observe(1);
    desk.recorder.flush().await;
    assert_eq!(desk.store.calls.lock().unwrap().last(), Some(&vec![next]));
    assert_eq!(desk.seen.take().len(), 2);
}

#[tokio::test]
async fn hanging_history_store_is_awaited_until_timeout() {
    let desk = Desk::new(StoreBehavior::Hanging);
    desk.observe(0);
    let before = desk.host.now();
    desk.recorder.flush().await;
    assert_eq!(desk.host.now().duration_since(before).unsigned_abs(), FLUSH_TIMEOUT);
}

#[tokio::test]
async fn full_history_buffer_keeps_latest_decisions() {
    let desk = Desk::new(StoreBehavior::Well);
    let max = u32::try_from(MAX_BUFFERED).unwrap();
    let mut observed: Vec<DecisionRecord> = (0..max + 5).map(|n| desk.observe(n)).collect();
    let long = DecisionRecord { why: "ä".repeat(5_000), ..observed[0].clone() };
    desk.recorder.observe(long);
    desk.recorder.flush().await;
    let stored = desk.store.calls.lock().unwrap().pop().unwrap();
    observed.drain(..6);
    assert_eq!(stored[..MAX_BUFFERED - 1], observed);
    assert!(stored[MAX_BUFFERED - 1].why.len() <= 2_003 && stored.len() == MAX_BUFFERED);
}
