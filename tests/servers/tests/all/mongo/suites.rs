//! The contract suites with the system clock, and with profiled execution plans.

use std::collections::BTreeSet;

use std::sync::Arc;

use backend::SystemHost;
use contracts::failures::StoredValue;
use contracts::sample::Samples;
use futures::TryStreamExt;
use futures::future::BoxFuture;
use imports::StudyRef;
use messages::{MessageId, PartitionKey};
use mongo::collections;
use mongodb::bson::{Binary, Document, doc, spec::BinarySubtype};
use saga::Views;

use super::{Scratch, TestResult};

async fn sagas_on(scratch: &Scratch) -> TestResult {
    let (store, sweep, retention) =
        (&scratch.mongo, scratch.mongo.saga_outbox(), scratch.settings.saga_retention);
    let sagas = scratch.collection(collections::SAGA);
    let damage = |partition: PartitionKey| -> BoxFuture<'_, TestResult> {
        let bytes = partition.as_uuid().as_bytes().to_vec();
        let id = doc! { "_id": Binary { subtype: BinarySubtype::Uuid, bytes } };
        let sagas = sagas.clone();
        Box::pin(async move {
            let damaged = sagas.update_one(id, doc! { "$set": { "Content": { "status": "lost" } } }).await?;
            assert_eq!(damaged.modified_count, 1);
            Ok(())
        })
    };
    let damage_entry = |partition: PartitionKey, entry: MessageId| -> BoxFuture<'_, TestResult> {
        let binary = |id: uuid::Uuid| Binary { subtype: BinarySubtype::Uuid, bytes: id.as_bytes().to_vec() };
        let place = doc! { "_id": binary(partition.as_uuid()), "Outbox.id": binary(entry.as_uuid()) };
        let sagas = sagas.clone();
        Box::pin(async move {
            let later = doc! { "$set": { "Outbox.$.kind": { "kind": "webhook", "to": "x" } } };
            assert_eq!(sagas.update_one(place, later).await?.modified_count, 1);
            Ok(())
        })
    };
    let ports = contracts::documents::Ports {
        read: store,
        write: store,
        sweep: &sweep,
        host: &SystemHost,
        retention,
        damage: Some(&damage),
        damage_entry: Some(&damage_entry),
    };
    contracts::documents::all(&ports).await
}

async fn views_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    let views = Views {
        saga: Samples,
        written: Arc::new(store.clone()),
        documents: Arc::new(store.clone()),
        host: Arc::new(SystemHost),
    };
    let ports = contracts::views::Ports { views: &views, write: store, documents: store, host: &SystemHost };
    contracts::views::all(&ports).await
}

async fn progress_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    testing::progress::all(&testing::progress::Ports { report: store, read: store, host: &SystemHost }).await
}

async fn reading_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    testing::parse_attempts::all(&testing::parse_attempts::Ports { track: store, host: &SystemHost }).await
}

async fn studies_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    let damage = |study: StudyRef| -> BoxFuture<'_, TestResult> {
        let bytes = study.id().as_uuid().as_bytes().to_vec();
        let id = doc! { "_id": Binary { subtype: BinarySubtype::Uuid, bytes } };
        let collection = scratch.collection(collections::STUDY);
        Box::pin(async move {
            let damaged = collection.update_one(id, doc! { "$set": { "Reference": { "title": 7 } } }).await?;
            assert_eq!(damaged.modified_count, 1);
            Ok(())
        })
    };
    testing::studies::all(&testing::studies::Ports {
        read: store,
        write: store,
        compare: store,
        track: store,
        host: &SystemHost,
        damage: &damage,
    })
    .await
}

async fn words_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    testing::words::all(&testing::words::Ports {
        index: store,
        read: store,
        write: store,
        track: store,
        host: &SystemHost,
    })
    .await
}

async fn sessions_on(scratch: &Scratch) -> TestResult {
    let (store, sweep) = (&scratch.mongo, scratch.mongo.session_outbox());
    let ports = contracts::sessions::Ports::of(store, &sweep, &SystemHost);
    contracts::sessions::all(&ports).await
}

async fn failures_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    let damage = |stored: StoredValue| -> BoxFuture<'_, TestResult> {
        let (collection, id, field) = match stored {
            StoredValue::Failure(id) => (collections::FAILURE, id.as_uuid(), "Failure"),
            StoredValue::Operation(id) => (collections::OPERATION, id.as_uuid(), "Operation"),
        };
        let bytes = id.as_bytes().to_vec();
        let id = doc! { "_id": Binary { subtype: BinarySubtype::Uuid, bytes } };
        let collection = scratch.collection(collection);
        Box::pin(async move {
            let damaged = collection.update_one(id, doc! { "$set": { field: { "state": "lost" } } }).await?;
            assert_eq!(damaged.modified_count, 1);
            Ok(())
        })
    };
    contracts::failures::all(&contracts::failures::Ports { store, host: &SystemHost, damage: &damage }).await
}

async fn history_on(scratch: &Scratch) -> TestResult {
    let store = &scratch.mongo;
    contracts::history::all(&contracts::history::Ports { store, host: &SystemHost }).await
}

#[tokio::test]
async fn history() -> TestResult {
    let scratch = Scratch::new().await?;
    history_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn failures() -> TestResult {
    let scratch = Scratch::new().await?;
    failures_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn sagas() -> TestResult {
    let scratch = Scratch::new().await?;
    sagas_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn views() -> TestResult {
    let scratch = Scratch::new().await?;
    views_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn progress() -> TestResult {
    let scratch = Scratch::new().await?;
    progress_on(&scratch).await?;
    reading_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn studies() -> TestResult {
    let scratch = Scratch::new().await?;
    studies_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn words() -> TestResult {
    let scratch = Scratch::new().await?;
    words_on(&scratch).await?;
    scratch.end().await
}

#[tokio::test]
async fn sessions() -> TestResult {
    let scratch = Scratch::new().await?;
    sessions_on(&scratch).await?;
    scratch.end().await
}

/// Checks the actual execution of every operation of every suite, not the planned one.
#[tokio::test]
async fn no_port_call_scans_whole_collection() -> TestResult {
    let scratch = Scratch::new().await?;
    scratch.profile().await?;
    sagas_on(&scratch).await?;
    views_on(&scratch).await?;
    progress_on(&scratch).await?;
    reading_on(&scratch).await?;
    studies_on(&scratch).await?;
    words_on(&scratch).await?;
    sessions_on(&scratch).await?;
    failures_on(&scratch).await?;
    history_on(&scratch).await?;
    scratch.database.run_command(doc! { "profile": 0 }).await?;
    let ours = doc! { "ns": { "$regex": r"\.pm" }, "appName": &scratch.app_name };
    let operations: Vec<Document> =
        scratch.collection("system.profile").find(ours).await?.try_collect().await?;
    let planned: Vec<&Document> =
        operations.iter().filter(|operation| operation.contains_key("planSummary")).collect();
    // Insertions have no plan; all other operations of every collection are profiled.
    let seen: BTreeSet<&str> =
        planned.iter().filter_map(|it| it.get_str("ns").ok()?.split('.').nth(1)).collect();
    assert_eq!(seen, BTreeSet::from(collections::ALL));
    assert!(planned.len() > 200, "the profile has only {} plans", planned.len());
    for operation in planned {
        let plan = operation.get_str("planSummary")?;
        // A missing collection, or a lookup by id alone, needs no index scan.
        let by_index = plan.starts_with("IXSCAN") || plan.starts_with("COUNT_SCAN");
        let good = by_index || plan == "IDHACK" || plan == "EOF";
        assert!(good, "{plan}: {operation}");
    }
    scratch.end().await
}

/// A single server does not show the difference, so the test checks the commands.
#[tokio::test]
async fn reads_and_writes_use_majority_concern() -> TestResult {
    let scratch = Scratch::new().await?;
    scratch.sent();
    sagas_on(&scratch).await?;
    views_on(&scratch).await?;
    progress_on(&scratch).await?;
    reading_on(&scratch).await?;
    studies_on(&scratch).await?;
    words_on(&scratch).await?;
    sessions_on(&scratch).await?;
    failures_on(&scratch).await?;
    history_on(&scratch).await?;
    let mut seen = BTreeSet::new();
    for command in scratch.sent() {
        let name = command.keys().next().unwrap().as_str();
        // In a transaction, the commit has the write concern of all writes.
        if command.contains_key("autocommit") && name != "commitTransaction" {
            continue;
        }
        match name {
            "insert" | "update" | "delete" | "findAndModify" | "commitTransaction" => {
                let concern = command.get_document("writeConcern").unwrap_or_else(|_| panic!("{command}"));
                assert_eq!(concern.get_str("w")?, "majority", "{command}");
            }
            // Counting is an aggregation.
            "find" | "aggregate" => {
                let level = command.get_document("readConcern").unwrap_or_else(|_| panic!("{command}"));
                assert!(["majority", "linearizable"].contains(&level.get_str("level")?), "{command}");
            }
            // These commands continue a `find`, end a transaction without writes, or read no data.
            "getMore" | "abortTransaction" | "explain" => {}
            other => panic!("{other} is not checked"),
        }
        seen.insert(name.to_owned());
    }
    assert!(seen.len() >= 6, "{seen:?}");
    scratch.end().await
}
