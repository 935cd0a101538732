//! Messages in the form of Lambda's event
//! (<https://docs.aws.amazon.com/lambda/latest/dg/with-sqs.html#example-standard-queue-message-event>).

use aws_sdk_sqs::types::{Message, MessageAttributeValue};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// The maximum size of an event, in bytes
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>).
const MAX_EVENT_BYTES: usize = 6 * 1024 * 1024;

/// Returns the event of a batch of messages from a queue.
pub fn batch(queue_arn: &str, messages: &[Message]) -> Value {
    let region = queue_arn.split(':').nth(3).unwrap_or_default();
    let record = |message: &Message| {
        let attributes: Map<String, Value> = message
            .attributes
            .iter()
            .flatten()
            .map(|(name, value)| (name.as_str().to_owned(), value.as_str().into()))
            .collect();
        let message_attributes: Map<String, Value> = message
            .message_attributes
            .iter()
            .flatten()
            .map(|(name, value)| (name.clone(), attribute(value)))
            .collect();
        json!({
            "messageId": message.message_id,
            "receiptHandle": message.receipt_handle,
            "body": message.body.as_deref().unwrap_or_default(),
            "attributes": attributes,
            "messageAttributes": message_attributes,
            "md5OfBody": message.md5_of_body,
            "eventSource": "aws:sqs",
            "eventSourceARN": queue_arn,
            "awsRegion": region,
        })
    };
    json!({ "Records": messages.iter().map(record).collect::<Vec<_>>() })
}

fn attribute(value: &MessageAttributeValue) -> Value {
    json!({
        "stringValue": value.string_value,
        "stringListValues": [],
        "binaryListValues": [],
        "dataType": value.data_type,
    })
}

/// Returns a queue's ARN for its region and its address, which ends with account and name.
pub fn arn(url: &str, region: &str) -> String {
    let mut parts = url.rsplit('/');
    let (name, account) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    format!("arn:aws:sqs:{region}:{account}:{name}")
}

/// Returns the event of a schedule.
pub fn scheduled(now: Timestamp) -> Value {
    json!({
        "version": "0",
        "id": Uuid::now_v7(),
        "detail-type": "Scheduled Event",
        "source": "aws.events",
        "account": "000000000000",
        "time": now,
        "region": "local",
        "resources": ["arn:aws:events:local:000000000000:rule/every-minute"],
        "detail": {},
    })
}

/// Splits a batch so that each event stays within the maximum size. A single message always fits.
pub fn parts(messages: Vec<Message>) -> Vec<Vec<Message>> {
    let mut parts: Vec<Vec<Message>> = Vec::new();
    let mut bytes = 0;
    for message in messages {
        // Escaping in JSON may double the size of a body. The constant covers the other fields.
        let size = 2 * message.body.as_deref().unwrap_or_default().len() + 4 * 1024;
        match parts.last_mut() {
            Some(part) if bytes + size <= MAX_EVENT_BYTES => part.push(message),
            _ => {
                parts.push(vec![message]);
                bytes = 0;
            }
        }
        bytes += size;
    }
    parts
}

#[cfg(test)]
mod tests {
    use aws_sdk_sqs::types::MessageSystemAttributeName;

    use super::*;

    fn message(id: &str, bytes: usize) -> Message {
        Message::builder()
            .message_id(id)
            .receipt_handle("handle")
            .body("x".repeat(bytes))
            .attributes(MessageSystemAttributeName::ApproximateReceiveCount, "3")
            .build()
    }

    #[test]
    fn arn_is_derived_from_address() {
        let url = "https://sqs.eu-central-1.amazonaws.com/123456789012/search-import-saga";
        assert_eq!(arn(url, "eu-central-1"), "arn:aws:sqs:eu-central-1:123456789012:search-import-saga");
    }

    #[test]
    fn record_has_receive_count_and_source() {
        let event = batch("arn:aws:sqs:eu-central-1:123456789012:saga", &[message("a", 2)]);
        let record = &event["Records"][0];
        assert_eq!((&record["messageId"], &record["body"]), (&json!("a"), &json!("xx")));
        assert_eq!(record["attributes"]["ApproximateReceiveCount"], "3");
        assert_eq!(record["eventSource"], "aws:sqs");
        assert_eq!(record["awsRegion"], "eu-central-1");
    }

    #[test]
    fn large_messages_are_split_into_fitting_batches() {
        let messages = (0..10).map(|n| message(&n.to_string(), 1024 * 1024)).collect();
        let parts = parts(messages);
        assert_eq!(parts.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2, 2, 2, 2]);
        assert!(parts.iter().all(|part| batch("", part).to_string().len() <= MAX_EVENT_BYTES));
    }

    #[test]
    fn small_messages_stay_together() {
        assert_eq!(super::parts((0..10).map(|n| message(&n.to_string(), 2_000)).collect()).len(), 1);
        assert!(super::parts(Vec::new()).is_empty());
    }
}
