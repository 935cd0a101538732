//! One group of messages of one search, attempted until it is done or better left to a later delivery.

use std::sync::Arc;
use std::time::Duration;

use contracts::store::chain;
use contracts::{Host, SearchId};
use dedup::ClaimPartition;

use crate::attempt::{AttemptError, Ended};
use crate::dispatch::Dispatcher;
use crate::document::{ReadSaga, WriteSaga};
use crate::plan::{Incoming, Judgement};
use crate::settings::Settings;

/// The ports of the worker.
#[derive(Clone)]
pub struct Ports {
    /// Loads documents.
    pub read: Arc<dyn ReadSaga>,
    /// Stores documents.
    pub write: Arc<dyn WriteSaga>,
    /// Claims partitions.
    pub ledger: Arc<dyn ClaimPartition>,
    /// Performs the outbox.
    pub dispatcher: Dispatcher,
    /// Time and randomness.
    pub host: Arc<dyn Host>,
}

/// Works on the messages of searches.
#[derive(Clone)]
pub struct Worker {
    pub(crate) ports: Ports,
    pub(crate) settings: Settings,
}

/// A group that is better left to a later delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// When to deliver it again.
    pub after: Duration,
    /// Why.
    pub reason: String,
}

impl Worker {
    /// A worker over these ports.
    pub fn new(ports: Ports, settings: Settings) -> Self {
        Self { ports, settings }
    }

    /// Works on messages of one search, in order. One judgement for each.
    ///
    /// Retried in place is only what passes by itself within moments: a conflict with another worker that stored
    /// something, as often as the settings have delays for, and a busy partition.
    ///
    /// # Errors
    /// When the group is better left to a later delivery. What was done of it until then does no harm when it is
    /// done again.
    pub async fn work_on(&self, search_id: SearchId, group: &[Incoming]) -> Result<Vec<Judgement>, Later> {
        let mut conflicts = self.settings.conflict_delays.iter();
        let mut busy = 0;
        loop {
            match self.attempt(search_id, group).await {
                Ok(Ended::Done(judgements)) => return Ok(judgements),
                Ok(Ended::Conflict) => match conflicts.next() {
                    Some(delay) => self.ports.host.sleep(*delay).await,
                    None => return Err(self.failed("other workers kept changing the search".to_owned())),
                },
                Ok(Ended::Busy) if busy < self.settings.busy_tries => {
                    busy += 1;
                    let wait = self.settings.busy_wait.mul_f64(0.5 + self.ports.host.unit_random() / 2.0);
                    self.ports.host.sleep(wait).await;
                }
                Ok(Ended::Busy) => return Err(self.busy()),
                Err(error) => return Err(self.broken_off(search_id, &error)),
            }
        }
    }

    fn busy(&self) -> Later {
        let reason = "another worker is inside the partition".to_owned();
        Later { after: self.settings.busy_visibility, reason }
    }

    fn failed(&self, reason: String) -> Later {
        Later { after: self.settings.failure_visibility, reason }
    }

    fn broken_off(&self, search_id: SearchId, error: &AttemptError) -> Later {
        let reason = chain(error);
        tracing::warn!(%search_id, error = reason, "an attempt was broken off");
        self.failed(reason)
    }
}
