//! The trigger of an invocation.

use aws_lambda_events::sqs::SqsEvent;
use serde_json::Value;

/// The trigger of an invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// A queue, with a batch of messages.
    Queue(SqsEvent),
    /// The schedule.
    Schedule,
}

/// The reason why an event is refused.
#[derive(Debug, thiserror::Error)]
pub enum UnknownEvent {
    /// An event of another service, or an event made by hand.
    #[error("the event is neither a batch of SQS messages nor a scheduled event")]
    Source,
    /// The event claims to come from SQS, but does not have the documented form.
    #[error("the batch of SQS messages cannot be read")]
    Batch(#[source] serde_json::Error),
}

impl Trigger {
    /// Distinguishes the two by their shape. Other services send `Records` too, so each record has to name SQS as its
    /// source: an event mistaken for a batch would be acknowledged silently.
    ///
    /// # Errors
    /// Returns an error if the event is neither a batch nor a schedule.
    pub fn read(event: Value) -> Result<Self, UnknownEvent> {
        // The event of a rule, or of EventBridge Scheduler without its own input.
        if event.get("detail-type").and_then(Value::as_str) == Some("Scheduled Event") {
            return Ok(Self::Schedule);
        }
        let records = event.get("Records").and_then(Value::as_array).ok_or(UnknownEvent::Source)?;
        let is_of_sqs = |record: &Value| record.get("eventSource").and_then(Value::as_str) == Some("aws:sqs");
        if !records.iter().all(is_of_sqs) {
            return Err(UnknownEvent::Source);
        }
        serde_json::from_value(event).map(Self::Queue).map_err(UnknownEvent::Batch)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scheduled_event_is_distinguished_from_batch() {
        let tick = json!({
            "version": "0",
            "id": "53dc4d37-cffa-4f76-80c9-8b7d4a4d2eaa",
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": "123456789012",
            "time": "2026-01-08T16:53:06Z",
            "region": "eu-central-1",
            "resources": ["arn:aws:events:eu-central-1:123456789012:rule/every-minute"],
            "detail": {}
        });
        assert_eq!(Trigger::read(tick).unwrap(), Trigger::Schedule);
        let batch = json!({"Records": [{"messageId": "a", "body": "b", "eventSource": "aws:sqs"}]});
        assert!(matches!(Trigger::read(batch), Ok(Trigger::Queue(event)) if event.records.len() == 1));
    }

    #[test]
    fn event_of_another_service_is_refused() {
        let stored = json!({"Records": [{"eventSource": "aws:s3", "s3": {}}]});
        assert!(matches!(Trigger::read(stored), Err(UnknownEvent::Source)));
        assert!(matches!(Trigger::read(json!({})), Err(UnknownEvent::Source)));
        let odd = json!({"Records": [{"eventSource": "aws:sqs", "messageId": 1}]});
        assert!(matches!(Trigger::read(odd), Err(UnknownEvent::Batch(_))));
    }
}
