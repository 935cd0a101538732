//! The store, and its calls for single items.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use aws::{Resource, failed};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{KeysAndAttributes, ReturnValuesOnConditionCheckFailure};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use futures::{StreamExt, stream};
use jiff::SignedDuration;
use messages::{Host, StoreError, naming};
use saga::Stores;

use crate::error::WriteContention;
use crate::item::{self, Item, text};
use crate::names::attributes::{KEY, STAMP};

/// The setting that names the table, without the prefix of the system (see [`messages::naming::setting`]).
pub const STORE_TABLE: &str = "STORE_TABLE";

/// The maximum number of keys of one batch
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html>).
const MAX_BATCH: usize = 100;
/// The maximum number of attempts of a write that other writers prevent.
pub(crate) const ROUNDS: u32 = 20;
/// The maximum number of concurrent calls for the items of one call of a port.
pub(crate) const CONCURRENT: usize = 16;

/// Makes the calls of several items. A refused item does not stop the others, and its error is returned after the last
/// of them. An unavailable table stops them.
pub(crate) async fn make_all<T>(
    calls: Vec<impl Future<Output = Result<T, StoreError>> + Send>,
) -> Result<Vec<T>, StoreError> {
    let (mut made, mut refused) = (Vec::with_capacity(calls.len()), None);
    let mut answers = stream::iter(calls).buffered(CONCURRENT);
    while let Some(answer) = answers.next().await {
        match answer {
            Ok(answer) => made.push(answer),
            Err(error) if error.is_retryable() => return Err(error),
            Err(error) => _ = refused.get_or_insert(error),
        }
    }
    refused.map_or(Ok(made), Err)
}

/// Settings of the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the system.
    pub system: String,
    /// The table.
    pub table: String,
    /// The retention of the document of an ended saga.
    pub saga_retention: SignedDuration,
    /// The retention of a session without entries.
    pub outbox_retention: SignedDuration,
    /// The retention of decisions about messages.
    pub history_retention: SignedDuration,
}

impl Settings {
    /// Returns the defaults for a system. Its table is `SYSTEM-store`.
    pub fn new(system: &str) -> Self {
        Self {
            system: system.to_owned(),
            table: format!("{system}-store"),
            saga_retention: SignedDuration::from_hours(7 * 24),
            outbox_retention: SignedDuration::from_hours(7 * 24),
            history_retention: SignedDuration::from_hours(30 * 24),
        }
    }
}

/// All ports of the engine to its database, on one table.
#[derive(Clone)]
pub struct Dynamo {
    pub(crate) client: Client,
    pub(crate) settings: Settings,
    pub(crate) host: Arc<dyn Host>,
}

/// The outcome of a conditional write.
pub(crate) enum PutOutcome {
    Done,
    /// The condition does not hold for the stored item.
    Refused(Option<Item>),
    /// A transaction is changing the item.
    InTransaction,
}

impl Dynamo {
    /// Creates the store. The host is the source of stamps, of the positions of views, and of delays.
    pub fn new(client: Client, settings: Settings, host: Arc<dyn Host>) -> Self {
        Self { client, settings, host }
    }

    /// Returns the ports of an engine.
    pub fn stores(&self) -> Stores {
        Stores::of(&Arc::new(self.clone()), self.saga_outbox(), self.session_outbox())
    }

    /// Returns the settings.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn resource(&self) -> Resource {
        let setting = naming::setting(&self.settings.system, STORE_TABLE);
        Resource { kind: "table", name: self.settings.table.clone(), setting }
    }

    /// Converts the error of a call. Conflicts with transactions pass by themselves.
    pub(crate) fn failed<E>(&self, doing: &str, error: &SdkError<E, HttpResponse>) -> StoreError
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
    {
        let error_of_call = failed(doing, &self.resource(), error);
        match error_of_call {
            StoreError::Unusable { doing, source } if is_conflict(error) => {
                StoreError::Unavailable { doing, source }
            }
            other => other,
        }
    }

    /// Reads an item consistently.
    pub(crate) async fn get(&self, key: &str, doing: &str) -> Result<Option<Item>, StoreError> {
        let request = self.client.get_item().table_name(&self.settings.table).key(KEY, text(key));
        let answer =
            request.consistent_read(true).send().await.map_err(|error| self.failed(doing, &error))?;
        Ok(answer.item)
    }

    /// Reads items consistently, and returns those that exist by key.
    pub(crate) async fn get_many(
        &self,
        keys: impl IntoIterator<Item = String>,
        doing: &str,
    ) -> Result<HashMap<String, Item>, StoreError> {
        let mut left: Vec<String> = keys.into_iter().collect::<BTreeSet<_>>().into_iter().collect();
        let (mut found, mut round) = (HashMap::new(), 0);
        while !left.is_empty() {
            let rest = left.split_off(left.len().min(MAX_BATCH));
            let requested = left.len();
            let (items, unread) = self.batch(&left, doing).await?;
            for item in items {
                found.insert(item::str_of(&item, KEY).unwrap_or_default().to_owned(), item);
            }
            if unread.len() == requested {
                // The service read none of them, because the table is throttled.
                self.wait(&mut round, doing).await?;
            }
            left = unread;
            left.extend(rest);
        }
        Ok(found)
    }

    async fn batch(&self, keys: &[String], doing: &str) -> Result<(Vec<Item>, Vec<String>), StoreError> {
        let mut request = KeysAndAttributes::builder().consistent_read(true);
        for key in keys {
            request = request.keys(item::new(key));
        }
        let request = request.build().map_err(|error| StoreError::unusable(doing, error))?;
        let table = &self.settings.table;
        let call = self.client.batch_get_item().request_items(table, request).send();
        let mut answer = call.await.map_err(|error| self.failed(doing, &error))?;
        let items = answer.responses.as_mut().and_then(|tables| tables.remove(table)).unwrap_or_default();
        let unread = answer.unprocessed_keys.as_mut().and_then(|tables| tables.remove(table));
        let unread = unread.map(|keys| keys.keys).unwrap_or_default();
        let unread = unread.iter().filter_map(|key| item::str_of(key, KEY).ok().map(str::to_owned));
        Ok((items, unread.collect()))
    }

    /// Writes an item on condition that the stored item has this stamp, or that no item exists if the stamp is `None`.
    pub(crate) async fn put(
        &self,
        item: Item,
        expected: Option<&str>,
        doing: &str,
    ) -> Result<PutOutcome, StoreError> {
        let request = self.client.put_item().table_name(&self.settings.table).set_item(Some(item));
        let request = match expected {
            None => request
                .condition_expression("attribute_not_exists(#key)")
                .expression_attribute_names("#key", KEY),
            Some(stamp) => request
                .condition_expression("#stamp = :stamp")
                .expression_attribute_names("#stamp", STAMP)
                .expression_attribute_values(":stamp", text(stamp)),
        };
        let all = ReturnValuesOnConditionCheckFailure::AllOld;
        match request.return_values_on_condition_check_failure(all).send().await {
            Ok(_) => Ok(PutOutcome::Done),
            Err(error) if is_conflict(&error) => Ok(PutOutcome::InTransaction),
            Err(error) => match error.as_service_error() {
                Some(
                    aws_sdk_dynamodb::operation::put_item::PutItemError::ConditionalCheckFailedException(
                        refused,
                    ),
                ) => Ok(PutOutcome::Refused(refused.item().filter(|item| !item.is_empty()).cloned())),
                _ => Err(self.failed(doing, &error)),
            },
        }
    }

    /// Waits before the next round of a call that other writers or throttling prevented.
    pub(crate) async fn wait(&self, round: &mut u32, doing: &str) -> Result<(), StoreError> {
        *round += 1;
        if *round >= ROUNDS {
            return Err(StoreError::unavailable(doing, WriteContention(*round)));
        }
        let milliseconds = f64::from(10_u32 << (*round).min(5)) * (0.5 + self.host.unit_random() / 2.0);
        self.host.sleep(Duration::from_secs_f64(milliseconds / 1_000.0)).await;
        Ok(())
    }

    /// Returns a new stamp.
    pub(crate) fn stamp(&self) -> String {
        self.host.fresh_id().simple().to_string()
    }
}

fn is_conflict<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>) -> bool {
    is_code(error, "TransactionConflictException") || is_code(error, "TransactionInProgressException")
}

/// Returns `true` if the service answered with this error code.
pub(crate) fn is_code<E: ProvideErrorMetadata>(error: &SdkError<E, HttpResponse>, code: &str) -> bool {
    error.as_service_error().and_then(ProvideErrorMetadata::code) == Some(code)
}
