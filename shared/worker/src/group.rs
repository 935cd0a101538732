//! The messages of some searches, attempted until they are done or better left to a later delivery.

use std::sync::Arc;

use contracts::{Backoff, Host, SearchId};
use dedup::ClaimPartition;
use futures::future::join_all;
use jiff::Timestamp;

use crate::dispatch::Dispatcher;
use crate::document::{ReadSaga, WriteSaga};
use crate::plan::{Incoming, Judgement};
use crate::round::Ended;
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

/// Messages of one search, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// The search.
    pub search_id: SearchId,
    /// Its messages, at least one.
    pub messages: Vec<Incoming>,
}

/// A group that is better left to a later delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Later {
    /// When to deliver its messages again.
    pub backoff: Backoff,
    /// Why.
    pub reason: String,
}

impl Group {
    /// Logs what went wrong, with the first of its messages.
    pub(crate) fn warn(&self, function: &'static str, error: &str, what: &'static str) {
        let message_id = self.messages.first().map(|incoming| incoming.message.id.to_string());
        tracing::warn!(function, correlation_id = %self.search_id, message_id, error, "{what}");
    }
}

impl Worker {
    /// A worker over these ports.
    pub fn new(ports: Ports, settings: Settings) -> Self {
        Self { ports, settings }
    }

    /// Works on groups of different searches; one answer for each, in order: a judgement for each message, or why
    /// the group is left to a later delivery. What was done of it until then does no harm when it is done again.
    ///
    /// All groups are attempted together once. The rare ones that meet a conflict or a busy partition are then
    /// attempted again by themselves: a conflict as often as the settings have delays for, a busy partition a few
    /// times. Everything else goes back to the queue at once. Nothing is begun after `deadline`.
    pub async fn work_on(
        &self,
        groups: &[Group],
        deadline: Option<Timestamp>,
    ) -> Vec<Result<Vec<Judgement>, Later>> {
        let mut answers = Vec::with_capacity(groups.len());
        for part in groups.chunks(self.settings.concurrency.max(1)) {
            if self.is_late(deadline) {
                answers.extend(part.iter().map(|_| Err(self.out_of_time())));
                continue;
            }
            let ended = self.round(&part.iter().collect::<Vec<_>>()).await;
            let finished = part.iter().zip(ended).map(|(group, ended)| self.finish(group, ended, deadline));
            answers.extend(join_all(finished).await);
        }
        answers
    }

    /// Attempts a group by itself until it is done or there is a reason to leave it.
    async fn finish(
        &self,
        group: &Group,
        first: Ended,
        deadline: Option<Timestamp>,
    ) -> Result<Vec<Judgement>, Later> {
        let mut conflicts = self.settings.conflict_delays.iter();
        let mut busy = 0;
        let mut ended = first;
        loop {
            let wait = match ended {
                Ended::Done(judgements) => return Ok(judgements),
                Ended::BrokenOff(reason) => return Err(self.broken_off(group, reason)),
                Ended::Conflict => match conflicts.next() {
                    Some(delay) => *delay,
                    None => return Err(self.failed("other workers kept changing the search".to_owned())),
                },
                Ended::Busy if busy < self.settings.busy_tries => {
                    busy += 1;
                    self.settings.busy_wait.mul_f64(0.5 + self.ports.host.unit_random() / 2.0)
                }
                Ended::Busy => return Err(self.busy()),
            };
            self.ports.host.sleep(wait).await;
            if self.is_late(deadline) {
                return Err(self.out_of_time());
            }
            ended = self.round(&[group]).await.pop().unwrap_or(Ended::Busy);
        }
    }

    fn is_late(&self, deadline: Option<Timestamp>) -> bool {
        deadline.is_some_and(|deadline| self.ports.host.now() >= deadline)
    }

    fn out_of_time(&self) -> Later {
        Later { backoff: Backoff::NONE, reason: "the function's time is nearly over".to_owned() }
    }

    fn busy(&self) -> Later {
        let reason = "another worker is inside the partition".to_owned();
        Later { backoff: self.settings.busy_visibility, reason }
    }

    fn failed(&self, reason: String) -> Later {
        Later { backoff: self.settings.failure_visibility, reason }
    }

    fn broken_off(&self, group: &Group, reason: String) -> Later {
        group.warn(self.ports.dispatcher.reporter.function, &reason, "an attempt was broken off");
        self.failed(reason)
    }
}
