//! Runs the functions of an application on AWS Lambda.
//!
//! - [`serve`] runs one function until Lambda stops the process: batches of its queue, and its schedule;
//! - [`Worker`] handles one batch, for programs that receive other events too;
//! - [`Trigger`] distinguishes a batch from a scheduled event.
//!
//! Message bodies stay undecoded here: an unreadable message must cost only its own record, not the batch.
//!
//! # Guarantees
//!
//! - A message that fails, panics or cannot be read costs only its own record: the others of its batch are acknowledged.
//! - Work ends before the function's deadline, or is aborted and redelivered.
//! - A wrong table or a missing setting ends the function at its start, with all faults in one message.
//!
//! # Example
//!
//! The function `saga` of a system, whose handler in the template is its name:
//!
//! ```no_run
//! use lambda::{SettleVia, serve};
//! use saga::{Engine, System};
//!
//! async fn run(engine: Engine, system: &System<Engine>) -> Result<(), lambda_runtime::Error> {
//!     let function = system.function("saga").ok_or("the table has no function saga")?;
//!     serve(&engine, system, function, SettleVia::Queue).await
//! }
//! ```

// A panic in a handler fails only its own message (`messages::panics`). With `panic = "abort"` it would end the
// process, and the whole batch would be delivered again.
#[cfg(not(panic = "unwind"))]
compile_error!("functions are built with panic = \"unwind\"");

mod schedule;
mod settle;
mod trigger;

use std::sync::Arc;

use aws::queues::DEAD_LETTER_REASON;
use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent, SqsMessage};
use jiff::{SignedDuration, Timestamp};
use lambda_runtime::{Context, LambdaEvent, service_fn};
use messages::store::chain;
use messages::{Consumer, Delivery, Disposition, Queue};
use saga::{Engine, Function, System, Upkeep};
use serde_json::Value;

pub use schedule::ScheduledWork;
pub use trigger::{Trigger, UnknownEvent};

/// The part of a function's time that is reserved for finishing its work. Lambda aborts work that takes longer; its
/// messages are redelivered, which is safe.
const RESERVE: SignedDuration = SignedDuration::from_secs(5);

/// The name under which a panic is recorded that the function itself did not contain.
const HOST: &str = "lambda";

/// The way to apply answers that a partial batch response cannot express: a retry at a given time, and a dead letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleVia {
    /// Settles through the queue that sent the batch.
    Queue,
    /// Settles only through the response. In a development environment the event has no queue, and its sender receives
    /// only the response.
    ResponseOnly,
}

impl SettleVia {
    /// Returns the variant for a program. Events come either from the queues of its ports or from elsewhere.
    pub fn with_queues(has_queues: bool) -> Self {
        if has_queues { Self::Queue } else { Self::ResponseOnly }
    }
}

/// Handles batches of a queue.
pub struct Worker<'a> {
    /// The engine with the ports to the queue.
    pub engine: &'a Engine,
    /// The queue.
    pub queue: &'a Queue,
    /// The consumer of the queue.
    pub consumer: &'a dyn Consumer,
    /// The way to apply the answers.
    pub settling: SettleVia,
}

/// Runs a function until Lambda stops the process. A function has one or two triggers:
/// - batches of its queue;
/// - a schedule, if it consumes the control queue or drains dead-letter queues; see [`ScheduledWork`].
///
/// # Errors
/// Returns an error if the table of the application is wrong, the function is behind no queue, a service that
/// it uses is not configured, or the Runtime API is unavailable.
pub async fn serve<P: AsRef<Engine>>(
    ports: &P,
    system: &System<P>,
    function: &Function<P>,
    settling: SettleVia,
) -> Result<(), lambda_runtime::Error> {
    serve_with_upkeep(ports, system, function, settling, None).await
}

/// Works like [`serve`], for a function whose schedule also does work in the background.
///
/// # Errors
/// Returns the errors of [`serve`].
pub async fn serve_with_upkeep<P: AsRef<Engine>>(
    ports: &P,
    system: &System<P>,
    function: &Function<P>,
    settling: SettleVia,
    upkeep: Option<Arc<dyn Upkeep>>,
) -> Result<(), lambda_runtime::Error> {
    system.check()?;
    let (Some(queue), Some(build)) = (function.source.queue(), function.build) else {
        return Err(format!("{} is behind no queue", function.name).into());
    };
    let (engine, consumer) = (ports.as_ref(), build(ports)?);
    let worker = &Worker { engine, queue, consumer: &*consumer, settling };
    let scheduled = &ScheduledWork::of(engine, system, function)?.with_upkeep(upkeep);
    let invocation = move |event: LambdaEvent<Value>| async move {
        let deadline = deadline(&event.context, engine.host.now());
        match Trigger::read(event.payload).map_err(|error| chain(&error))? {
            Trigger::Queue(batch) => Ok(Some(worker.answer(batch, Some(deadline)).await)),
            Trigger::Schedule => match scheduled.run(engine, deadline).await {
                Ok(()) => Ok(None),
                Err(error) => Err(lambda_runtime::Error::from(chain(&error))),
            },
        }
    };
    lambda_runtime::run(service_fn(invocation)).await
}

/// Returns the time after which an invocation begins nothing more.
pub fn deadline(context: &Context, now: Timestamp) -> Timestamp {
    // A deadline that a timestamp cannot express is ignored. A deadline before the beginning of the invocation is
    // ignored, too, because some emulators send a duration instead of a time. Otherwise no message would be handled
    // with them.
    let ends_at = Timestamp::try_from(context.deadline()).unwrap_or(Timestamp::MAX);
    let ends_at = if ends_at <= now { Timestamp::MAX } else { ends_at };
    ends_at.saturating_sub(RESERVE).unwrap_or(ends_at)
}

impl Worker<'_> {
    /// Handles a batch, and returns the partial batch response.
    pub async fn answer(&self, event: SqsEvent, deadline: Option<Timestamp>) -> SqsBatchResponse {
        let deliveries: Vec<Delivery> = event.records.iter().map(delivery).collect();
        let reporter = self.engine.reporter(HOST);
        let mut answers = messages::deliver(self.consumer, &deliveries, deadline, &reporter).await;
        if self.settling == SettleVia::Queue {
            let source = self.engine.receive.as_ref();
            answers = settle::settle(source, self.queue, &event.records, answers).await;
        }
        self.engine.observer.flush().await;
        response(&deliveries, &answers)
    }
}

fn delivery(message: &SqsMessage) -> Delivery {
    let reason = message.message_attributes.get(DEAD_LETTER_REASON);
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    Delivery {
        record_id: message.message_id.clone().unwrap_or_default(),
        body: message.body.clone().unwrap_or_default(),
        receive_count: count.unwrap_or(1),
        reason: reason.and_then(|reason| reason.string_value.clone()),
    }
}

/// Returns the partial batch response for the answers to `deliveries`, once they are settled.
///
/// A record that is not acknowledged is redelivered until the queue's receive limit moves it to the dead-letter queue.
/// A delivery without an answer is also named in the response, because SQS deletes the records that the response does
/// not name. A record without an id cannot be named, since an empty id would fail the whole batch
/// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>), but SQS sends none.
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
                },
                "dead_letter_reason": {
                    "stringValue": "no such search",
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
        Delivery { record_id: id.into(), body: String::new(), receive_count: 1, reason: None }
    }

    fn failed(response: &SqsBatchResponse) -> Vec<&str> {
        response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect()
    }

    #[test]
    fn record_keeps_its_fields() {
        let event: SqsEvent = serde_json::from_str(EVENT).unwrap();
        let deliveries: Vec<Delivery> = event.records.iter().map(super::delivery).collect();
        assert_eq!(deliveries[0].record_id, "059f36b4-87a3-44ab-83d2-661975830a7d");
        assert_eq!(deliveries[0].receive_count, 2);
        assert_eq!(deliveries[1].body, "good");
        let reasons: Vec<_> = deliveries.iter().map(|delivery| delivery.reason.as_deref()).collect();
        assert_eq!(reasons, [None, Some("no such search")]);
    }

    #[test]
    fn junk_body_does_not_fail_its_neighbours() {
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
    fn response_names_unacknowledged_records_with_an_id() {
        let deliveries = ["a", "b", "c", ""].map(delivery);
        let retry = Disposition::Retry { after: Duration::ZERO, reason: String::new() };
        let dead = Disposition::DeadLetter { reason: String::new() };
        let response = response(&deliveries, &[Disposition::Acknowledge, retry.clone(), dead, retry]);
        assert_eq!(failed(&response), ["b", "c"]);
    }

    #[test]
    fn deadline_leaves_time_to_finish() {
        let mut context = Context::default();
        context.deadline = 1_545_082_680_000;
        let at = |ms| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(deadline(&context, at(1_545_082_650_000)), at(1_545_082_675_000));
    }

    #[test]
    fn deadline_in_the_past_is_ignored() {
        let mut context = Context::default();
        context.deadline = 600_000;
        let now = Timestamp::from_millisecond(1_545_082_650_000).unwrap();
        assert!(deadline(&context, now) > now.saturating_add(SignedDuration::from_hours(1)).unwrap());
    }

    #[test]
    fn delivery_without_an_answer_is_redelivered() {
        let response = response(&["a", "b"].map(delivery), &[Disposition::Acknowledge]);
        assert_eq!(failed(&response), ["b"]);
    }
}
