//! One received copy of a message, and what is to become of it.

use std::time::Duration;

/// One copy of a message as a queue delivered it, undecoded: a bad body is that copy's own trouble and must
/// not fail its neighbours in the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// What the queue calls this copy; unique in its batch, never empty.
    pub record_id: String,
    /// The body as received.
    pub body: String,
    /// How often the queue has delivered this message, this time included; at least 1.
    pub receive_count: u32,
}

/// What the queue is told of one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// Done with; the queue deletes it.
    Acknowledge,
    /// To be delivered again, not before `after` has passed. The queue's receive limit decides when it gives
    /// up and moves the message to the dead-letter queue.
    Retry {
        /// The visibility timeout to set.
        after: Duration,
        /// Why, for the log.
        reason: String,
    },
    /// Never to be delivered again: to the dead-letter queue at once, unchanged.
    DeadLetter {
        /// Why, for the log and the operator.
        reason: String,
    },
}
