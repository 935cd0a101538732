//! DynamoDB.

mod faults;
mod fixtures;
mod like_the_model;
mod requeued;
mod store;
mod suites;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification,
};
use servers::amazon::{Service, config};

use servers::{TestResult, cleaned_up, unique};

async fn client() -> Client {
    Client::new(&config(Service::DynamoDb).await)
}

/// Runs a test with its own table, set up as the template sets it up.
async fn with_table<F: Future<Output = TestResult>>(
    key: &str,
    test: impl FnOnce(Client, String) -> F,
) -> TestResult {
    let (client, table) = (client().await, unique(key));
    create(&client, &table, key).await;
    let clean = async {
        client.delete_table().table_name(&table).send().await.expect("the table can be deleted");
    };
    cleaned_up(test(client.clone(), table.clone()), clean).await
}

async fn create(client: &Client, table: &str, key: &str) {
    let attribute = AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S);
    let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash);
    let ttl = TimeToLiveSpecification::builder().enabled(true).attribute_name("expires_at");
    client
        .create_table()
        .table_name(table)
        .attribute_definitions(attribute.build().unwrap())
        .key_schema(schema.build().unwrap())
        .billing_mode(BillingMode::PayPerRequest)
        .send()
        .await
        .expect("the table can be created");
    let request = client.update_time_to_live().table_name(table);
    request.time_to_live_specification(ttl.build().unwrap()).send().await.expect("its TTL can be set");
}
