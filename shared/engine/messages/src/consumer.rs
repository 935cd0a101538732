//! The consumers behind queues.

use async_trait::async_trait;
use jiff::Timestamp;

use crate::delivery::{Delivery, Disposition};
use crate::message::Message;
use crate::observe::Reporter;
use crate::panics::{PanicError, contain_async};

/// The code behind a queue.
#[async_trait]
pub trait Consumer: Send + Sync {
    /// Handles a batch and returns an answer for each delivery, in order. A faulty delivery must not affect the others.
    /// No work starts after `deadline`: the remaining deliveries are retried immediately.
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition>;
}

/// Delivers a batch to a consumer. A panic affects only the delivery that causes it: after a panic, each delivery of
/// the batch is handled alone, which is safe for those that were handled before.
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

fn after_panic(delivery: &Delivery, panicked: &PanicError, reporter: &Reporter) -> Disposition {
    let message = Message::decode(&delivery.body).ok();
    reporter.faulty(message.as_ref(), delivery.receive_count, panicked.to_string())
}
