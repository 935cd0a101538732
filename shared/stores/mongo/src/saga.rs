//! Saga documents.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use mongodb::bson::{Bson, Document as Bsons, doc};
use mongodb::options::ReadConcern;
use outbox::Settlement;
use saga::{Loaded, Persist, Persisted, ReadDocuments, WriteDocuments};

use crate::Mongo;
use crate::document::{Written, decode, has_expired, written};
use crate::fault::Fault;
use crate::names::{collections, record};
use crate::pipeline::{self, Statement};
use crate::value::{Key, expired_until, some_of, uuid};

#[async_trait]
impl ReadDocuments for Mongo {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<Loaded>, StoreError> {
        let doing = format!("loading partition {}", some_of(partitions.iter()));
        self.call(doing, load(self, partitions, now)).await
    }

    /// Linearizable: a primary that was deposed and does not know it yet answers majority reads from the past, but
    /// cannot answer this one. It is promised for one document at a time.
    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> Loaded {
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

/// What is stored is read one by one, so that what is wrong with one document is no other's business.
async fn load(mongo: &Mongo, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<Loaded>, Fault> {
    let expired_until = expired_until(now, mongo.saga_retention());
    let stored = find(mongo, partitions, doc! {}, ReadConcern::majority()).await?;
    let stored: BTreeMap<PartitionKey, Bsons> = stored
        .into_iter()
        .filter(|stored| !has_expired(stored, expired_until))
        .filter_map(|stored| Some((PartitionKey::from_uuid(uuid(stored.get(record::ID)?)?), stored)))
        .collect();
    let read = |partition: &PartitionKey| {
        let decoded = stored.get(partition).map(decode).transpose();
        decoded.map_err(|fault| fault.while_doing(format!("loading partition {partition}")))
    };
    Ok(partitions.iter().map(read).collect())
}

/// The documents of partitions, in one call: the limit tells the server that there is nothing more to ask for, so
/// that it keeps no cursor open.
async fn find(
    mongo: &Mongo,
    partitions: &[PartitionKey],
    projection: Bsons,
    concern: ReadConcern,
) -> Result<Vec<Bsons>, Fault> {
    let ids: Vec<Bson> = partitions.iter().collect::<BTreeSet<_>>().into_iter().map(Key::key).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let count = u32::try_from(ids.len()).unwrap_or(u32::MAX);
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
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
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
        let work = async { self.update(collections::SAGA, statements).await?.expect_none_taken() };
        self.call(doing, work).await
    }
}

async fn persist(mongo: &Mongo, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, Fault> {
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
        look_up(mongo, writes, outcomes).await
    } else {
        Ok(outcomes.into_iter().flatten().collect())
    }
}

/// Lets the documents say what became of the writes that the answer leaves open.
///
/// # Errors
/// When one of them cannot tell. Whoever asked then has to read it once more; the others tell the same again.
async fn look_up(
    mongo: &Mongo,
    writes: &[Persist],
    outcomes: Vec<Option<Persisted>>,
) -> Result<Vec<Persisted>, Fault> {
    let open = writes.iter().zip(&outcomes).filter(|(_, outcome)| outcome.is_none());
    let partitions: Vec<PartitionKey> = open.map(|(write, _)| write.partition).collect();
    let projection = doc! { record::VERSION: 1, format!("{}.attempt", record::CONTENT): 1 };
    let stored = find(mongo, &partitions, projection, ReadConcern::majority()).await?;
    let written: BTreeMap<PartitionKey, Written> =
        stored.iter().filter_map(|stored| written(stored).ok()).collect();
    let told = |(write, known): (&Persist, Option<Persisted>)| {
        let told = known.or_else(|| outcome(write, written.get(&write.partition)));
        told.ok_or(Fault::Undecided(write.partition))
    };
    writes.iter().zip(outcomes).map(told).collect()
}

/// What a document says of a write that has ended and is confirmed; nothing when the document is of an earlier version
/// than the write's own, or absent. A primary that was deposed and does not know it yet answers majority reads so.
///
/// A later document by another author is one that this write did not make, or one that somebody has built upon it
/// already. Taking the latter for a conflict does no harm: the new attempt finds its message among the processed ones;
/// and whoever wrote in between has taken the partition over, so that nothing this attempt gives back counts. (Of two
/// writes of one partition in one call the earlier is taken for a conflict likewise; the runner writes a partition once
/// in a call.) A later document that names no author is one that this write did not make either.
fn outcome(write: &Persist, written: Option<&Written>) -> Option<Persisted> {
    let Written { version, attempt } = written?;
    match *attempt == Some(write.content.attempt) {
        true => Some(Persisted::Stored),
        false => write.loaded.is_none_or(|loaded| *version > loaded).then_some(Persisted::Conflict),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::{ManualHost, sample};

    #[test]
    fn only_later_version_proves_lost_write() {
        let host = ManualHost::seeded(1);
        let write = sample::persist(sample::partition(&host), Some(4), sample::content(&host, "mine"));
        let (mine, other) = (Some(write.content.attempt), Some(sample::attempt(&host)));
        let told = |version, attempt| outcome(&write, Some(&Written { version, attempt }));
        assert_eq!(told(5, mine), Some(Persisted::Stored));
        for by in [other, None] {
            assert_eq!(told(5, by), Some(Persisted::Conflict));
            assert_eq!(told(9, by), Some(Persisted::Conflict));
            assert_eq!(told(4, by), None, "what was loaded may have been read from the past");
            assert_eq!(told(1, by), None);
        }
        assert_eq!(outcome(&write, None), None);
    }
}
