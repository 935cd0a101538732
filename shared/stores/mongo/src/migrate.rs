//! Bringing a database up to the indexes it should have.

use std::fmt;

use futures::TryStreamExt;
use futures::future::try_join_all;
use jiff::SignedDuration;
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};

use crate::Mongo;
use crate::fault::{Fault, NAMESPACE_EXISTS, NAMESPACE_NOT_FOUND, is_code};
use crate::indexes::{Index, wanted};
use crate::names::collections;

/// What to do with an index that exists with other options than it should have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDifference {
    /// Leave it and report it: a rebuild of a large index is for an operator to decide.
    Report,
    /// Drop it and build the right one.
    Rebuild,
}

/// What became of an index.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It was there.
    Present,
    /// It was missing and is built.
    Created,
    /// These are there in its place, and stay.
    Differs(Vec<Document>),
    /// These were there in its place; now it is.
    Rebuilt(Vec<Document>),
}

/// One index after [`Mongo::ensure_indexes`].
#[derive(Debug, Clone, PartialEq)]
pub struct IndexReport {
    /// Its collection.
    pub collection: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What became of it.
    pub outcome: Outcome,
}

impl IndexReport {
    /// Whether what is in its place deletes documents of sagas sooner than `retention` after their end.
    pub fn deletes_sagas_before(&self, retention: SignedDuration) -> bool {
        let Outcome::Differs(found) = &self.outcome else { return false };
        let expiry = found.iter().filter_map(|index| index.get("expireAfterSeconds"));
        let mut seconds = expiry.filter_map(|seconds| match *seconds {
            Bson::Int32(seconds) => Some(f64::from(seconds)),
            Bson::Int64(seconds) => Some(seconds as f64),
            Bson::Double(seconds) => Some(seconds),
            _ => None,
        });
        self.collection == collections::SAGA && seconds.any(|seconds| seconds < retention.as_secs_f64())
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

/// What [`Mongo::ensure_indexes`] found and did.
#[derive(Debug, Clone, PartialEq)]
pub struct Migration {
    /// Each index.
    pub indexes: Vec<IndexReport>,
}

impl Migration {
    /// The indexes that are not as they should be.
    pub fn differences(&self) -> impl Iterator<Item = &IndexReport> {
        self.indexes.iter().filter(|report| matches!(report.outcome, Outcome::Differs(_)))
    }
}

impl Mongo {
    /// Builds the indexes that are missing. Repeating it, or running it from many places at once, changes nothing
    /// more; it is cheap enough for a cold start, where it asks for the indexes of each collection and no more.
    ///
    /// # Errors
    /// When the store does not answer, or forbids it.
    pub async fn ensure_indexes(&self, on_difference: OnDifference) -> Result<Migration, StoreError> {
        let wanted = wanted(self.saga_retention(), self.outbox_retention());
        let ensure = collections::ALL.iter().map(|collection| {
            let indexes: Vec<&Index> =
                wanted.iter().filter(|index| index.collection == *collection).collect();
            ensure(self, collection, indexes, on_difference)
        });
        let reports = try_join_all(ensure).await?;
        Ok(Migration { indexes: reports.into_iter().flatten().collect() })
    }
}

/// No limit of time but the server's own: building an index may take long.
async fn ensure(
    mongo: &Mongo,
    collection: &'static str,
    indexes: Vec<&Index>,
    on_difference: OnDifference,
) -> Result<Vec<IndexReport>, StoreError> {
    let doing = |what: &str| format!("{what} the indexes of {collection}");
    let existing = mongo.call(doing("listing"), existing(mongo, collection)).await?;
    let reports: Vec<IndexReport> = indexes
        .iter()
        .map(|index| IndexReport {
            collection,
            name: index.name,
            outcome: index.outcome(&existing, on_difference),
        })
        .collect();
    drop_rivals(mongo, collection, &reports).await.map_err(|fault| fault.while_doing(doing("dropping")))?;
    let missing: Vec<Document> = indexes
        .iter()
        .zip(&reports)
        .filter(|(_, report)| matches!(report.outcome, Outcome::Created | Outcome::Rebuilt(_)))
        .map(|(index, _)| index.specification())
        .collect();
    if indexes.is_empty() && existing.is_empty() {
        create_collection(mongo, collection)
            .await
            .map_err(|fault| fault.while_doing(format!("creating {collection}")))?;
    }
    create(mongo, collection, missing).await.map_err(|fault| fault.while_doing(doing("building")))?;
    Ok(reports)
}

async fn existing(mongo: &Mongo, collection: &str) -> Result<Vec<Document>, Fault> {
    match mongo.database().await?.run_cursor_command(doc! { "listIndexes": collection }).await {
        Ok(found) => Ok(found.try_collect().await?),
        Err(error) if is_code(&error, NAMESPACE_NOT_FOUND) => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

async fn drop_rivals(mongo: &Mongo, collection: &str, reports: &[IndexReport]) -> Result<(), Fault> {
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

/// A collection comes into being with its first index. One without any is created here, since a transaction that
/// reaches several shards cannot create it.
async fn create_collection(mongo: &Mongo, collection: &str) -> Result<(), Fault> {
    match run(mongo, doc! { "create": collection }).await {
        Err(Fault::Driver(error)) if is_code(&error, NAMESPACE_EXISTS) => Ok(()),
        created => created,
    }
}

async fn create(mongo: &Mongo, collection: &str, missing: Vec<Document>) -> Result<(), Fault> {
    if missing.is_empty() {
        return Ok(());
    }
    run(mongo, doc! { "createIndexes": collection, "indexes": missing }).await
}

async fn run(mongo: &Mongo, mut command: Document) -> Result<(), Fault> {
    command.insert("writeConcern", doc! { "w": "majority" });
    let answer = mongo.database().await?.run_command(command).await?;
    match answer.get_document("writeConcernError") {
        Ok(error) => Err(Fault::WriteConcern {
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
    fn an_index_that_deletes_sagas_too_early_is_told_from_one_that_does_not() {
        let days = |days: i64| SignedDuration::from_hours(24 * days);
        let report = |collection, seconds: Bson| {
            let found = doc! { "name": "old", "key": { "CompletedAt": 1 }, "expireAfterSeconds": seconds };
            IndexReport { collection, name: "ttl", outcome: Outcome::Differs(vec![found]) }
        };
        for seconds in [Bson::Int32(604_800), Bson::Int64(604_800), Bson::Double(604_800.0)] {
            let found = report(collections::SAGA, seconds.clone());
            assert!(found.deletes_sagas_before(days(14)) && !found.deletes_sagas_before(days(7)), "{found}");
            assert!(!report(collections::PROGRESS, seconds).deletes_sagas_before(days(14)));
        }
        let present = IndexReport { collection: collections::SAGA, name: "ttl", outcome: Outcome::Present };
        assert!(!present.deletes_sagas_before(days(14)));
    }
}
