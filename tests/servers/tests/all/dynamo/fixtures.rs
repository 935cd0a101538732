//! Data of earlier versions in DynamoDB: this version reads them, and writes the format of the latest.

use std::collections::HashMap;

use aws::ledger::{LEDGER_KEY, Ledger, PROCESSED_KEY, ProcessedTable};
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::AttributeValue;
use serde_json::{Map, Value, json};
use servers::TestResult;
use testing::fixtures::{Release, ledger};

use super::with_table;

/// The items of both tables, as DynamoDB JSON.
const STORED: &str = "dynamo.json";
const FACTS: &str = "ledger.json";

/// Runs a test with both tables.
async fn with_tables<F: Future<Output = TestResult>>(
    test: impl FnOnce(Client, [String; 2]) -> F,
) -> TestResult {
    with_table(LEDGER_KEY, |client, ledger| async move {
        with_table(PROCESSED_KEY, |_, processed| test(client, [ledger, processed])).await
    })
    .await
}

#[tokio::test]
async fn stored_data_of_all_versions_is_readable() -> TestResult {
    for release in Release::all() {
        with_tables(|client, tables| async move {
            for (table, name) in tables.iter().zip(["ledger", "processed"]) {
                for stored in release.json::<Value>(STORED)[name].as_array().unwrap() {
                    client.put_item().table_name(table).set_item(Some(item(stored))).send().await?;
                }
            }
            let [partitions, processed] = tables;
            let memory = ProcessedTable::new(client.clone(), imports::SYSTEM, processed);
            ledger::check(&Ledger::new(client, imports::SYSTEM, partitions), &memory, &release.json(FACTS))
                .await
        })
        .await?;
    }
    Ok(())
}

#[tokio::test]
async fn stored_data_is_readable_by_previous_version() -> TestResult {
    with_tables(|client, [partitions, processed]| async move {
        let release = Release::latest();
        let memory = ProcessedTable::new(client.clone(), imports::SYSTEM, &processed);
        ledger::write(
            &Ledger::new(client.clone(), imports::SYSTEM, &partitions),
            &memory,
            &release.json(FACTS),
        )
        .await?;
        let stored = json!({
            "ledger": stored(&client, &partitions, LEDGER_KEY).await?,
            "processed": stored(&client, &processed, PROCESSED_KEY).await?,
        });
        release.check(STORED, &stored);
        Ok(())
    })
    .await
}

/// Returns all items of a table in the order of their keys.
async fn stored(
    client: &Client,
    table: &str,
    key: &str,
) -> Result<Vec<Value>, Box<dyn std::error::Error + Send + Sync>> {
    let found = client.scan().table_name(table).consistent_read(true).send().await?;
    let mut items: Vec<Value> = found.items().iter().map(json_of).collect();
    items.sort_by_key(|item| item[key]["S"].as_str().map(str::to_owned));
    Ok(items)
}

fn json_of(item: &HashMap<String, AttributeValue>) -> Value {
    let attribute = |value: &AttributeValue| match value {
        AttributeValue::S(text) => json!({ "S": text }),
        AttributeValue::N(number) => json!({ "N": number }),
        AttributeValue::Ss(texts) => {
            // Sets are unordered.
            let mut texts = texts.clone();
            texts.sort();
            json!({ "SS": texts })
        }
        other => panic!("no form for {other:?}"),
    };
    item.iter().map(|(name, value)| (name.clone(), attribute(value))).collect::<Map<_, _>>().into()
}

fn item(stored: &Value) -> HashMap<String, AttributeValue> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let attribute = |value: &Value| match value.as_object().unwrap().iter().next().unwrap() {
        (kind, value) if kind == "S" => AttributeValue::S(text(value)),
        (kind, value) if kind == "N" => AttributeValue::N(text(value)),
        (kind, value) if kind == "SS" => {
            AttributeValue::Ss(value.as_array().unwrap().iter().map(text).collect())
        }
        (kind, _) => panic!("no attribute of type {kind}"),
    };
    stored.as_object().unwrap().iter().map(|(name, value)| (name.clone(), attribute(value))).collect()
}
