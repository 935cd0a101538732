//! Data of earlier versions in MongoDB: this version reads them, and writes the format of the latest.

use std::sync::Arc;

use futures::TryStreamExt;
use mongo::collections;
use mongodb::bson::{Binary, Bson, DateTime, Document, doc, spec::BinarySubtype};
use serde_json::{Map, Value, json};
use testing::fixtures::{Release, documents, same};
use uuid::Uuid;

use super::{Scratch, TestResult};

/// The documents of each collection, in canonical extended JSON.
const STORED: &str = "mongo.json";
const DOCUMENTS: &str = "documents.json";

#[tokio::test]
async fn stored_data_of_all_versions_is_readable() -> TestResult {
    for release in Release::all() {
        let scratch = Scratch::new().await?;
        for (collection, stored) in release.json::<Map<String, Value>>(STORED) {
            let stored = stored.as_array().unwrap().iter().map(|document| match bson(document) {
                Bson::Document(document) => document,
                other => panic!("{collection}: {other}"),
            });
            scratch.collection(&collection).insert_many(stored).await?;
        }
        let facts: documents::Facts = release.json(DOCUMENTS);
        let (sagas, sessions) = (scratch.mongo.saga_outbox(), scratch.mongo.session_outbox());
        let ports =
            documents::Ports { store: Arc::new(scratch.mongo.clone()), sagas: &sagas, sessions: &sessions };
        let read = serde_json::to_value(documents::read(&ports, &facts).await?)?;
        same(DOCUMENTS, &read, &release.json(DOCUMENTS));
        scratch.end().await?;
    }
    Ok(())
}

#[tokio::test]
async fn stored_data_is_readable_by_previous_version() -> TestResult {
    let release = Release::latest();
    let scratch = Scratch::new().await?;
    let (sagas, sessions) = (scratch.mongo.saga_outbox(), scratch.mongo.session_outbox());
    let ports =
        documents::Ports { store: Arc::new(scratch.mongo.clone()), sagas: &sagas, sessions: &sessions };
    documents::write(&ports, &release.json(DOCUMENTS)).await?;
    let mut stored = Map::new();
    // Records of applications are not part of this test.
    for collection in collections::ALL.into_iter().filter(|name| *name != collections::RECORD) {
        let stored_in = scratch.collection(collection);
        let found = stored_in.find(doc! {}).sort(doc! { "_id": 1 }).await?;
        let found: Vec<Document> = found.try_collect().await?;
        stored
            .insert(collection.to_owned(), found.into_iter().map(|document| json(document.into())).collect());
    }
    for report in stored[collections::PROGRESS].as_array_mut().unwrap() {
        // Uses the server's clock, because the recorded documents must not expire during the test.
        assert!(report["ReportedAt"]["$date"].is_object(), "{report}");
        report["ReportedAt"] = json!({ "$date": { "$numberLong": "4102444860000" } });
    }
    release.check(STORED, &Value::Object(stored));
    scratch.end().await
}

fn json(value: Bson) -> Value {
    match value {
        Bson::Document(document) => {
            document.into_iter().map(|(name, value)| (name, json(value))).collect::<Map<_, _>>().into()
        }
        Bson::Array(values) => values.into_iter().map(json).collect(),
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes }) => {
            json!({ "$uuid": Uuid::from_slice(&bytes).unwrap() })
        }
        Bson::DateTime(at) => {
            json!({ "$date": { "$numberLong": at.timestamp_millis().to_string() } })
        }
        Bson::Timestamp(at) => json!({ "$timestamp": { "t": at.time, "i": at.increment } }),
        Bson::Int64(number) => json!({ "$numberLong": number.to_string() }),
        Bson::Int32(number) => json!({ "$numberInt": number.to_string() }),
        Bson::String(text) => text.into(),
        Bson::Boolean(truth) => truth.into(),
        Bson::Null => Value::Null,
        other => panic!("no form for {other}"),
    }
}

fn bson(value: &Value) -> Bson {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    match value {
        Value::Object(object) => match object.iter().next().map(|(name, value)| (name.as_str(), value)) {
            Some(("$uuid", id)) => {
                let bytes = text(id).parse::<Uuid>().unwrap().into_bytes().to_vec();
                Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes })
            }
            Some(("$date", at)) => DateTime::from_millis(text(&at["$numberLong"]).parse().unwrap()).into(),
            Some(("$numberLong", number)) => Bson::Int64(text(number).parse().unwrap()),
            Some(("$numberInt", number)) => Bson::Int32(text(number).parse().unwrap()),
            _ => object.iter().map(|(name, value)| (name.clone(), bson(value))).collect::<Document>().into(),
        },
        Value::Array(values) => values.iter().map(bson).collect(),
        Value::String(text) => text.clone().into(),
        Value::Bool(truth) => (*truth).into(),
        Value::Null => Bson::Null,
        Value::Number(number) => panic!("the number {number} says nothing of its size"),
    }
}
