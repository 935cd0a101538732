//! The queues: sending to them and receiving from them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::delivery::{Delivery, Disposition};
use crate::ids::{MessageId, PartitionKey};
use crate::message::{EncodeError, Message};
use crate::store::StoreError;

/// The most messages that one send takes, and that one receive returns
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
pub const MAX_BATCH: usize = 10;

/// A queue, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Queue(Cow<'static, str>);

impl Queue {
    /// The queue of this name, in lower case.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl From<String> for Queue {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// What is agreed about a queue. One table of these serves every place that has to know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue.
    pub queue: Queue,
    /// Where a message goes that was received too often or rejected; none for a queue that keeps everything.
    pub dead_letters: Option<Queue>,
    /// How often a message is received before the queue gives it up, as `maxReceiveCount` of a redrive policy
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>).
    pub receive_limit: Option<u32>,
    /// How long a received message is hidden from others: six times what the function behind the queue may take
    /// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>); zero where nobody receives.
    pub visibility: Duration,
    /// The most messages that the function is given at once.
    pub batch_size: usize,
    /// How many workers of one process receive from it at the same time.
    pub workers: usize,
}

impl QueueSpec {
    /// A queue without a function behind it: a dead-letter queue, or one that other systems read.
    pub const fn kept(queue: Queue) -> Self {
        Self {
            queue,
            dead_letters: None,
            receive_limit: None,
            visibility: Duration::ZERO,
            batch_size: 0,
            workers: 0,
        }
    }

    /// A queue with a function behind it. A message stays invisible six times the timeout of the function, as Lambda
    /// recommends.
    pub const fn worked(
        queue: Queue,
        dead_letters: Queue,
        receive_limit: u32,
        function_timeout_s: u64,
        batch_size: usize,
        workers: usize,
    ) -> Self {
        Self {
            queue,
            dead_letters: Some(dead_letters),
            receive_limit: Some(receive_limit),
            visibility: Duration::from_secs(6 * function_timeout_s),
            batch_size,
            workers,
        }
    }

    /// What is agreed about `queue`, if anything is.
    pub fn of<'a>(queues: &'a [Self], queue: &Queue) -> Option<&'a Self> {
        queues.iter().find(|spec| spec.queue == *queue)
    }

    /// Where `queue` puts what it gives up.
    pub fn dead_letters_of(queues: &[Self], queue: &Queue) -> Option<Queue> {
        Self::of(queues, queue).and_then(|spec| spec.dead_letters.clone())
    }
}

/// A message on its way out, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The message's id.
    pub id: MessageId,
    /// The partition it belongs to.
    pub partition: PartitionKey,
    /// Where to.
    pub queue: Queue,
    /// The encoded message.
    pub body: String,
    /// How long the queue is to hold it back.
    pub delay: Duration,
}

impl Outgoing {
    /// A message for a queue.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn new(message: &Message, queue: Queue, delay: Duration) -> Result<Self, EncodeError> {
        Ok(Self { id: message.id, partition: message.partition, queue, body: message.encode()?, delay })
    }
}

/// Sends one message to a queue.
///
/// # Errors
/// When it cannot be encoded or the queue did not take it.
pub async fn send_one(
    send: &dyn SendMessages,
    message: &Message,
    queue: Queue,
    delay: Duration,
) -> Result<(), SendError> {
    let outgoing = Outgoing::new(message, queue, delay)?;
    send.send(&[outgoing]).await.into_iter().collect()
}

/// Sends messages.
#[async_trait]
pub trait SendMessages: Send + Sync {
    /// Sends each message, at least once when its result is `Ok`; one result for each, in order. A failed one
    /// does not keep the others back.
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>>;
}

/// Why one message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The queue is not known here; trying again is of no use.
    #[error("no URL is set for queue {0}")]
    UnknownQueue(Queue),
    /// It cannot be written; trying again is of no use.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The queue did not take it.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SendError {
    /// Retry, or not?
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnknownQueue(_) | Self::Encode(_) => false,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

/// A delivery, and the right to say what becomes of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// Valid until the visibility timeout ends.
    pub receipt: String,
    /// What was received.
    pub delivery: Delivery,
    /// Why it was given up, where that is known and this is a dead-letter queue.
    pub reason: Option<String>,
}

/// Receives messages: what a function's event source does on its behalf.
#[async_trait]
pub trait ReceiveMessages: Send + Sync {
    /// Up to `max` messages that are visible now, each hidden from others for `visibility`.
    ///
    /// # Errors
    /// When the queue does not answer.
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>, StoreError>;

    /// Does with a received message what its handler decided. With an outdated receipt nothing happens.
    ///
    /// # Errors
    /// When the queue does not answer; the message becomes visible again by itself.
    async fn answer(&self, queue: &Queue, receipt: &str, disposition: &Disposition)
    -> Result<(), StoreError>;
}

/// How much is in a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Messages that may be received now.
    pub visible: u64,
    /// Messages that were received and not answered.
    pub in_flight: u64,
    /// Messages that are held back.
    pub delayed: u64,
    /// How long ago the oldest of them was sent; none when there is none, or the queue does not tell.
    pub oldest: Option<Duration>,
}

impl Depth {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

/// Tells how much is in queues.
#[async_trait]
pub trait InspectQueues: Send + Sync {
    /// How much is in each queue that is known here, the empty ones included. Counts of a service may be some seconds old.
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>>;

    /// Returns where a message of a queue is; none when the service cannot tell, as SQS cannot.
    ///
    /// # Errors
    /// When the queue does not answer. The call may be repeated.
    async fn locate(&self, _queue: &Queue, _message: MessageId) -> Result<Option<Presence>, StoreError> {
        Ok(None)
    }
}

/// Where one message of a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The queue does not hold it: it was acknowledged, or dead-lettered.
    Absent,
    /// A worker has received it at least once, and has not acknowledged it.
    Received,
    /// No worker has received it.
    Waiting,
}
