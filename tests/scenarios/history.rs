//! Decisions that are stored beside the work, whatever becomes of their store.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use messages::{Host, Noted, Observation, Observe, PartitionKey, StoreError, Verdict};
use saga::KeepHistory;
use saga::history::{FLUSH_TIMEOUT, MAX_BUFFERED, Place, Recorder};
use testing::history::observation;
use testing::{ManualHost, Seen, sample};

/// How a store of history answers.
#[derive(Clone, Copy, PartialEq)]
enum Mood {
    Well,
    Failing,
    Hanging,
}

struct Moody {
    mood: Mutex<Mood>,
    calls: Mutex<Vec<Vec<Observation>>>,
}

#[async_trait]
impl KeepHistory for Moody {
    async fn append(&self, observations: &[Observation]) -> Result<(), StoreError> {
        self.calls.lock().unwrap().push(observations.to_vec());
        let mood = *self.mood.lock().unwrap();
        match mood {
            Mood::Well => Ok(()),
            Mood::Failing => Err(StoreError::unavailable("storing decisions", "away")),
            Mood::Hanging => std::future::pending().await,
        }
    }

    async fn history(
        &self,
        _: Option<PartitionKey>,
        _: Option<Place>,
        _: usize,
    ) -> Result<Vec<(Place, Observation<Noted>)>, StoreError> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: PartitionKey) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Desk {
    host: Arc<ManualHost>,
    store: Arc<Moody>,
    seen: Arc<Seen>,
    recorder: Recorder,
}

impl Desk {
    fn new(mood: Mood) -> Self {
        let (host, seen) = (Arc::new(ManualHost::seeded(1)), Arc::new(Seen::default()));
        let store = Arc::new(Moody { mood: Mutex::new(mood), calls: Mutex::default() });
        let recorder = Recorder::new(seen.clone(), store.clone(), host.clone());
        Self { host, store, seen, recorder }
    }

    fn observe(&self, n: u32) -> Observation {
        let observed = observation(&*self.host, sample::partition(&*self.host), n, n.into());
        self.recorder.observe(observed.clone());
        observed
    }
}

#[tokio::test]
async fn what_was_decided_since_the_last_flush_is_stored_in_one_call() {
    let desk = Desk::new(Mood::Well);
    let observed: Vec<Observation> = (0..20).map(|n| desk.observe(n)).collect();
    assert!(desk.store.calls.lock().unwrap().is_empty(), "nothing is stored while there is work");
    desk.recorder.flush().await;
    desk.recorder.flush().await;
    assert_eq!(*desk.store.calls.lock().unwrap(), [observed]);
    assert_eq!(desk.seen.take(), [Verdict::Ignored; 20], "others are told of each");
}

#[tokio::test]
async fn a_store_that_fails_costs_no_more_than_what_it_was_given() {
    let desk = Desk::new(Mood::Failing);
    desk.observe(0);
    desk.recorder.flush().await;
    *desk.store.mood.lock().unwrap() = Mood::Well;
    let next = desk.observe(1);
    desk.recorder.flush().await;
    assert_eq!(desk.store.calls.lock().unwrap().last(), Some(&vec![next]));
    assert_eq!(desk.seen.take().len(), 2);
}

#[tokio::test]
async fn a_store_that_hangs_is_waited_for_as_long_as_the_clock_says() {
    let desk = Desk::new(Mood::Hanging);
    desk.observe(0);
    let before = desk.host.now();
    desk.recorder.flush().await;
    assert_eq!(desk.host.now().duration_since(before).unsigned_abs(), FLUSH_TIMEOUT);
}

#[tokio::test]
async fn of_more_than_there_is_room_for_the_latest_are_stored_with_texts_of_bounded_size() {
    let desk = Desk::new(Mood::Well);
    let most = u32::try_from(MAX_BUFFERED).unwrap();
    let mut observed: Vec<Observation> = (0..most + 5).map(|n| desk.observe(n)).collect();
    let long = Observation { why: "ä".repeat(5_000), ..observed[0].clone() };
    desk.recorder.observe(long);
    desk.recorder.flush().await;
    let stored = desk.store.calls.lock().unwrap().pop().unwrap();
    observed.drain(..6);
    assert_eq!(stored[..MAX_BUFFERED - 1], observed);
    assert!(stored[MAX_BUFFERED - 1].why.len() <= 2_003 && stored.len() == MAX_BUFFERED);
}
