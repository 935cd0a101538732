//! The memory of processed messages.

use crate::{Resource, failed};
use async_trait::async_trait;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use dedup::ProcessedMessages;
use jiff::Timestamp;
use messages::StoreError;

use crate::ledger::item::{self, EXPIRES};
use crate::ledger::table;

/// The setting that names the table of processed messages, without the prefix of the system (see
/// [`messages::naming::setting`]).
pub const PROCESSED_TABLE: &str = "PROCESSED_TABLE";
/// The table's partition key.
pub const KEY: &str = "message_key";

/// The memory of processed messages, in one table.
#[derive(Debug, Clone)]
pub struct ProcessedTable {
    client: Client,
    system: String,
    table: String,
}

impl ProcessedTable {
    /// The memory of a system, in `table`.
    pub fn new(client: Client, system: &str, table: impl Into<String>) -> Self {
        Self { client, system: system.to_owned(), table: table.into() }
    }

    /// Checks that the table exists and has the expected key.
    ///
    /// # Errors
    /// Returns an error if the table differs or does not answer.
    pub async fn check(&self) -> Result<(), StoreError> {
        table::check(&self.client, &self.resource(), KEY).await
    }

    fn resource(&self) -> Resource {
        let setting = messages::naming::setting(&self.system, PROCESSED_TABLE);
        Resource { kind: "table", name: self.table.clone(), setting }
    }
}

#[async_trait]
impl ProcessedMessages for ProcessedTable {
    /// A consistent read, because a duplicate often arrives immediately after the original.
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
        let doing = format!("looking for the processed message {key}");
        let answer = self
            .client
            .get_item()
            .table_name(&self.table)
            .key(KEY, AttributeValue::S(key.to_owned()))
            .projection_expression("#expires")
            .expression_attribute_names("#expires", EXPIRES)
            .consistent_read(true)
            .send()
            .await
            .map_err(|error| failed(&*doing, &self.resource(), &error))?;
        let Some(stored) = answer.item else { return Ok(false) };
        let expires_at = item::expires_at(&stored).map_err(|error| StoreError::unusable(doing, error))?;
        Ok(expires_at > now)
    }

    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
        self.client
            .put_item()
            .table_name(&self.table)
            .item(KEY, AttributeValue::S(key.to_owned()))
            .item(EXPIRES, item::ttl(expires_at))
            .send()
            .await
            .map_err(|error| {
                failed(format!("remembering the processed message {key}"), &self.resource(), &error)
            })?;
        Ok(())
    }
}
