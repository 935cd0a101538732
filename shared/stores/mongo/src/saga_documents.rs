//! Saga documents.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::store::some_of;
use messages::{PartitionKey, StoreError};
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::ReadConcern;
use outbox::Settlement;
use saga::{LoadResult, Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::Mongo;
use crate::document::{StoredVersion, decode, has_expired, stored_version};
use crate::error::CallError;
use crate::names::{collections, record};
use crate::pipeline::{self, Statement};
use crate::value::{Key, batch_size, expired_until, uuid};

#[async_trait]
impl ReadDocuments for Mongo {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        let doing = format!("loading partition {}", some_of(partitions.iter()));
        self.call(doing, load(self, partitions, now)).await
    }

    /// The read is linearizable, because a deposed primary that does not know it yet answers majority reads with old
    /// data. MongoDB guarantees this for reads of one document.
    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        let expired_until = expired_until(now, self.saga_retention());
        let read = async {
            let stored = self
                .collection(collections::SAGA)
                .await?
                .find_one(doc! { record::ID: partition.key() })
                .read_concern(ReadConcern::linearizable())
                .await?;
            let stored = stored.filter(|stored| !has_expired(stored, expired_until));
            stored.as_ref().map(decode).transpose()
        };
        self.call(format!("loading the latest of partition {partition}"), read).await
    }
}

/// Loads and decodes each document separately, so that an unreadable document does not affect the others.
async fn load(
    mongo: &Mongo,
    partitions: &[PartitionKey],
    now: Timestamp,
) -> Result<Vec<LoadResult>, CallError> {
    let expired_until = expired_until(now, mongo.saga_retention());
    let stored = find(mongo, partitions, doc! {}, ReadConcern::majority()).await?;
    let stored: BTreeMap<PartitionKey, Bsons> = stored
        .into_iter()
        .filter(|stored| !has_expired(stored, expired_until))
        .filter_map(|stored| Some((PartitionKey::from_uuid(uuid(stored.get(record::ID)?)?), stored)))
        .collect();
    let read = |partition: &PartitionKey| {
        let decoded = stored.get(partition).map(decode).transpose();
        decoded.map_err(|error| mongo.error(error, format!("loading partition {partition}")))
    };
    Ok(partitions.iter().map(read).collect())
}

/// Finds the documents of partitions in one call. With the limit the server knows that no further batch follows and
/// keeps no cursor open.
async fn find(
    mongo: &Mongo,
    partitions: &[PartitionKey],
    projection: Bsons,
    concern: ReadConcern,
) -> Result<Vec<Bsons>, CallError> {
    let ids: Vec<Bson> = partitions.iter().collect::<BTreeSet<_>>().into_iter().map(Key::key).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let count = batch_size(ids.len());
    let found = mongo
        .collection(collections::SAGA)
        .await?
        .find(doc! { record::ID: { "$in": ids } })
        .projection(projection)
        .limit(count.into())
        .batch_size(count)
        .read_concern(concern)
        .await?;
    Ok(found.try_collect().await?)
}

#[async_trait]
impl WriteDocuments for Mongo {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        let doing = format!("storing partition {}", some_of(writes.iter().map(|write| write.partition)));
        self.call(doing, persist(self, writes, now)).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        let doing =
            format!("settling the outbox of partition {}", some_of(settlements.iter().map(|(id, _)| id)));
        let statements: Vec<Statement> = settlements
            .iter()
            .filter(|(_, some)| !some.is_empty())
            .map(|(partition, some)| pipeline::settle(partition.key(), some))
            .collect();
        if statements.is_empty() {
            return Ok(());
        }
        let work = async { self.update(collections::SAGA, statements).await?.expect_no_conflict() };
        self.call(doing, work).await
    }
}

async fn persist(
    mongo: &Mongo,
    writes: &[Persist],
    now: Timestamp,
) -> Result<Vec<PersistOutcome>, CallError> {
    if writes.is_empty() {
        return Ok(Vec::new());
    }
    let statements = writes
        .iter()
        .map(|write| pipeline::persist(write, now, mongo.saga_retention()))
        .collect::<Result<Vec<_>, _>>()?;
    let inserts: Vec<bool> = statements.iter().map(|statement| statement.upsert).collect();
    let outcomes = mongo.update(collections::SAGA, statements).await?.outcomes(&inserts);
    if outcomes.contains(&None) {
        resolve_unknown_outcomes(mongo, writes, outcomes).await
    } else {
        Ok(outcomes.into_iter().flatten().collect())
    }
}

/// Determines from the stored documents the outcomes that the reply does not contain.
///
/// # Errors
/// Returns an error if a document does not show the outcome. The caller then has to load the documents again.
async fn resolve_unknown_outcomes(
    mongo: &Mongo,
    writes: &[Persist],
    outcomes: Vec<Option<PersistOutcome>>,
) -> Result<Vec<PersistOutcome>, CallError> {
    let open = writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_none());
    let partitions: Vec<PartitionKey> = open.map(|(write, _)| write.partition).collect();
    let projection = doc! { record::VERSION: 1, format!("{}.attempt", record::CONTENT): 1 };
    let stored = find(mongo, &partitions, projection, ReadConcern::majority()).await?;
    let stored: BTreeMap<PartitionKey, StoredVersion> =
        stored.iter().filter_map(|stored| stored_version(stored).ok()).collect();
    let resolve = |(write, known): (&Persist, Option<PersistOutcome>)| {
        let outcome = known.or_else(|| outcome(write, stored.get(&write.partition)));
        outcome.ok_or(CallError::UnknownOutcome(write.partition))
    };
    writes.iter().zip(outcomes).map(resolve).collect()
}

/// Returns the outcome of a completed and confirmed write, if the stored document shows it. Returns `None` if the
/// document is absent or older than the write, which a deposed primary that does not know it yet may return for a
/// majority read.
///
/// A later version by another attempt means that this write failed, or that another attempt has already replaced it.
/// Reporting the second case as a conflict is safe: the next attempt finds its message among the processed ones, and
/// the other attempt has taken over the partition, so this attempt's release of its claim has no effect. (If one call
/// contained two writes of one partition, the first would also be reported as a conflict. The runner writes each
/// partition once per call.) A later version without a readable attempt also means that this write failed.
fn outcome(write: &Persist, stored: Option<&StoredVersion>) -> Option<PersistOutcome> {
    let StoredVersion { version, attempt } = stored?;
    match *attempt == Some(write.content.attempt) {
        true => Some(PersistOutcome::Stored),
        false => write.loaded.is_none_or(|loaded| *version > loaded).then_some(PersistOutcome::Conflict),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contracts::{ManualHost, sample};

    #[test]
    fn only_later_version_proves_lost_write() {
        let host = ManualHost::seeded(1);
        let write = sample::persist(sample::partition(&host), Some(4), sample::content(&host, "mine"));
        let (mine, other) = (Some(write.content.attempt), Some(sample::attempt(&host)));
        let resolved = |version, attempt| outcome(&write, Some(&StoredVersion { version, attempt }));
        assert_eq!(resolved(5, mine), Some(PersistOutcome::Stored));
        for by in [other, None] {
            assert_eq!(resolved(5, by), Some(PersistOutcome::Conflict));
            assert_eq!(resolved(9, by), Some(PersistOutcome::Conflict));
            assert_eq!(resolved(4, by), None, "a majority read may return old data");
            assert_eq!(resolved(1, by), None);
        }
        assert_eq!(outcome(&write, None), None);
    }
}
