//! Between Lambda's events and our deliveries.
//!
//! - [`serve`] runs a function behind a queue, [`answer`] is one of its invocations;
//! - [`Trigger`] distinguishes a batch from a tick of the schedule, for a function that is behind both;
//! - `settle`: what Lambda's partial batch response cannot say: when a record is to come again, and that it is not
//!   to come again at all.
//!
//! The bodies stay undecoded here: one that is junk must cost only its own record, not the batch.

// A panic in a handler fails only its own message (`messages::panics`). With `panic = "abort"` it would end the process,
// and the whole batch would be delivered again.
#[cfg(not(panic = "unwind"))]
compile_error!("functions are built with panic = \"unwind\"");

mod settle;
mod trigger;

use std::convert::Infallible;

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use backend::Backend;
use jiff::{SignedDuration, Timestamp};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use messages::{Consumer, Delivery, Disposition, Queue};
use saga::{Engine, Function};

pub use trigger::{Trigger, UnknownEvent};

/// The part of a function's time that is reserved for finishing its work. Lambda aborts work that takes longer; its
/// messages are redelivered, which is safe.
const RESERVE: SignedDuration = SignedDuration::from_secs(5);

/// The name under which a panic is recorded that the function itself did not contain.
const HOST: &str = "lambda";

/// Runs a function behind its queue until Lambda stops the process.
///
/// # Errors
/// When the function is behind no queue, a service that it uses is not configured, or the Runtime API does not answer.
pub async fn serve<P: AsRef<Engine>>(
    backend: &Backend<P>,
    function: &Function<P>,
) -> Result<(), lambda_runtime::Error> {
    let (Some(queue), Some(build)) = (function.source.queue(), function.build) else {
        return Err(format!("{} is behind no queue", function.name).into());
    };
    let consumer = &*build(&backend.ports)?;
    let invocation = move |event: LambdaEvent<SqsEvent>| async move {
        let deadline = deadline(&event.context, backend.ports.as_ref().host.now());
        Ok::<_, Infallible>(answer(backend, queue, consumer, event.payload, Some(deadline)).await)
    };
    lambda_runtime::run(service_fn(invocation)).await
}

/// Until when something may be begun in an invocation.
pub fn deadline(context: &Context, now: Timestamp) -> Timestamp {
    // One that no timestamp can express is as good as none. So is one that has passed before anything began: emulators
    // give a length of time where Lambda gives a time, and with that nothing would ever be done.
    let ends_at = Timestamp::try_from(context.deadline()).unwrap_or(Timestamp::MAX);
    let ends_at = if ends_at <= now { Timestamp::MAX } else { ends_at };
    ends_at.saturating_sub(RESERVE).unwrap_or(ends_at)
}

/// One invocation: the partial batch response to an event of the queue.
pub async fn answer<P: AsRef<Engine>>(
    backend: &Backend<P>,
    queue: &Queue,
    consumer: &dyn Consumer,
    event: SqsEvent,
    deadline: Option<Timestamp>,
) -> SqsBatchResponse {
    let deliveries: Vec<Delivery> = event.records.iter().map(delivery).collect();
    let reporter = backend.ports.as_ref().reporter(HOST);
    let said = messages::deliver(consumer, &deliveries, deadline, &reporter).await;
    let dispositions = settle::settle(backend, queue, &event.records, said).await;
    backend.ports.as_ref().observer.flush().await;
    response(&deliveries, &dispositions)
}

fn delivery(message: &SqsMessage) -> Delivery {
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    Delivery {
        record_id: message.message_id.clone().unwrap_or_default(),
        body: message.body.clone().unwrap_or_default(),
        receive_count: count.unwrap_or(1),
    }
}

/// The partial batch response for the answers to `deliveries`, once they are settled.
///
/// Whatever is not acknowledged comes again until the queue's receive limit moves it to the dead-letter queue; so
/// does a delivery without an answer, since SQS deletes what the response does not name. A record without an id
/// cannot be named in the response (an empty id would fail the whole batch;
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>), but SQS sends none.
fn response(deliveries: &[Delivery], dispositions: &[Disposition]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    let answers = dispositions.iter().map(Some).chain(std::iter::repeat(None));
    for (delivery, answer) in deliveries.iter().zip(answers) {
        let record_id = &delivery.record_id;
        match answer {
            Some(Disposition::Acknowledge) => continue,
            // The function has noted its decision already; this line adds the record that it was about.
            Some(Disposition::Retry { reason, .. } | Disposition::DeadLetter { reason }) => {
                tracing::debug!(record_id, reason, "a record is left to the queue");
            }
            None => tracing::error!(record_id, "the handler gave no answer; the record is left to the queue"),
        }
        if !delivery.record_id.is_empty() {
            let mut failure = BatchItemFailure::default();
            failure.item_identifier.clone_from(&delivery.record_id);
            response.batch_item_failures.push(failure);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Two records as SQS sends them; the first one's body is junk.
    const EVENT: &str = r#"{"Records": [
        {
            "messageId": "059f36b4-87a3-44ab-83d2-661975830a7d",
            "receiptHandle": "AQEBwJnKyrHigUMZj6rYigCgxlaS3SLy0a",
            "body": "{\"specversion\": \"1.0\", \"id\": ",
            "attributes": {
                "ApproximateReceiveCount": "2",
                "SentTimestamp": "1545082649183",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": "1545082649185"
            },
            "messageAttributes": {},
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:saga",
            "awsRegion": "eu-central-1"
        },
        {
            "messageId": "2e1424d4-f796-459a-8184-9c92662be6da",
            "receiptHandle": "AQEBzWwaftRI0KuVm4tP+/7q1rGgNqicHq",
            "body": "good",
            "attributes": {
                "ApproximateReceiveCount": "1",
                "SentTimestamp": "1545082650636",
                "SenderId": "AIDAIENQZJOLO23YVJ4VO",
                "ApproximateFirstReceiveTimestamp": "1545082650649",
                "AWSTraceHeader": "Root=1-5bef4de7-ad49b0e87f6ef6c87fc2e700"
            },
            "messageAttributes": {
                "kind": {
                    "stringValue": "SearchUploadSaved",
                    "stringListValues": [],
                    "binaryListValues": [],
                    "dataType": "String"
                }
            },
            "md5OfBody": "e4e68fb7bd0e697a0ae8f1bb342846b3",
            "eventSource": "aws:sqs",
            "eventSourceARN": "arn:aws:sqs:eu-central-1:123456789012:saga",
            "awsRegion": "eu-central-1"
        }
    ]}"#;

    fn delivery(id: &str) -> Delivery {
        Delivery { record_id: id.into(), body: String::new(), receive_count: 1 }
    }

    fn failed(response: &SqsBatchResponse) -> Vec<&str> {
        response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect()
    }

    #[test]
    fn a_record_keeps_its_id_its_body_and_its_receive_count() {
        let event: SqsEvent = serde_json::from_str(EVENT).unwrap();
        let deliveries: Vec<Delivery> = event.records.iter().map(super::delivery).collect();
        assert_eq!(deliveries[0].record_id, "059f36b4-87a3-44ab-83d2-661975830a7d");
        assert_eq!(deliveries[0].receive_count, 2);
        assert_eq!(deliveries[1].body, "good");
    }

    #[test]
    fn a_junk_body_does_not_fail_its_neighbours() {
        let event: SqsEvent = serde_json::from_str(EVENT).unwrap();
        let deliveries: Vec<Delivery> = event.records.iter().map(super::delivery).collect();
        let judge = |delivery: &Delivery| match delivery.body.as_str() {
            "good" => Disposition::Acknowledge,
            _ => Disposition::DeadLetter { reason: "junk".into() },
        };
        let response = response(&deliveries, &deliveries.iter().map(judge).collect::<Vec<_>>());
        assert_eq!(failed(&response), ["059f36b4-87a3-44ab-83d2-661975830a7d"]);
    }

    #[test]
    fn only_what_is_not_acknowledged_is_reported_and_never_an_empty_id() {
        let deliveries = ["a", "b", "c", ""].map(delivery);
        let retry = Disposition::Retry { after: Duration::ZERO, reason: String::new() };
        let dead = Disposition::DeadLetter { reason: String::new() };
        let response = response(&deliveries, &[Disposition::Acknowledge, retry.clone(), dead, retry]);
        assert_eq!(failed(&response), ["b", "c"]);
    }

    #[test]
    fn nothing_is_begun_in_the_last_seconds() {
        let mut context = Context::default();
        context.deadline = 1_545_082_680_000;
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(deadline(&context, at(1_545_082_650_000)), at(1_545_082_675_000));
    }

    #[test]
    fn a_deadline_that_has_passed_before_anything_began_is_none() {
        let mut context = Context::default();
        context.deadline = 600_000;
        let now = Timestamp::from_millisecond(1_545_082_650_000).unwrap();
        assert!(deadline(&context, now) > now.saturating_add(SignedDuration::from_hours(1)).unwrap());
    }

    #[test]
    fn a_delivery_without_an_answer_comes_again() {
        let response = response(&["a", "b"].map(delivery), &[Disposition::Acknowledge]);
        assert_eq!(failed(&response), ["b"]);
    }
}
