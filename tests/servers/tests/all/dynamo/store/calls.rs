//! The capacity units of a message, which docs/costs.md uses.

use std::sync::{Arc, Mutex};

use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::batch_write_item::{BatchWriteItemInput, BatchWriteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::types::ReturnConsumedCapacity;
use backend::SystemHost;
use contracts::history::observation;
use contracts::sample;
use messages::{DecisionRecord, Host, PartitionKey, Traceparent, Verdict};
use outbox::{Settlement, View, WriteViews};
use saga::{KeepHistory, Persist, PersistOutcome, ReadDocuments, WriteDocuments};
use servers::TestResult;

use super::with_store_of;

/// Units of reads and of writes.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Units {
    reads: f64,
    writes: f64,
}

/// Requests the consumed capacity of each call, and adds it up.
#[derive(Debug, Clone, Default)]
struct Meter(Arc<Mutex<Units>>);

impl Meter {
    fn spent(&self) -> Units {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let total = Some(ReturnConsumedCapacity::Total);
        let input = context.input_mut();
        if let Some(input) = input.downcast_mut::<GetItemInput>() {
            input.return_consumed_capacity = total;
        } else if let Some(input) = input.downcast_mut::<BatchGetItemInput>() {
            input.return_consumed_capacity = total;
        } else if let Some(input) = input.downcast_mut::<BatchWriteItemInput>() {
            input.return_consumed_capacity = total;
        } else if let Some(input) = input.downcast_mut::<PutItemInput>() {
            input.return_consumed_capacity = total;
        }
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else { return Ok(()) };
        let mut units = self.0.lock().unwrap();
        if let Some(output) = output.downcast_ref::<GetItemOutput>() {
            units.reads += output
                .consumed_capacity()
                .and_then(aws_sdk_dynamodb::types::ConsumedCapacity::capacity_units)
                .unwrap_or(0.0);
        } else if let Some(output) = output.downcast_ref::<BatchGetItemOutput>() {
            units.reads += output
                .consumed_capacity()
                .iter()
                .filter_map(aws_sdk_dynamodb::types::ConsumedCapacity::capacity_units)
                .sum::<f64>();
        } else if let Some(output) = output.downcast_ref::<BatchWriteItemOutput>() {
            units.writes += output
                .consumed_capacity()
                .iter()
                .filter_map(aws_sdk_dynamodb::types::ConsumedCapacity::capacity_units)
                .sum::<f64>();
        } else if let Some(output) = output.downcast_ref::<PutItemOutput>() {
            units.writes += output
                .consumed_capacity()
                .and_then(aws_sdk_dynamodb::types::ConsumedCapacity::capacity_units)
                .unwrap_or(0.0);
        }
        Ok(())
    }
}

/// `infra/costs.py` has the same numbers. The documents have less than 1 KB.
#[tokio::test]
async fn message_consumes_these_units() -> TestResult {
    let meter = Meter::default();
    let metered = meter.clone();
    with_store_of(
        |config| config.interceptor(metered),
        |store| async move {
            let (partition, now) = (sample::partition(&SystemHost), SystemHost.now());
            let persist = async |loaded, add| -> TestResult {
                store.load(&[partition], now).await?;
                let content = sample::content(&SystemHost, "counted");
                let write = Persist { add, ..sample::persist(partition, loaded, content) };
                assert_eq!(store.persist(&[write], now).await?, [PersistOutcome::Stored]);
                Ok(())
            };
            persist(None, Vec::new()).await?;
            // The local server counts no unit for an absent item of a batch.
            assert_eq!(meter.spent(), Units { reads: 0.0, writes: 1.0 }, "the first message of a saga");
            persist(Some(1), Vec::new()).await?;
            assert_eq!(meter.spent(), Units { reads: 2.0, writes: 1.0 }, "a message without an effect");
            let entry = sample::entry(&SystemHost, partition, now)?;
            persist(Some(2), vec![entry.clone()]).await?;
            let done = Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
            WriteDocuments::settle(&store, &[(partition, vec![done])]).await?;
            assert_eq!(meter.spent(), Units { reads: 3.0, writes: 4.0 }, "a message with an effect");
            let view = sample::view(&SystemHost, partition, 1, false);
            store.write(std::slice::from_ref(&view)).await?;
            assert_eq!(meter.spent(), Units { reads: 1.0, writes: 5.0 }, "the first view of a saga");
            store.write(&[View { revision: 2, ..view }]).await?;
            assert_eq!(meter.spent(), Units { reads: 1.0, writes: 5.0 }, "a changed view");
            let [handled, sent] = decisions(partition);
            store.append(&[handled, sent]).await?;
            assert_eq!(meter.spent(), Units { reads: 0.0, writes: 2.0 }, "the history of a message");
            Ok(())
        },
    )
    .await
}

/// Returns the decisions about a message and its effect, with all fields, as long as those of orders.
fn decisions(partition: PartitionKey) -> [DecisionRecord; 2] {
    let handled = observation(&SystemHost, partition, 0, 0);
    let message = handled.message_id.expect("it has one");
    let handled = DecisionRecord {
        verdict: Verdict::Handled,
        why: "placed -> paid".to_owned(),
        traceparent: Some(Traceparent::of(partition, message).to_string()),
        began_at: Some(handled.at),
        attempt: Some(1),
        state: Some("placed".to_owned()),
        ..handled
    };
    let sent = DecisionRecord {
        verdict: Verdict::Dispatched,
        why: "sent to warehouse".to_owned(),
        began_at: None,
        attempt: None,
        state: None,
        ..handled.clone()
    };
    [handled, sent]
}
