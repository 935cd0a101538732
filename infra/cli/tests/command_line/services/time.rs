//! Queues of SQS whose waits pass with a test's clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use aws::queues::{Receipt, Sqs};
use futures::stream::{self, StreamExt, TryStreamExt};
use jiff::{SignedDuration, Timestamp};
use messages::{
    Disposition, Host, Outgoing, Queue, QueueSpec, ReceiveMessages, Received, SendError, SendMessages,
    StoreError,
};
use testing::ManualHost;

/// How long SQS itself hides what was received: longer than any test takes.
const OUT_OF_SIGHT: Duration = Duration::from_secs(43_200);
/// How many calls are made side by side.
const AT_ONCE: usize = 8;

/// SQS measures delays and visibility timeouts by a clock that no test moves. So a delayed message is kept here and sent
/// when the test's clock says so, and a received one is hidden for as long as SQS allows and shown when the test's clock
/// says so. All else is SQS's and its adapter's: receipts, receive counts, and giving up what was received too often.
pub(super) struct InjectedTime {
    sqs: Sqs,
    queues: &'static [QueueSpec],
    host: Arc<ManualHost>,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    delayed: Vec<(Timestamp, Outgoing)>,
    /// By their receipts.
    hidden: BTreeMap<String, (Timestamp, Queue)>,
}

impl InjectedTime {
    pub(super) fn new(sqs: Sqs, queues: &'static [QueueSpec], host: Arc<ManualHost>) -> Self {
        Self { sqs, queues, host, waiting: Mutex::default() }
    }

    /// Forgets what a queue has hidden or held back.
    pub(super) fn forget(&self, queue: &Queue) {
        let mut waiting = self.waiting();
        waiting.delayed.retain(|(_, message)| message.queue != *queue);
        waiting.hidden.retain(|_, (_, of)| of != queue);
    }

    /// Brings SQS up to the test's clock.
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
        stream::iter(shown).map(show).buffer_unordered(AT_ONCE).try_collect().await
    }

    fn after(&self, wait: Duration) -> Timestamp {
        let wait = SignedDuration::try_from(wait).unwrap();
        self.host.now().checked_add(wait).unwrap()
    }

    /// Whether the queue delivers a message no more.
    fn is_last(&self, queue: &Queue, receipt: &str) -> bool {
        let receipt: Receipt = serde_json::from_str(receipt).unwrap();
        let limit = QueueSpec::of(self.queues, queue).and_then(|spec| spec.receive_limit);
        limit.is_some_and(|limit| receipt.received >= limit)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
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
    ) -> Result<Vec<Received>, StoreError> {
        self.catch_up().await?;
        let received = self.sqs.receive(queue, max, OUT_OF_SIGHT).await?;
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
