//! The table: its creation on local servers, its check, and its description for a template.

use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, GlobalSecondaryIndex, GlobalSecondaryIndexDescription,
    KeySchemaElement, KeyType, Projection, ProjectionType, ScalarAttributeType, TimeToLiveDescription,
    TimeToLiveSpecification,
};
use messages::StoreError;
use serde_json::{Value, json};

use crate::Dynamo;
use crate::names::attributes::{EXPIRES, KEY};
pub use crate::names::{INDEXES, Index};
use crate::store::is_code;

/// The calls for items of the table, as actions of a role. Each operation of a transaction needs the action of its own kind
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html>).
pub const ITEM_CALLS: [&str; 7] = [
    "dynamodb:BatchGetItem",
    "dynamodb:BatchWriteItem",
    "dynamodb:ConditionCheckItem",
    "dynamodb:DeleteItem",
    "dynamodb:GetItem",
    "dynamodb:PutItem",
    "dynamodb:UpdateItem",
];
/// The calls for the indexes of the table, as actions of a role.
pub const QUERY_CALLS: [&str; 1] = ["dynamodb:Query"];

/// Returns the names of all attributes in keys, each once.
fn key_attributes() -> Vec<&'static str> {
    let of_indexes = INDEXES.iter().flat_map(|index| [index.partition, index.sort]);
    let mut names: Vec<&str> = std::iter::once(KEY).chain(of_indexes).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the properties of an `AWS::DynamoDB::Table` for a template
/// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html>).
pub fn properties() -> Value {
    let schema = |partition: &str, sort: Option<&str>| -> Value {
        let sort = sort.map(|sort| json!({ "AttributeName": sort, "KeyType": "RANGE" }));
        std::iter::once(json!({ "AttributeName": partition, "KeyType": "HASH" })).chain(sort).collect()
    };
    let index = |index: &Index| {
        json!({
            "IndexName": index.name,
            "KeySchema": schema(index.partition, Some(index.sort)),
            "Projection": { "ProjectionType": "KEYS_ONLY" },
        })
    };
    let attribute = |name| json!({ "AttributeName": name, "AttributeType": "S" });
    json!({
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": key_attributes().into_iter().map(attribute).collect::<Value>(),
        "KeySchema": schema(KEY, None),
        "GlobalSecondaryIndexes": INDEXES.iter().map(index).collect::<Value>(),
        "TimeToLiveSpecification": { "AttributeName": EXPIRES, "Enabled": true },
        "PointInTimeRecoverySpecification": { "PointInTimeRecoveryEnabled": true },
    })
}

/// The table exists and lacks an index, or has another key.
#[derive(Debug, thiserror::Error)]
#[error("the table differs from its description: {0}")]
struct Different(String);

impl Dynamo {
    /// Creates the table unless it exists, for a local server. On AWS, a template does.
    ///
    /// # Errors
    /// Returns an error if the table cannot be created, or exists with another key or without an index.
    pub async fn create_table(&self) -> Result<(), StoreError> {
        let doing = format!("creating table {}", self.settings.table);
        self.create(&doing).await?;
        self.check_table().await?;
        self.enable_expiry(&doing).await
    }

    async fn create(&self, doing: &str) -> Result<(), StoreError> {
        let unusable = |error| StoreError::unusable(doing, error);
        let mut request = self
            .client
            .create_table()
            .table_name(&self.settings.table)
            .billing_mode(BillingMode::PayPerRequest)
            .key_schema(key(KEY, KeyType::Hash).map_err(unusable)?);
        for name in key_attributes() {
            let attribute = AttributeDefinition::builder().attribute_name(name);
            let attribute = attribute.attribute_type(ScalarAttributeType::S).build().map_err(unusable)?;
            request = request.attribute_definitions(attribute);
        }
        for index in INDEXES {
            let keys = Projection::builder().projection_type(ProjectionType::KeysOnly).build();
            let described = GlobalSecondaryIndex::builder()
                .index_name(index.name)
                .key_schema(key(index.partition, KeyType::Hash).map_err(unusable)?)
                .key_schema(key(index.sort, KeyType::Range).map_err(unusable)?)
                .projection(keys);
            request = request.global_secondary_indexes(described.build().map_err(unusable)?);
        }
        match request.send().await {
            // The client repeats a call whose response was lost.
            Err(error) if !is_code(&error, "ResourceInUseException") => Err(self.failed(doing, &error)),
            _ => Ok(()),
        }
    }

    async fn enable_expiry(&self, doing: &str) -> Result<(), StoreError> {
        let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name(EXPIRES).build();
        let ttl = ttl.map_err(|error| StoreError::unusable(doing, error))?;
        let table = &self.settings.table;
        let request = self.client.update_time_to_live().table_name(table).time_to_live_specification(ttl);
        let Err(error) = request.send().await else { return Ok(()) };
        // The service refuses to enable a feature that is already enabled.
        let described = self.client.describe_time_to_live().table_name(table).send().await;
        let described = described.ok().and_then(|answer| answer.time_to_live_description);
        match described.as_ref().and_then(TimeToLiveDescription::attribute_name) {
            Some(EXPIRES) => Ok(()),
            _ => Err(self.failed(doing, &error)),
        }
    }

    /// Checks that the table exists with its key and all indexes.
    ///
    /// # Errors
    /// Returns an error if the table differs or does not answer.
    pub async fn check_table(&self) -> Result<(), StoreError> {
        let doing = format!("looking for table {}", self.settings.table);
        let request = self.client.describe_table().table_name(&self.settings.table);
        let answer = request.send().await.map_err(|error| self.failed(&doing, &error))?;
        let Some(table) = answer.table else {
            return Err(StoreError::unavailable(doing, Different("the answer has none".to_owned())));
        };
        let keys: Vec<&str> = table.key_schema().iter().map(KeySchemaElement::attribute_name).collect();
        if keys != [KEY] {
            return Err(StoreError::unusable(doing, Different(format!("its key is not {KEY}"))));
        }
        let missing = INDEXES.iter().find(|index| !has(table.global_secondary_indexes(), index));
        match missing {
            None => Ok(()),
            Some(index) => {
                let why = format!("the index {} is missing or has another key", index.name);
                Err(StoreError::unusable(doing, Different(why)))
            }
        }
    }

    /// Deletes the table if it exists.
    pub async fn delete_table(&self) -> Result<(), StoreError> {
        let doing = format!("deleting table {}", self.settings.table);
        let request = self.client.delete_table().table_name(&self.settings.table);
        match request.send().await {
            Err(error) if !is_code(&error, "ResourceNotFoundException") => Err(self.failed(&doing, &error)),
            _ => Ok(()),
        }
    }
}

fn key(name: &str, kind: KeyType) -> Result<KeySchemaElement, aws_sdk_dynamodb::error::BuildError> {
    KeySchemaElement::builder().attribute_name(name).key_type(kind).build()
}

fn has(described: &[GlobalSecondaryIndexDescription], index: &Index) -> bool {
    described.iter().any(|found| {
        let keys: Vec<&str> = found.key_schema().iter().map(KeySchemaElement::attribute_name).collect();
        found.index_name() == Some(index.name) && keys == [index.partition, index.sort]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn template_describes_each_key_attribute_once() {
        let described = properties();
        let names = |value: &Value| value.as_array().map_or(0, Vec::len);
        assert_eq!(names(&described["AttributeDefinitions"]), key_attributes().len());
        assert_eq!(names(&described["GlobalSecondaryIndexes"]), INDEXES.len());
        assert_eq!(described["KeySchema"], json!([{ "AttributeName": "pk", "KeyType": "HASH" }]));
    }
}
