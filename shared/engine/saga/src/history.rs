//! The history: a store of the decision about each message. It answers "why was this ignored?".
//!
//! The history is for people. [`Recorder`] buffers decisions in bounded memory and stores them after the work, in one
//! call with a time limit. A store that fails or hangs costs lines of history and nothing else.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::{Either, join, select};
use jiff::Timestamp;
use messages::{DecisionRecord, DecisionSink, Host, Metric, PartitionKey, RecordedVerdict, StoreError};

/// The maximum number of observations in the buffer. A batch leaves about two for each of its messages; the rest is for
/// decisions that were made while the store was unavailable.
pub const MAX_BUFFERED: usize = 1_000;

/// The time limit of a flush.
pub const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The maximum length of a text in bytes. Names and reasons may quote text of other parties.
const MAX_TEXT_BYTES: usize = 2_000;

/// The position of an observation in the history of its partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The time at which the observation was made.
    pub at: Timestamp,
    /// The order of observations with the same time. A store that keeps history in order uses only this field.
    pub sequence: u128,
}

/// Stores history for the configured retention.
#[async_trait]
pub trait KeepHistory: Send + Sync {
    /// Adds observations in one call. The observations come from one process, in the order in which the process made
    /// them.
    ///
    /// # Errors
    /// Returns an error if it is not known whether all of them are stored.
    async fn append(&self, observations: &[DecisionRecord]) -> Result<(), StoreError>;

    /// Returns up to `limit` observations about the messages of a partition, or about those without one, in order,
    /// after a cursor. The observations may come from any version. Observations that are added later follow the earlier
    /// ones, unless they were made earlier.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or holds a value that is not an observation. A retry helps only in
    /// the first case.
    async fn history(
        &self,
        partition: Option<PartitionKey>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, StoreError>;

    /// Removes all stored observations about the messages of a partition. Idempotent.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Some observations may remain.
    async fn remove(&self, partition: PartitionKey) -> Result<(), StoreError>;
}

/// Passes every observation to another observer, and stores the observations at each flush.
pub struct Recorder {
    observer: Arc<dyn DecisionSink>,
    store: Arc<dyn KeepHistory>,
    host: Arc<dyn Host>,
    buffer: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    observations: VecDeque<DecisionRecord>,
    dropped: usize,
}

impl Recorder {
    /// Creates a recorder that stores what it passes on to `observer`.
    pub fn new(observer: Arc<dyn DecisionSink>, store: Arc<dyn KeepHistory>, host: Arc<dyn Host>) -> Self {
        Self { observer, store, host, buffer: Mutex::default() }
    }

    fn buffer(&self) -> std::sync::MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn store(&self) {
        let Buffer { observations, dropped } = std::mem::take(&mut *self.buffer());
        if observations.is_empty() {
            return;
        }
        let observations = Vec::from(observations);
        let append = self.store.append(&observations);
        let error = match select(append, pin!(self.host.sleep(FLUSH_TIMEOUT))).await {
            Either::Left((Ok(()), _)) => None,
            Either::Left((Err(error), _)) => Some(error.chain()),
            Either::Right(_) => Some(format!("no answer within {} s", FLUSH_TIMEOUT.as_secs())),
        };
        let lost = dropped + if error.is_some() { observations.len() } else { 0 };
        if lost > 0 {
            tracing::warn!(lost, error, "decisions are missing from the history");
        }
    }
}

#[async_trait]
impl DecisionSink for Recorder {
    fn observe(&self, observation: DecisionRecord) {
        let mut buffer = self.buffer();
        if buffer.observations.len() == MAX_BUFFERED {
            buffer.observations.pop_front();
            buffer.dropped += 1;
        }
        buffer.observations.push_back(bounded(observation.clone()));
        drop(buffer);
        self.observer.observe(observation);
    }

    fn measure(&self, measure: Metric, value: u64) {
        self.observer.measure(measure, value);
    }

    async fn flush(&self) {
        join(self.observer.flush(), self.store()).await;
    }
}

fn bounded(mut observation: DecisionRecord) -> DecisionRecord {
    let DecisionRecord { message, why, source, traceparent, .. } = &mut observation;
    for text in [message, why, source].into_iter().chain(traceparent) {
        if text.len() > MAX_TEXT_BYTES {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            text.push('…');
        }
    }
    observation
}
