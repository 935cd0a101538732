//! A delivery of a message, and the answer to it.

use std::time::Duration;

/// A delivery of a message, undecoded: a malformed body must not affect the other deliveries of the batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The queue's id of this delivery; unique in its batch, never empty.
    pub record_id: String,
    /// The body as received.
    pub body: String,
    /// The receive count of the message, including this delivery; at least 1.
    pub receive_count: u32,
    /// The reason why the message was dead-lettered or failed last, if its queue reports it.
    pub reason: Option<String>,
}

/// The consumer's answer to one delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The message is done; the queue deletes it.
    Acknowledge,
    /// The message is redelivered, but not before `after`. The queue dead-letters it once its receive limit is
    /// exceeded.
    Retry {
        /// The minimum time until the redelivery, which is the visibility timeout to set.
        after: Duration,
        /// The reason, for the log.
        reason: String,
    },
    /// The message is dead-lettered immediately, unchanged.
    DeadLetter {
        /// The reason, for the log and the operator.
        reason: String,
    },
}

/// The delivery at which a faulty message is dead-lettered: its handler panics, or one of its effects cannot be stored.
/// Earlier deliveries may have been handled by another version of the code.
pub const LAST_FAULTY_DELIVERY: u32 = 3;

/// The reason of a retry at the end of an invocation.
pub const DEADLINE_NEAR: &str = "the function's deadline is near";

/// The delay of redeliveries, which grows with the receive count. An outage must not use up the receive limits of all
/// queued messages, and a busy partition is released within its lease. The delays are minimums: a random part of up to
/// the same length is added, so that messages that failed together are not redelivered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first delivery.
    pub first: Duration,
    /// The maximum delay, at which doubling ends.
    pub max: Duration,
}

impl Backoff {
    /// The delays after a temporary failure: 5 s to 15 min. With the receive limit of the saga's queue, 20, they bridge
    /// three hours.
    pub const FAILURE: Self = Self { first: Duration::from_secs(5), max: Duration::from_secs(900) };
    /// The delays of a message that only a newer version can read: 1 min to 1 h. With a receive limit of 20, the
    /// message waits 15 hours for the upgrade. After that it is in the dead-letter queue.
    pub const UPGRADE: Self = Self { first: Duration::from_secs(60), max: Duration::from_secs(3_600) };
    /// No delay.
    pub const NONE: Self = Self { first: Duration::ZERO, max: Duration::ZERO };

    /// Returns the delay after `receive_count` deliveries; `random` is from 0 to 1.
    pub fn after(self, receive_count: u32, random: f64) -> Duration {
        let least = self.at_least(receive_count);
        least + least.mul_f64(random.clamp(0.0, 1.0))
    }

    /// Returns the minimum delay after `receive_count` deliveries.
    pub fn at_least(self, receive_count: u32) -> Duration {
        let doublings = receive_count.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_delay_doubles_up_to_maximum() {
        let seconds = |receive_count| Backoff::FAILURE.at_least(receive_count).as_secs();
        assert_eq!([0, 1, 2, 3, 8, 9, u32::MAX].map(seconds), [5, 5, 10, 20, 640, 900, 900]);
        assert_eq!(Backoff::NONE.after(7, 1.0), Duration::ZERO);
    }

    #[test]
    fn retry_delay_is_jittered() {
        let seconds = |random| Backoff::FAILURE.after(2, random).as_secs_f64();
        assert_eq!([0.0, 0.25, 1.0].map(seconds), [10.0, 12.5, 20.0]);
    }
}
