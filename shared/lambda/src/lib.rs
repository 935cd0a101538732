//! Between Lambda's SQS events and our deliveries.
//!
//! The bodies stay undecoded here: one that is junk must cost only its own record, not the batch.

use aws_lambda_events::sqs::{BatchItemFailure, SqsBatchResponse, SqsEvent};
use contracts::{Delivery, Disposition};

/// The deliveries of an SQS event.
pub fn deliveries(event: SqsEvent) -> Vec<Delivery> {
    event.records.into_iter().map(delivery).collect()
}

fn delivery(message: aws_lambda_events::sqs::SqsMessage) -> Delivery {
    let count = message.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    Delivery {
        record_id: message.message_id.unwrap_or_default(),
        body: message.body.unwrap_or_default(),
        receive_count: count.unwrap_or(1),
    }
}

/// The partial batch response for the answers to `deliveries`.
///
/// Whatever is not acknowledged comes again until the queue's receive limit moves it to the dead-letter queue. A
/// record without an id cannot be named in the response (an empty id would fail the whole batch;
/// <https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>), but SQS sends none.
pub fn response(deliveries: &[Delivery], dispositions: &[Disposition]) -> SqsBatchResponse {
    let mut response = SqsBatchResponse::default();
    for (delivery, disposition) in deliveries.iter().zip(dispositions) {
        let reason = match disposition {
            Disposition::Acknowledge => continue,
            Disposition::Retry { reason, .. } | Disposition::DeadLetter { reason } => reason,
        };
        tracing::warn!(record_id = delivery.record_id, reason, "a record is left to the queue");
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

    fn delivery(id: &str) -> Delivery {
        Delivery { record_id: id.into(), body: String::new(), receive_count: 1 }
    }

    #[test]
    fn only_what_is_not_acknowledged_is_reported_and_never_an_empty_id() {
        let deliveries = ["a", "b", "c", ""].map(delivery);
        let retry = Disposition::Retry { after: Duration::ZERO, reason: String::new() };
        let dead = Disposition::DeadLetter { reason: String::new() };
        let response = response(&deliveries, &[Disposition::Acknowledge, retry.clone(), dead, retry]);
        let ids: Vec<_> =
            response.batch_item_failures.iter().map(|failure| failure.item_identifier.as_str()).collect();
        assert_eq!(ids, ["b", "c"]);
    }
}
