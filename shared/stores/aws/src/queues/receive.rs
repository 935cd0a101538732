//! Receiving and answering.

use std::time::Duration;

use crate::failed;
use async_trait::async_trait;
use aws_sdk_sqs::error::ProvideErrorMetadata;
use aws_sdk_sqs::types::{Message, MessageSystemAttributeName};
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{Delivery, Disposition, Queue, QueueSpec, ReceiveMessages, ReceivedMessage, StoreError};

use crate::queues::attributes::{Attributes, DEAD_LETTER_REASON};
use crate::queues::receipt::Receipt;
use crate::queues::send::whole_seconds;
use crate::queues::{Sqs, later};

/// The longest that a message may stay hidden, counted from when it was received
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>).
const MAX_VISIBILITY: Duration = Duration::from_secs(43_200);
/// The maximum time that a receive waits, less than [`crate::ATTEMPT_TIMEOUT`]. SQS allows 20 s
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html>).
const MAX_WAIT: Duration = Duration::from_secs(3);

/// SQS's names for a message that is not the caller's any more: deleted, or visible again.
const GONE: [&str; 4] = [
    "ReceiptHandleIsInvalid",
    "MessageNotInflight",
    "AWS.SimpleQueueService.MessageNotInflight",
    "InvalidParameterValue",
];

#[async_trait]
impl ReceiveMessages for Sqs {
    async fn receive(
        &self,
        queue: &Queue,
        max: usize,
        visibility: Duration,
    ) -> Result<Vec<ReceivedMessage>, StoreError> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let doing = format!("receiving from queue {queue}");
        let visibility = visibility.min(MAX_VISIBILITY);
        // Before the call, so that a receipt never claims to be valid for longer than it is.
        let until = later(self.host.now(), visibility);
        let answer = self
            .client
            .receive_message()
            .queue_url(self.url(queue, &doing)?)
            .max_number_of_messages(i32::try_from(max.min(MAX_BATCH)).unwrap_or(1))
            .visibility_timeout(whole_seconds(visibility))
            .wait_time_seconds(whole_seconds(self.wait.min(MAX_WAIT)))
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount)
            .message_attribute_names(DEAD_LETTER_REASON)
            .send()
            .await
            .map_err(|error| failed(&*doing, &self.resource(queue), &error))?;
        let has_dead_letter_queue = self.dead_letters_of(queue).is_some();
        let messages = answer.messages.unwrap_or_default().into_iter();
        messages
            .map(|message| received(message, until, has_dead_letter_queue))
            .collect::<Result<_, _>>()
            .map_err(|error| StoreError::unusable(doing, error))
    }

    async fn answer(
        &self,
        queue: &Queue,
        receipt: &str,
        disposition: &Disposition,
    ) -> Result<(), StoreError> {
        let doing = format!("answering for a message of queue {queue}");
        let receipt = Receipt::parse(receipt).map_err(|error| StoreError::unusable(&*doing, error))?;
        if receipt.until <= self.host.now() {
            tracing::debug!(queue = queue.name(), "an answer was too late, so its message is redelivered");
            return Ok(());
        }
        match disposition {
            Disposition::Acknowledge => self.delete(queue, &receipt, &doing).await,
            // The queue itself would move the message without a reason.
            Disposition::Retry { reason, .. } if self.is_last(queue, &receipt) => {
                let reason =
                    format!("received {} times without success; at last: {reason}", receipt.received);
                self.move_to_dead_letter_queue(queue, &receipt, &reason, &doing).await
            }
            Disposition::Retry { after, .. } => self.hide(queue, &receipt, *after, &doing).await,
            Disposition::DeadLetter { reason } => {
                self.move_to_dead_letter_queue(queue, &receipt, reason, &doing).await
            }
        }
    }
}

impl Sqs {
    /// Returns `true` if the queue will not deliver a message again.
    fn is_last(&self, queue: &Queue, receipt: &Receipt) -> bool {
        let limit = QueueSpec::of(self.queues, queue).and_then(|spec| spec.receive_limit);
        receipt.body.is_some() && limit.is_some_and(|limit| receipt.received >= limit)
    }

    /// Moves a message to the dead letters of its queue.
    async fn move_to_dead_letter_queue(
        &self,
        queue: &Queue,
        receipt: &Receipt,
        reason: &str,
        doing: &str,
    ) -> Result<(), StoreError> {
        match (self.dead_letters_of(queue), &receipt.body) {
            // Sends the message before deleting it, so that a crash in between duplicates it and does not lose it.
            (Some(dead), Some(body)) => {
                self.send_dead_letter(&dead, body, reason, doing).await?;
                self.delete(queue, receipt, doing).await
            }
            // A queue that keeps everything has nowhere to move it; it keeps it.
            (None, _) | (Some(_), None) => Ok(()),
        }
    }

    async fn delete(&self, queue: &Queue, receipt: &Receipt, doing: &str) -> Result<(), StoreError> {
        let request = self.client.delete_message().queue_url(self.url(queue, doing)?);
        match request.receipt_handle(&receipt.handle).send().await {
            Ok(_) => Ok(()),
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => Ok(()),
            Err(error) => Err(failed(doing, &self.resource(queue), &error)),
        }
    }

    async fn hide(
        &self,
        queue: &Queue,
        receipt: &Receipt,
        after: Duration,
        doing: &str,
    ) -> Result<(), StoreError> {
        let request = self
            .client
            .change_message_visibility()
            .queue_url(self.url(queue, doing)?)
            .receipt_handle(&receipt.handle)
            .visibility_timeout(whole_seconds(after.min(MAX_VISIBILITY)));
        match request.send().await {
            Ok(_) => Ok(()),
            // SQS also returns this error if the message would be hidden for more than twelve hours in total; it is
            // then redelivered after its visibility timeout.
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => {
                tracing::debug!(
                    queue = queue.name(),
                    code = error.code(),
                    "a message's delay stays as it was"
                );
                Ok(())
            }
            Err(error) => Err(failed(doing, &self.resource(queue), &error)),
        }
    }

    async fn send_dead_letter(
        &self,
        dead: &Queue,
        body: &str,
        reason: &str,
        doing: &str,
    ) -> Result<(), StoreError> {
        self.client
            .send_message()
            .queue_url(self.url(dead, doing)?)
            .message_body(body)
            .set_message_attributes(Attributes::of(body).with_reason(reason, body).values())
            .send()
            .await
            .map_err(|error| failed(doing, &self.resource(dead), &error))?;
        Ok(())
    }
}

fn received(
    message: Message,
    until: Timestamp,
    has_dead_letter_queue: bool,
) -> Result<ReceivedMessage, serde_json::Error> {
    let count = message
        .attributes
        .as_ref()
        .and_then(|attributes| attributes.get(&MessageSystemAttributeName::ApproximateReceiveCount))
        .and_then(|count| count.parse().ok());
    let body = message.body.unwrap_or_default();
    let receipt = Receipt {
        handle: message.receipt_handle.unwrap_or_default(),
        until,
        received: count.unwrap_or(0),
        body: has_dead_letter_queue.then(|| body.clone()),
    };
    let attributes = message.message_attributes.unwrap_or_default();
    let reason = attributes.get(DEAD_LETTER_REASON).and_then(|reason| reason.string_value.clone());
    Ok(ReceivedMessage {
        receipt: receipt.text()?,
        delivery: Delivery {
            record_id: message.message_id.unwrap_or_default(),
            body,
            receive_count: count.unwrap_or(1),
            reason,
        },
    })
}
