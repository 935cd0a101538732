//! Creation of the indexes.

use std::fmt;

use futures::TryStreamExt;
use futures::future::try_join_all;
use jiff::SignedDuration;
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};

use crate::Mongo;
use crate::driver_error::{NAMESPACE_EXISTS, NAMESPACE_NOT_FOUND, is_code};
use crate::error::CallError;
use crate::indexes::{Index, OnDifference, Outcome, wanted};
use crate::names::collections;

/// Result of [`Mongo::ensure_indexes`] for one index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexReport {
    /// Collection, by its name in the database of the system.
    pub collection: String,
    /// `true` if the collection contains the saga documents.
    of_sagas: bool,
    /// Name of the index.
    pub name: &'static str,
    /// Outcome.
    pub outcome: Outcome,
}

impl IndexReport {
    /// Returns whether a conflicting index deletes saga documents earlier than `retention` after the end of the saga.
    pub fn deletes_sagas_before(&self, retention: SignedDuration) -> bool {
        let Outcome::Differs(found) = &self.outcome else { return false };
        let expiry = found.iter().filter_map(|index| index.get("expireAfterSeconds"));
        let mut seconds = expiry.filter_map(|seconds| match *seconds {
            Bson::Int32(seconds) => Some(f64::from(seconds)),
            Bson::Int64(seconds) => Some(seconds as f64),
            Bson::Double(seconds) => Some(seconds),
            _ => None,
        });
        self.of_sagas && seconds.any(|seconds| seconds < retention.as_secs_f64())
    }
}

impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}: ", self.collection, self.name)?;
        let list = |found: &[Document]| found.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match &self.outcome {
            Outcome::Present => f.write_str("present"),
            Outcome::Created => f.write_str("created"),
            Outcome::Differs(found) => write!(f, "differs: {}", list(found)),
            Outcome::Rebuilt(found) => write!(f, "rebuilt in place of {}", list(found)),
        }
    }
}

/// Result of [`Mongo::ensure_indexes`].
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// Results of all indexes.
    pub indexes: Vec<IndexReport>,
}

impl Migration {
    /// Returns the indexes that differ from their definition.
    pub fn differences(&self) -> impl Iterator<Item = &IndexReport> {
        self.indexes.iter().filter(|report| matches!(report.outcome, Outcome::Differs(_)))
    }
}

impl Mongo {
    /// Builds the missing indexes. It is idempotent, and concurrent calls are safe. It is cheap enough for a cold
    /// start: if all indexes exist, it only lists the indexes of each collection.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or denies the operation.
    pub async fn ensure_indexes(&self, on_difference: OnDifference) -> Result<Migration, StoreError> {
        let (wanted, collections) = self.wanted();
        let ensure = collections.iter().map(|collection| {
            let indexes: Vec<&Index> =
                wanted.iter().filter(|index| index.collection == *collection).collect();
            ensure(self, collection, indexes, on_difference)
        });
        let reports = try_join_all(ensure).await?;
        Ok(Migration { indexes: reports.into_iter().flatten().collect() })
    }
}

impl Mongo {
    /// Returns the indexes and the collections of the system.
    #[cfg_attr(
        not(feature = "search"),
        allow(unused_mut, reason = "only the search import has further ones")
    )]
    fn wanted(&self) -> (Vec<Index>, Vec<&'static str>) {
        let mut indexes = wanted(self.saga_retention(), self.outbox_retention());
        let mut all = collections::ENGINE.to_vec();
        #[cfg(feature = "search")]
        if self.system() == crate::names::SEARCH_IMPORT {
            indexes.extend(crate::search::indexes::wanted(self.saga_retention()));
            all = crate::search::names::collections::ALL.to_vec();
        }
        (indexes, all)
    }
}

/// Creates the indexes of a collection. Building an index may take long, so only the server limits its time.
async fn ensure(
    mongo: &Mongo,
    collection: &'static str,
    indexes: Vec<&Index>,
    on_difference: OnDifference,
) -> Result<Vec<IndexReport>, StoreError> {
    let of_sagas = collection == collections::SAGA;
    let collection = mongo.name_of(collection);
    let doing = |what: &str| format!("{what} the indexes of {collection}");
    let existing = mongo.call(doing("listing"), existing(mongo, &collection)).await?;
    let reports: Vec<IndexReport> = indexes
        .iter()
        .map(|index| IndexReport {
            collection: collection.clone(),
            of_sagas,
            name: index.name,
            outcome: index.outcome(&existing, on_difference),
        })
        .collect();
    drop_rivals(mongo, &collection, &reports).await.map_err(|error| error.while_doing(doing("dropping")))?;
    let missing: Vec<Document> = indexes
        .iter()
        .zip(&reports)
        .filter(|(_, report)| matches!(report.outcome, Outcome::Created | Outcome::Rebuilt(_)))
        .map(|(index, _)| index.specification())
        .collect();
    if indexes.is_empty() && existing.is_empty() {
        create_collection(mongo, &collection)
            .await
            .map_err(|error| error.while_doing(format!("creating {collection}")))?;
    }
    create(mongo, &collection, missing).await.map_err(|error| error.while_doing(doing("building")))?;
    Ok(reports)
}

async fn existing(mongo: &Mongo, collection: &str) -> Result<Vec<Document>, CallError> {
    match mongo.database().await?.run_cursor_command(doc! { "listIndexes": collection }).await {
        Ok(found) => Ok(found.try_collect().await?),
        Err(error) if is_code(&error, NAMESPACE_NOT_FOUND) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

async fn drop_rivals(mongo: &Mongo, collection: &str, reports: &[IndexReport]) -> Result<(), CallError> {
    let names: Vec<&str> = reports
        .iter()
        .filter_map(|report| match &report.outcome {
            Outcome::Rebuilt(rivals) => Some(rivals.iter().filter_map(|index| index.get_str("name").ok())),
            _ => None,
        })
        .flatten()
        .collect();
    if !names.is_empty() {
        run(mongo, doc! { "dropIndexes": collection, "index": names }).await?;
    }
    Ok(())
}

/// Creates a collection without indexes; the others are created with their first index. A transaction on several shards
/// could not create it.
async fn create_collection(mongo: &Mongo, collection: &str) -> Result<(), CallError> {
    match run(mongo, doc! { "create": collection }).await {
        Err(CallError::Driver(error)) if is_code(&error, NAMESPACE_EXISTS) => Ok(()),
        created => created,
    }
}

async fn create(mongo: &Mongo, collection: &str, missing: Vec<Document>) -> Result<(), CallError> {
    if missing.is_empty() {
        return Ok(());
    }
    run(mongo, doc! { "createIndexes": collection, "indexes": missing }).await
}

async fn run(mongo: &Mongo, mut command: Document) -> Result<(), CallError> {
    command.insert("writeConcern", doc! { "w": "majority" });
    let answer = mongo.database().await?.run_command(command).await?;
    match answer.get_document("writeConcernError") {
        Ok(error) => Err(CallError::WriteConcern {
            code: error.get_i32("code").unwrap_or_default(),
            message: error.get_str("errmsg").unwrap_or_default().to_owned(),
        }),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_that_deletes_sagas_early_is_detected() {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        let report = |of_sagas, seconds: Bson| {
            let found = doc! { "name": "old", "key": { "CompletedAt": 1 }, "expireAfterSeconds": seconds };
            let outcome = Outcome::Differs(vec![found]);
            IndexReport { collection: "orders_sagas".to_owned(), of_sagas, name: "ttl", outcome }
        };
        for seconds in [Bson::Int32(604_800), Bson::Int64(604_800), Bson::Double(604_800.0)] {
            let found = report(true, seconds.clone());
            assert!(found.deletes_sagas_before(days(14)) && !found.deletes_sagas_before(days(7)), "{found}");
            assert!(!report(false, seconds).deletes_sagas_before(days(14)));
        }
        let present = IndexReport { outcome: Outcome::Present, ..report(true, Bson::Int32(1)) };
        assert!(!present.deletes_sagas_before(days(14)));
    }
}
