//! The queues: sending to them and receiving from them.

use std::time::Duration;

use async_trait::async_trait;
use contracts::message::EncodeError;
use contracts::{Delivery, Destination, Disposition, Message, MessageId, SearchId, StoreError};

/// The most messages that one send takes, and that one receive returns
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
pub const MAX_BATCH: usize = 10;

/// A message on its way out, encoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The message's id.
    pub id: MessageId,
    /// The search it belongs to.
    pub search_id: SearchId,
    /// Where to.
    pub destination: Destination,
    /// The encoded message.
    pub body: String,
    /// How long the queue is to hold it back.
    pub delay: Duration,
}

impl Outgoing {
    /// A message for the queue it belongs to.
    ///
    /// # Errors
    /// When it cannot be encoded.
    pub fn new(message: &Message, delay: Duration) -> Result<Self, EncodeError> {
        Ok(Self {
            id: message.id,
            search_id: message.correlation_id,
            destination: message.body.destination(),
            body: message.encode()?,
            delay,
        })
    }
}

/// Sends one message to the queue it belongs to.
///
/// # Errors
/// When it cannot be encoded or the queue did not take it.
pub async fn send_one(queue: &dyn SendMessages, message: &Message, delay: Duration) -> Result<(), SendError> {
    let outgoing = Outgoing::new(message, delay)?;
    queue.send(&[outgoing]).await.into_iter().collect()
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
    /// No queue is configured for its destination; trying again is of no use.
    #[error("no queue is configured for {}", .0.name())]
    NoDestination(Destination),
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
            Self::NoDestination(_) | Self::Encode(_) => false,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

/// Every queue there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Queue {
    /// Notifications of stored objects.
    Uploads,
    /// Notifications that could not be handled.
    UploadsDead,
    /// Messages for `run-saga`.
    Saga,
    /// Messages that `run-saga` gave up on.
    SagaDead,
    /// Commands for `parse-references`.
    Parse,
    /// Commands that never succeeded; `report-faults` reads them.
    ParseDead,
    /// What `report-faults` cannot even read.
    ParseUnreadable,
    /// Messages for `dispatch-outbox`.
    Control,
    /// Messages that `dispatch-outbox` gave up on.
    ControlDead,
    /// How imports ended, for whoever wants to know.
    Events,
}

impl Queue {
    /// All queues.
    pub const ALL: [Self; 10] = [
        Self::Uploads,
        Self::UploadsDead,
        Self::Saga,
        Self::SagaDead,
        Self::Parse,
        Self::ParseDead,
        Self::ParseUnreadable,
        Self::Control,
        Self::ControlDead,
        Self::Events,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uploads => "uploads",
            Self::UploadsDead => "uploads-dead",
            Self::Saga => "saga",
            Self::SagaDead => "saga-dead",
            Self::Parse => "parse",
            Self::ParseDead => "parse-dead",
            Self::ParseUnreadable => "parse-unreadable",
            Self::Control => "control",
            Self::ControlDead => "control-dead",
            Self::Events => "events",
        }
    }

    /// Where a message goes that was received too often or rejected; none for a queue that keeps everything.
    pub fn dead_letters(self) -> Option<Self> {
        match self {
            Self::Uploads => Some(Self::UploadsDead),
            Self::Saga => Some(Self::SagaDead),
            Self::Parse => Some(Self::ParseDead),
            Self::ParseDead => Some(Self::ParseUnreadable),
            Self::Control => Some(Self::ControlDead),
            Self::UploadsDead | Self::SagaDead | Self::ParseUnreadable | Self::ControlDead | Self::Events => {
                None
            }
        }
    }
}

impl From<Destination> for Queue {
    fn from(destination: Destination) -> Self {
        match destination {
            Destination::Saga => Self::Saga,
            Destination::Parse => Self::Parse,
            Destination::Control => Self::Control,
            Destination::Events => Self::Events,
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
        queue: Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<Received>, StoreError>;

    /// Does with a received message what its handler decided. With an outdated receipt nothing happens.
    ///
    /// # Errors
    /// When the queue does not answer; the message becomes visible again by itself.
    async fn settle(&self, queue: Queue, receipt: &str, disposition: &Disposition) -> Result<(), StoreError>;
}
