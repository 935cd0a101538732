//! What was decided about each message, kept where it can be looked up: it answers "why was this ignored?".
//!
//! History is for people. [`Recorder`] collects it beside the work, in bounded memory, and stores it when the work is done,
//! in one call and for a limited time: a store of history that fails or hangs costs lines of history and nothing else.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, join, select};
use jiff::Timestamp;
use messages::{Host, Measure, Noted, Observation, Observe, PartitionKey, StoreError};

/// The most observations that wait for the next flush. A batch leaves about two for each of its messages; the rest is
/// room for what was decided while the store did not answer.
pub const MAX_WAITING: usize = 1_000;

/// How long a flush waits for the store.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// The most bytes of a text that are kept. Names and reasons may quote what others have sent.
const MAX_TEXT_BYTES: usize = 2_000;

/// Where an observation is in the history of its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it was made.
    pub at: Timestamp,
    /// Distinguishes those of one moment, in the order in which they were made. A store that keeps history in that order
    /// anyway goes by this alone.
    pub sequence: u128,
}

/// Keeps history for as long as it is set to.
#[async_trait]
pub trait KeepHistory: Send + Sync {
    /// Adds observations, in one call. They are those of one process, in the order in which it made them.
    ///
    /// # Errors
    /// When it is not known whether all of them are stored.
    async fn append(&self, observations: &[Observation]) -> Result<(), StoreError>;

    /// The observations, of any release, about the messages of a partition, or about those that say no partition, in order: at most `limit`
    /// after a place. What is added later is found after those before it, unless it was made earlier.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not an observation.
    async fn history(
        &self,
        partition: Option<PartitionKey>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, Observation<Noted>)>, StoreError>;

    /// Removes all observations about the messages of a partition that were added before. Repeating it changes nothing.
    ///
    /// # Errors
    /// When the store does not answer: some may be left.
    async fn remove(&self, partition: PartitionKey) -> Result<(), StoreError>;
}

/// Tells another observer of everything, and stores the observations at each flush.
pub struct Recorder {
    observer: Arc<dyn Observe>,
    store: Arc<dyn KeepHistory>,
    host: Arc<dyn Host>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    observations: VecDeque<Observation>,
    dropped: usize,
}

impl Recorder {
    /// Records in a store what it passes on to `observer`.
    pub fn new(observer: Arc<dyn Observe>, store: Arc<dyn KeepHistory>, host: Arc<dyn Host>) -> Self {
        Self { observer, store, host, waiting: Mutex::default() }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn store(&self) {
        let Waiting { observations, dropped } = std::mem::take(&mut *self.waiting());
        if observations.is_empty() {
            return;
        }
        let observations = Vec::from(observations);
        let append = self.store.append(&observations);
        let error = match select(append, pin!(self.host.sleep(PATIENCE))).await {
            Either::Left((Ok(()), _)) => None,
            Either::Left((Err(error), _)) => Some(error.chain()),
            Either::Right(_) => Some(format!("no answer within {} s", PATIENCE.as_secs())),
        };
        let lost = dropped + if error.is_some() { observations.len() } else { 0 };
        if lost > 0 {
            tracing::warn!(lost, error, "decisions are missing from the history");
        }
    }
}

#[async_trait]
impl Observe for Recorder {
    fn observe(&self, observation: Observation) {
        let mut waiting = self.waiting();
        if waiting.observations.len() == MAX_WAITING {
            waiting.observations.pop_front();
            waiting.dropped += 1;
        }
        waiting.observations.push_back(bounded(observation.clone()));
        drop(waiting);
        self.observer.observe(observation);
    }

    fn measure(&self, measure: Measure, value: u64) {
        self.observer.measure(measure, value);
    }

    async fn flush(&self) {
        join(self.observer.flush(), self.store()).await;
    }
}

fn bounded(mut observation: Observation) -> Observation {
    let Observation { message, why, source, traceparent, .. } = &mut observation;
    for text in [message, why, source].into_iter().chain(traceparent) {
        if text.len() > MAX_TEXT_BYTES {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            text.push('…');
        }
    }
    observation
}
