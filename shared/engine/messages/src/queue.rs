//! Queues, and the ports to send and receive.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::delivery::{Delivery, Disposition};
use crate::ids::{MessageId, PartitionKey};
use crate::message::{EncodeError, Message};
use crate::payload::{EventTypes, Payload};
pub use crate::queue_name::Queue;
use crate::store::StoreError;
use async_trait::async_trait;

/// The maximum number of messages in one send or receive
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
pub const MAX_BATCH: usize = 10;

/// The time for which the queues of the templates keep a message, unless they are dead-letter queues.
pub const RETENTION: Duration = Duration::from_secs(4 * 24 * 60 * 60);

/// The specification of a queue. One table of these serves all programs of a system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueSpec {
    /// The queue.
    pub queue: Queue,
    /// The dead-letter queue, for messages that exceed the receive limit or are rejected; `None` for a queue that keeps
    /// everything.
    pub dead_letters: Option<Queue>,
    /// The receive limit, as `maxReceiveCount` of a redrive policy
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>).
    pub receive_limit: Option<u32>,
    /// The visibility timeout: six times the timeout of the function behind the queue
    /// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>); zero without a consumer.
    pub visibility: Duration,
    /// The maximum number of messages in a batch for the function.
    pub batch_size: usize,
    /// The number of workers per process that receive from the queue concurrently.
    pub workers: usize,
    /// The events of the saga behind the queue, for tools of operators; see [`QueueSpec::with_events`].
    pub events: Option<EventTypes>,
}

impl QueueSpec {
    /// Specifies a queue without a consumer: a dead-letter queue, or one that other systems read.
    pub const fn without_consumer(queue: Queue) -> Self {
        Self {
            queue,
            dead_letters: None,
            receive_limit: None,
            visibility: Duration::ZERO,
            batch_size: 0,
            workers: 0,
            events: None,
        }
    }

    /// Specifies a queue with a consumer. Its visibility timeout is six times the timeout of the function, as Lambda
    /// recommends.
    pub const fn with_consumer(
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
            events: None,
        }
    }

    /// Declares the events of the saga behind the queue. Tools of operators can then send them.
    #[must_use]
    pub const fn with_events<E: Payload>(mut self) -> Self {
        self.events = Some(EventTypes::of::<E>());
        self
    }

    /// Specifies a queue with a consumer and the usual values: 20 receives, a function timeout of 30 seconds, batches
    /// of ten messages, and two workers per process.
    pub const fn standard(queue: Queue, dead_letters: Queue) -> Self {
        Self::with_consumer(queue, dead_letters, 20, 30, MAX_BATCH, 2)
    }

    /// Returns the specification of `queue`, if any.
    pub fn of<'a>(queues: &'a [Self], queue: &Queue) -> Option<&'a Self> {
        queues.iter().find(|spec| spec.queue == *queue)
    }

    /// Returns the dead-letter queue of `queue`.
    pub fn dead_letters_of(queues: &[Self], queue: &Queue) -> Option<Queue> {
        Self::of(queues, queue).and_then(|spec| spec.dead_letters.clone())
    }

    /// Returns `true` if `queue` is the dead-letter queue of another one.
    pub fn is_dead_letter_queue(queues: &[Self], queue: &Queue) -> bool {
        queues.iter().any(|spec| spec.dead_letters.as_ref() == Some(queue))
    }
}

/// An encoded message to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The message's id.
    pub id: MessageId,
    /// The partition that the message belongs to.
    pub partition: PartitionKey,
    /// The target queue.
    pub queue: Queue,
    /// The encoded message.
    pub body: String,
    /// The delay before the queue delivers the message.
    pub delay: Duration,
}

impl Outgoing {
    /// Encodes a message for a queue.
    ///
    /// # Errors
    /// Returns an error if the message cannot be encoded.
    pub fn new(message: &Message, queue: Queue, delay: Duration) -> Result<Self, EncodeError> {
        Ok(Self { id: message.id, partition: message.partition, queue, body: message.encode()?, delay })
    }
}

/// Sends one message to a queue.
///
/// # Errors
/// Returns an error if it cannot be encoded, or the queue refuses it.
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
    /// Sends each message and returns a result for each, in order. `Ok` means that it was sent at least once. A failed
    /// message does not block the others.
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>>;
}

/// The reason why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The queue is unknown; retrying does not help.
    #[error("no URL is set for queue {0}")]
    UnknownQueue(Queue),
    /// The message cannot be encoded; retrying does not help.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The queue refused the message.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SendError {
    /// Returns `true` if a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::UnknownQueue(_) | Self::Encode(_) => false,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

/// A delivery and its receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceivedMessage {
    /// The receipt of the delivery, which is valid until the visibility timeout ends.
    pub receipt: String,
    /// The delivery.
    pub delivery: Delivery,
}

/// Receives messages, as a function's event source does.
#[async_trait]
pub trait ReceiveMessages: Send + Sync {
    /// Receives up to `max` visible messages, and hides each for `visibility`.
    ///
    /// # Errors
    /// Returns an error if the queue is unavailable. Messages that it has hidden become visible again after
    /// `visibility`.
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError>;

    /// Applies the handler's answer to a received message. An expired receipt has no effect.
    ///
    /// # Errors
    /// Returns an error if the queue is unavailable; the message becomes visible again after its timeout.
    async fn answer(&self, queue: &Queue, receipt: &str, disposition: &Disposition)
    -> Result<(), StoreError>;
}

/// The depth of a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Depth {
    /// Visible messages.
    pub visible: u64,
    /// Messages in flight.
    pub in_flight: u64,
    /// Delayed messages.
    pub delayed: u64,
    /// The age of the oldest message; `None` if the queue is empty or does not report it.
    pub oldest: Option<Duration>,
}

impl Depth {
    /// Returns the total number of messages.
    pub fn total(&self) -> u64 {
        self.visible + self.in_flight + self.delayed
    }
}

/// Inspects queues.
#[async_trait]
pub trait InspectQueues: Send + Sync {
    /// Returns the depth of each known queue, including empty ones. Counts of a service may be some seconds old.
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>>;

    /// Returns the presence of a message in a queue; `None` if the service cannot report it, as is the case for SQS.
    ///
    /// # Errors
    /// Returns an error if the queue is unavailable. The call may be retried.
    async fn locate(&self, _queue: &Queue, _message: MessageId) -> Result<Option<Presence>, StoreError> {
        Ok(None)
    }
}

/// The presence of a message in a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Presence {
    /// The queue does not contain the message: a consumer acknowledged it, or the queue dead-lettered it.
    Absent,
    /// A worker has received the message at least once, and has not acknowledged it.
    Received,
    /// No worker has received the message.
    Waiting,
}
