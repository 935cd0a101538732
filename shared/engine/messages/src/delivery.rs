//! One received copy of a message, and what is to become of it.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;

use crate::message::Message;
use crate::observe::Reporter;
use crate::panics::{Panicked, contain_async};

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

/// The consumer's answer to one delivery.
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

/// What stands behind a queue.
#[async_trait]
pub trait Consumer: Send + Sync {
    /// Works on a batch; one answer for each delivery, in order. A bad delivery costs only itself. Nothing is begun after
    /// `deadline`: what is left is to be delivered again at once.
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition>;
}

/// The delivery from which on a message that fails by itself is dead-lettered: its handler panics, or one of its effects
/// cannot be stored. The deliveries before may meet another version of the code.
pub const LAST_FAULTY_DELIVERY: u32 = 3;

/// Delivers a batch to a consumer. A panic costs only the delivery that causes it: after one, each
/// delivery of the batch is worked on alone, which does no harm to those that were handled before.
pub async fn deliver(
    consumer: &dyn Consumer,
    batch: &[Delivery],
    deadline: Option<Timestamp>,
    reporter: &Reporter,
) -> Vec<Disposition> {
    let panicked = match contain_async(consumer.consume(batch, deadline)).await {
        Ok(answers) => return answers,
        Err(panicked) => panicked,
    };
    if let [delivery] = batch {
        return vec![after_panic(delivery, &panicked, reporter)];
    }
    let mut answers = Vec::with_capacity(batch.len());
    for delivery in batch {
        let alone = contain_async(consumer.consume(std::slice::from_ref(delivery), deadline)).await;
        let answer = alone.map(|mut answers| answers.pop());
        answers.push(match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => after_panic(delivery, &panicked, reporter),
            Err(panicked) => after_panic(delivery, &panicked, reporter),
        });
    }
    answers
}

fn after_panic(delivery: &Delivery, panicked: &Panicked, reporter: &Reporter) -> Disposition {
    let message = Message::decode(&delivery.body).ok();
    reporter.faulty(message.as_ref(), delivery.receive_count, panicked.to_string())
}

/// When a message is delivered again that could not be handled: later each time. An outage must not use up the
/// receive limit of everything in the queues, and a busy partition is given back within its lease. The waits are the
/// least ones: up to as much again is drawn by lot, so that messages which failed together do not come back together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// After the first delivery.
    pub first: Duration,
    /// After any; doubling ends here.
    pub most: Duration,
}

impl Backoff {
    /// After a failure that may pass: 5 s, and at most 15 min. With the receive limit of the saga's queue, 20, that
    /// bridges three hours.
    pub const FAILURE: Self = Self { first: Duration::from_secs(5), most: Duration::from_secs(900) };
    /// For a message that only a later release can read: 1 min, and at most 1 h. With a receive limit of 20 it waits
    /// fifteen hours for the upgrade, and then in the dead-letter queue.
    pub const UPGRADE: Self = Self { first: Duration::from_secs(60), most: Duration::from_secs(3_600) };
    /// At once.
    pub const NONE: Self = Self { first: Duration::ZERO, most: Duration::ZERO };

    /// When to deliver a message again that has been delivered `receive_count` times; `random` is from 0 to 1.
    pub fn after(self, receive_count: u32, random: f64) -> Duration {
        let least = self.at_least(receive_count);
        least + least.mul_f64(random.clamp(0.0, 1.0))
    }

    /// The least time that passes before the next delivery of a message that has been delivered `receive_count` times.
    pub fn at_least(self, receive_count: u32) -> Duration {
        let doublings = receive_count.saturating_sub(1).min(31);
        self.first.saturating_mul(1 << doublings).min(self.most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_delivery_waits_twice_as_long_up_to_the_most() {
        let seconds = |receive_count| Backoff::FAILURE.at_least(receive_count).as_secs();
        assert_eq!([0, 1, 2, 3, 8, 9, u32::MAX].map(seconds), [5, 5, 10, 20, 640, 900, 900]);
        assert_eq!(Backoff::NONE.after(7, 1.0), Duration::ZERO);
    }

    #[test]
    fn messages_that_failed_together_come_back_at_different_times() {
        let seconds = |random| Backoff::FAILURE.after(2, random).as_secs_f64();
        assert_eq!([0.0, 0.25, 1.0].map(seconds), [10.0, 12.5, 20.0]);
    }
}
