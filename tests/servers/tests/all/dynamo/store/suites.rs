//! The contract suites.

use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use backend::SystemHost;
use contracts::failures::StoredValue;
use contracts::sample::Samples;
use dynamo::attributes::{CONTENT, ENTRY, KEY, OUTBOX};
use dynamo::{Dynamo, Settings};
use futures::future::BoxFuture;
use messages::{MessageId, PartitionKey};
use saga::Views;
use servers::TestResult;
use servers::amazon::{Service, config};

use super::with_store;

/// Changes an attribute of an item, without the ports.
async fn damage(client: &Client, table: &str, key: String, change: &str, to: &str) -> TestResult {
    client
        .update_item()
        .table_name(table)
        .key(KEY, AttributeValue::S(key))
        .update_expression(format!("SET {change} = :to"))
        .condition_expression(format!("attribute_exists({KEY})"))
        .expression_attribute_values(":to", AttributeValue::S(to.to_owned()))
        .send()
        .await?;
    Ok(())
}

/// Returns the index of an entry in the stored outbox.
async fn index_of(client: &Client, table: &str, partition: PartitionKey, entry: MessageId) -> usize {
    let key = AttributeValue::S(format!("saga#{partition}"));
    let stored =
        client.get_item().table_name(table).key(KEY, key).consistent_read(true).send().await.unwrap();
    let id = AttributeValue::S(entry.to_string());
    let outbox = stored.item.unwrap()[OUTBOX].as_l().unwrap().clone();
    outbox.iter().position(|stored| stored.as_m().unwrap()["id"] == id).expect("the entry is stored")
}

pub(super) async fn documents_of(store: &Dynamo, table: &str) -> TestResult {
    let client = Client::new(&config(Service::DynamoDb).await);
    let sweep = store.saga_outbox();
    let lose = |partition: PartitionKey| -> BoxFuture<'_, TestResult> {
        let (client, table) = (client.clone(), table.to_owned());
        let key = format!("saga#{partition}");
        Box::pin(async move { damage(&client, &table, key, CONTENT, r#"{"status":"lost"}"#).await })
    };
    let newer = |partition: PartitionKey, entry: MessageId| -> BoxFuture<'_, TestResult> {
        let (client, table) = (client.clone(), table.to_owned());
        Box::pin(async move {
            let index = index_of(&client, &table, partition, entry).await;
            let (key, entry) = (format!("saga#{partition}"), format!("{OUTBOX}[{index}].{ENTRY}"));
            damage(&client, &table, key, &entry, r#"{"kind":"webhook"}"#).await
        })
    };
    let ports = contracts::documents::Ports {
        read: store,
        write: store,
        sweep: &sweep,
        host: &SystemHost,
        retention: Settings::new("samples").saga_retention,
        damage: Some(&lose),
        damage_entry: Some(&newer),
    };
    contracts::documents::all(&ports).await
}

pub(super) async fn sessions_of(store: &Dynamo) -> TestResult {
    let sweep = store.session_outbox();
    let ports = contracts::sessions::Ports::of(store, &sweep, &SystemHost);
    contracts::sessions::all(&ports).await
}

pub(super) async fn views_of(store: &Dynamo) -> TestResult {
    let views = Views {
        saga: Samples,
        written: Arc::new(store.clone()),
        documents: Arc::new(store.clone()),
        host: Arc::new(SystemHost),
    };
    let ports = contracts::views::Ports { views: &views, write: store, documents: store, host: &SystemHost };
    contracts::views::all(&ports).await
}

pub(super) async fn failures_of(store: &Dynamo, table: &str) -> TestResult {
    let client = Client::new(&config(Service::DynamoDb).await);
    let lose = |stored: StoredValue| -> BoxFuture<'_, TestResult> {
        let key = match stored {
            StoredValue::Failure(id) => format!("failure#{id}"),
            StoredValue::Operation(id) => format!("operation#{id}"),
        };
        let (client, table) = (client.clone(), table.to_owned());
        Box::pin(async move { damage(&client, &table, key, CONTENT, r#"{"state":"lost"}"#).await })
    };
    let ports = contracts::failures::Ports { store, host: &SystemHost, damage: &lose };
    contracts::failures::all(&ports).await
}

pub(super) async fn history_of(store: &Dynamo) -> TestResult {
    contracts::history::all(&contracts::history::Ports { store, host: &SystemHost }).await
}

#[tokio::test]
async fn documents() -> TestResult {
    with_store(|store| async move { documents_of(&store, &store.settings().table).await }).await
}

#[tokio::test]
async fn sessions() -> TestResult {
    with_store(|store| async move { sessions_of(&store).await }).await
}

#[tokio::test]
async fn views() -> TestResult {
    with_store(|store| async move { views_of(&store).await }).await
}

#[tokio::test]
async fn failures() -> TestResult {
    with_store(|store| async move { failures_of(&store, &store.settings().table).await }).await
}

#[tokio::test]
async fn history() -> TestResult {
    with_store(|store| async move { history_of(&store).await }).await
}
