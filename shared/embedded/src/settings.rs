//! What may be set.

use std::time::Duration;

use jiff::SignedDuration;
use outbox::Queue;

/// What may be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long the document of a search that has ended stays: 7 days, so that late duplicates meet it.
    pub saga_retention: SignedDuration,
    /// How long the record of a session stays once it is settled: 7 days. A commit that is repeated later than that
    /// does not exist; nobody waits so long for an answer.
    pub outbox_retention: SignedDuration,
    /// How often a message is received before its queue gives it up.
    pub receive_limits: ReceiveLimits,
}

impl Default for Settings {
    fn default() -> Self {
        let week = SignedDuration::from_hours(7 * 24);
        Self { saga_retention: week, outbox_retention: week, receive_limits: ReceiveLimits::default() }
    }
}

impl Settings {
    /// The defaults, but for how long what has ended stays.
    pub fn with_retention(saga_retention: Duration, outbox_retention: SignedDuration) -> Self {
        // A span beyond what can be represented is as good as for ever.
        let saga_retention = SignedDuration::try_from(saga_retention).unwrap_or(SignedDuration::MAX);
        Self { saga_retention, outbox_retention, ..Self::default() }
    }
}

/// How often a message is received before its queue gives it up, as `maxReceiveCount` of a redrive policy
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-dead-letter-queues.html>).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiveLimits {
    /// Notifications of stored objects: 20.
    pub uploads: u32,
    /// Messages for the saga: 20. What is wrong with a message is seen at its first delivery, and it is given up at
    /// once; so this limit only cuts off outages, and waiting for a busy partition counts too.
    pub saga: u32,
    /// Parse commands: 8. A file that always makes its function crash or run out of time ends here.
    pub parse: u32,
    /// Parse commands that never succeeded: 20.
    pub parse_dead: u32,
    /// Control messages: 20.
    pub control: u32,
}

impl Default for ReceiveLimits {
    fn default() -> Self {
        Self { uploads: 20, saga: 20, parse: 8, parse_dead: 20, control: 20 }
    }
}

impl ReceiveLimits {
    /// The limit of a queue; none for one that has no dead-letter queue.
    pub fn of(&self, queue: Queue) -> Option<u32> {
        match queue {
            Queue::Uploads => Some(self.uploads),
            Queue::Saga => Some(self.saga),
            Queue::Parse => Some(self.parse),
            Queue::ParseDead => Some(self.parse_dead),
            Queue::Control => Some(self.control),
            Queue::UploadsDead
            | Queue::SagaDead
            | Queue::ParseUnreadable
            | Queue::ControlDead
            | Queue::Events => None,
        }
    }
}
