//! A backup of the database and the tables, and its restoration as by a point-in-time restore.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use futures::TryStreamExt;
use mongodb::bson::{Document, doc};
use servers::TestResult;

use super::super::Environment;
use super::super::deployment::Unexpected;

/// The tables, each with its key.
const TABLES: [(&str, &str); 2] = [
    ("SEARCH_IMPORT_LEDGER_TABLE", aws::ledger::LEDGER_KEY),
    ("SEARCH_IMPORT_PROCESSED_TABLE", aws::ledger::PROCESSED_KEY),
];

type Item = HashMap<String, AttributeValue>;

/// All data at one point in time, except for the files.
pub(super) struct Backup {
    collections: HashMap<String, Vec<Document>>,
    tables: HashMap<&'static str, Vec<Item>>,
}

impl Backup {
    pub(super) async fn take(environment: &Environment) -> Result<Self, Unexpected> {
        let (mut collections, mut tables) = (HashMap::new(), HashMap::new());
        let database = environment.database().await?;
        for name in database.list_collection_names().await? {
            let found = database.collection::<Document>(&name).find(doc! {}).await?;
            collections.insert(name, found.try_collect().await?);
        }
        for (table, _) in TABLES {
            tables.insert(table, items(environment, table).await?);
        }
        Ok(Self { collections, tables })
    }

    /// Restores the database. Data stored since the backup is lost.
    pub(super) async fn restore_database(&self, environment: &Environment) -> TestResult {
        let database = environment.database().await?;
        for name in database.list_collection_names().await? {
            let collection = database.collection::<Document>(&name);
            collection.delete_many(doc! {}).await?;
            let documents = self.collections.get(&name).map(Vec::as_slice).unwrap_or_default();
            if !documents.is_empty() {
                collection.insert_many(documents).await?;
            }
        }
        Ok(())
    }

    /// Restores the ledger and the table of processed messages.
    pub(super) async fn restore_tables(&self, environment: &Environment) -> TestResult {
        let client = aws_sdk_dynamodb::Client::new(&aws::config().await);
        for (table, key) in TABLES {
            let name = &environment.settings[table];
            for mut item in items(environment, table).await? {
                client
                    .delete_item()
                    .table_name(name)
                    .set_key(item.remove_entry(key).map(|key| [key].into()))
                    .send()
                    .await?;
            }
            for item in &self.tables[table] {
                client.put_item().table_name(name).set_item(Some(item.clone())).send().await?;
            }
        }
        Ok(())
    }
}

async fn items(environment: &Environment, table: &str) -> Result<Vec<Item>, Unexpected> {
    let client = aws_sdk_dynamodb::Client::new(&aws::config().await);
    let scan = client.scan().table_name(&environment.settings[table]).consistent_read(true);
    Ok(scan.into_paginator().items().send().collect::<Result<_, _>>().await?)
}
