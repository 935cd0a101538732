//! The contract of [`SendMessages`], [`ReceiveMessages`] and [`InspectQueues`].
//!
//! - [`delivery`]: one message: hidden, delayed, redelivered;
//! - [`dead_letters`]: dead-lettered messages;
//! - [`batches`]: several messages at once;
//! - [`depths`]: the depths of queues;
//! - [`fairness`]: messages of several partitions.
//!
//! A receive of a real queue may return fewer messages than there are, and in any order; the suite repeats the request
//! and compares sets. The queues under test must not be used by another program.

use std::time::Duration;

use messages::queue::MAX_BATCH;
use messages::{
    Disposition, Host, InspectQueues, Outgoing, Queue, QueueSpec, ReceiveMessages, ReceivedMessage,
    SendMessages, StoreError,
};

use crate::{CheckResult, sample};

pub mod batches;
pub mod dead_letters;
pub mod delivery;
pub mod depths;
pub mod fairness;

/// The adapter under test.
pub struct Ports<'a> {
    /// Sends.
    pub send: &'a dyn SendMessages,
    /// Receives.
    pub receive: &'a dyn ReceiveMessages,
    /// Inspects.
    pub inspect: &'a dyn InspectQueues,
    /// Ids and time, with the clock of the queues.
    pub host: &'a dyn Host,
    /// The specifications of the queues under test.
    pub queues: &'a [QueueSpec],
    /// A queue under test with a receive limit of more than two.
    pub queue: Queue,
    /// Another queue under test.
    pub other: Queue,
    /// `true` if partitions take turns. All queues must be fair, except for a stand-in of a fair service.
    pub fair: bool,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    delivery::all(ports).await?;
    dead_letters::all(ports).await?;
    batches::all(ports).await?;
    depths::all(ports).await?;
    if ports.fair { fairness::all(ports).await } else { Ok(()) }
}

/// Short, because the suite waits for it on a real queue.
const VISIBILITY: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(600);
/// The number of times that an empty answer is retried: a real queue queries only some of its servers at a time.
const TRIES: usize = 5;

impl Ports<'_> {
    fn outgoing(&self, delay: Duration) -> Result<Outgoing, Box<dyn std::error::Error + Send + Sync>> {
        let message = sample::message(self.host, sample::partition(self.host));
        Ok(Outgoing::new(&message, self.queue.clone(), delay)?)
    }

    async fn send(&self, messages: &[Outgoing]) -> CheckResult {
        let results = self.send.send(messages).await;
        assert_eq!(results.len(), messages.len(), "one result for each message");
        results.into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }

    async fn sent(&self) -> Result<Outgoing, Box<dyn std::error::Error + Send + Sync>> {
        let message = self.outgoing(Duration::ZERO)?;
        self.send(std::slice::from_ref(&message)).await?;
        Ok(message)
    }

    /// Receives until there are `expected` messages, or several attempts returned none.
    async fn receive(
        &self,
        queue: &Queue,
        expected: usize,
        visibility: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
        let mut received = Vec::new();
        for _ in 0..TRIES.max(expected) {
            if received.len() >= expected {
                break;
            }
            let max = (expected - received.len()).min(MAX_BATCH);
            received.extend(self.receive.receive(queue, max, visibility).await?);
        }
        Ok(received)
    }

    async fn one(&self, queue: &Queue, visibility: Duration) -> Result<ReceivedMessage, StoreError> {
        let mut received = self.receive(queue, 1, visibility).await?;
        assert_eq!(received.len(), 1, "nothing arrived in queue {queue}");
        Ok(received.remove(0))
    }

    async fn is_empty(&self, queue: &Queue) -> Result<bool, StoreError> {
        Ok(self.receive.receive(queue, MAX_BATCH, VISIBILITY).await?.is_empty())
    }

    async fn answer(&self, queue: &Queue, receipt: &str, disposition: Disposition) -> Result<(), StoreError> {
        self.receive.answer(queue, receipt, &disposition).await
    }

    /// Returns the dead-letter queue of the queue under test.
    fn dead_letters(&self) -> Result<Queue, String> {
        let queue = QueueSpec::dead_letters_of(self.queues, &self.queue);
        queue.ok_or_else(|| format!("{} has no dead letters", self.queue))
    }

    /// Returns the receive limit of the queue under test.
    fn receive_limit(&self) -> Result<u32, String> {
        let spec = QueueSpec::of(self.queues, &self.queue);
        let limit = spec.and_then(|spec| spec.receive_limit).filter(|limit| *limit >= 2);
        limit.ok_or_else(|| format!("{} has no receive limit of two or more", self.queue))
    }

    /// Empties the queues that the checks use.
    async fn drain(&self) -> CheckResult {
        for queue in [self.queue.clone(), self.dead_letters()?] {
            loop {
                let received = self.receive(&queue, 1, LONG).await?;
                if received.is_empty() {
                    break;
                }
                for message in received {
                    self.answer(&queue, &message.receipt, Disposition::Acknowledge).await?;
                }
            }
        }
        Ok(())
    }
}

fn retry(after: Duration) -> Disposition {
    Disposition::Retry { after, reason: "busy".to_owned() }
}
