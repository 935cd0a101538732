//! The check of a table's schema.

use crate::{Resource, failed};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeDefinition, KeySchemaElement, ScalarAttributeType};
use messages::StoreError;

/// A table with another purpose.
#[derive(Debug, thiserror::Error)]
#[error("the {resource} has another purpose: its key is not only the string {key}")]
struct OtherKey {
    resource: Resource,
    key: &'static str,
}

/// Checks that a table exists and that its key is the string `key` alone.
pub(crate) async fn check(client: &Client, resource: &Resource, key: &'static str) -> Result<(), StoreError> {
    let doing = format!("looking for table {}", resource.name);
    let request = client.describe_table().table_name(&resource.name);
    let answer = request.send().await.map_err(|error| failed(&*doing, resource, &error))?;
    let table = answer.table.unwrap_or_else(|| aws_sdk_dynamodb::types::TableDescription::builder().build());
    let names: Vec<&str> = table.key_schema().iter().map(KeySchemaElement::attribute_name).collect();
    let is_text = |attribute: &AttributeDefinition| {
        attribute.attribute_name() == key && *attribute.attribute_type() == ScalarAttributeType::S
    };
    if names == [key] && table.attribute_definitions().iter().any(is_text) {
        Ok(())
    } else {
        Err(StoreError::unusable(doing, OtherKey { resource: resource.clone(), key }))
    }
}
