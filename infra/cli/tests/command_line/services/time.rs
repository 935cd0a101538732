//! Queues of SQS whose delays follow a test's clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws::queues::{Receipt, Sqs};
use contracts::ManualHost;
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use messages::{
    Disposition, Host, Outgoing, Queue, QueueSpec, ReceiveMessages, ReceivedMessage, SendError, SendMessages,
    StoreError,
};

/// The visibility timeout in SQS itself, which is longer than any test.
const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);
/// The number of concurrent calls.
const CONCURRENCY: usize = 8;

/// SQS measures delays and visibility timeouts by a real clock. This wrapper therefore keeps delayed messages until
/// they are due by the test's clock, and makes received messages visible again when their timeout ends by the test's
/// clock. SQS and its adapter perform the rest: receipts, receive counts and dead-lettering.
pub(super) struct InjectedTime {
    sqs: Sqs,
    queues: &'static [QueueSpec],
    host: Arc<ManualHost>,
    waiting: Mutex<DelayedMessages>,
}

#[derive(Default)]
struct DelayedMessages {
    delayed: Vec<(Timestamp, Outgoing)>,
    /// Received messages by their receipts.
    hidden: BTreeMap<String, (Timestamp, Queue)>,
}

impl InjectedTime {
    pub(super) fn new(sqs: Sqs, queues: &'static [QueueSpec], host: Arc<ManualHost>) -> Self {
        Self { sqs, queues, host, waiting: Mutex::default() }
    }

    /// Applies everything that is due by the test's clock to SQS.
    async fn catch_up(&self) -> Result<(), StoreError> {
        let now = self.host.now();
        let (due, shown) = {
            let mut waiting = self.waiting();
            let due: Vec<Outgoing> =
                waiting.delayed.extract_if(.., |(at, _)| *at <= now).map(|(_, message)| message).collect();
            let shown: Vec<_> = waiting.hidden.extract_if(.., |_, (at, _)| *at <= now).collect();
            (due, shown)
        };
        for sent in self.sqs.send(&due).await {
            sent.map_err(|error| StoreError::unavailable("sending what was delayed", error))?;
        }
        let show = |(receipt, (_, queue)): (String, (Timestamp, Queue))| async move {
            let at_once = Disposition::Retry { after: Duration::ZERO, reason: String::new() };
            self.sqs.answer(&queue, &receipt, &at_once).await
        };
        stream::iter(shown).map(show).buffer_unordered(CONCURRENCY).try_collect().await
    }

    fn after(&self, wait: Duration) -> Timestamp {
        let wait = SignedDuration::try_from(wait).unwrap();
        self.host.now().checked_add(wait).unwrap()
    }

    /// Returns `true` if the queue will not deliver a message again.
    fn is_last(&self, queue: &Queue, receipt: &str) -> bool {
        let receipt: Receipt = serde_json::from_str(receipt).unwrap();
        let limit = QueueSpec::of(self.queues, queue).and_then(|spec| spec.receive_limit);
        limit.is_some_and(|limit| receipt.received >= limit)
    }

    fn waiting(&self) -> MutexGuard<'_, DelayedMessages> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl SendMessages for InjectedTime {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let now: Vec<Outgoing> = messages.iter().filter(|message| message.delay.is_zero()).cloned().collect();
        let mut sent = self.sqs.send(&now).await.into_iter();
        let mut waiting = self.waiting();
        let each = messages.iter().map(|message| {
            if message.delay.is_zero() {
                return sent.next().unwrap();
            }
            let message = message.clone();
            let at = self.after(message.delay);
            waiting.delayed.push((at, Outgoing { delay: Duration::ZERO, ..message }));
            Ok(())
        });
        each.collect()
    }
}

#[async_trait]
impl ReceiveMessages for InjectedTime {
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
        self.catch_up().await?;
        let received = self.sqs.receive(queue, max, MAX_VISIBILITY).await?;
        let until = self.after(visibility);
        let hidden = received.iter().map(|received| (received.receipt.clone(), (until, queue.clone())));
        self.waiting().hidden.extend(hidden);
        Ok(received)
    }

    async fn answer(
        &self,
        queue: &Queue,
        receipt: &str,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        match disposition {
            Disposition::Retry { after, .. } if !self.is_last(queue, receipt) => {
                self.waiting().hidden.insert(receipt.to_owned(), (self.after(*after), queue.clone()));
                Ok(())
            }
            _ => {
                self.sqs.answer(queue, receipt, disposition).await?;
                self.waiting().hidden.remove(receipt);
                Ok(())
            }
        }
    }
}
