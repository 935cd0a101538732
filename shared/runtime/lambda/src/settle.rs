//! The answers that a partial batch response cannot express.

use aws::queues::Receipt;
use aws_lambda_events::sqs::SqsMessage;
use futures::future::join_all;
use jiff::Timestamp;
use messages::store::chain;
use messages::{Disposition, Queue, ReceiveMessages};

/// Applies them to the queue: delays a retry through the visibility timeout, and dead-letters a message by moving it
/// with its reason. Returns the dispositions that are left for the response. If that fails, the record is redelivered
/// after its visibility timeout.
pub(crate) async fn settle(
    source: &dyn ReceiveMessages,
    queue: &Queue,
    records: &[SqsMessage],
    dispositions: Vec<Disposition>,
) -> Vec<Disposition> {
    join_all(records.iter().zip(dispositions).map(|(record, said)| settle_one(source, queue, record, said)))
        .await
}

async fn settle_one(
    source: &dyn ReceiveMessages,
    queue: &Queue,
    record: &SqsMessage,
    said: Disposition,
) -> Disposition {
    // Lambda deletes acknowledged messages, in one call for the batch.
    if said == Disposition::Acknowledge {
        return said;
    }
    let count = record.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok());
    let receipt = Receipt {
        handle: record.receipt_handle.clone().unwrap_or_default(),
        // The queue's visibility timeout is longer than the function can run.
        until: Timestamp::MAX,
        received: count.unwrap_or(0),
        body: record.body.clone(),
    };
    let settled = match receipt.text() {
        Ok(receipt) => source.answer(queue, &receipt, &said).await.map_err(|error| chain(&error)),
        Err(error) => Err(error.to_string()),
    };
    match (settled, said) {
        (Ok(()), Disposition::DeadLetter { .. }) => Disposition::Acknowledge,
        (Ok(()), said) => said,
        (Err(error), said) => {
            tracing::warn!(
                record_id = record.message_id,
                error,
                "a record was not settled, and will be redelivered"
            );
            said
        }
    }
}
