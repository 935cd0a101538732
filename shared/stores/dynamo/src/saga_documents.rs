//! Saga documents: content and outbox in one item.

use async_trait::async_trait;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use outbox::{Owner, Settlement};
use saga::{Document, LoadResult, Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::Dynamo;
use crate::entries::Entries;
use crate::error::MalformedItem;
use crate::item::{self, Item, nanos, number, readable};
use crate::names::attributes::{CONTENT, KEEP_UNTIL, VERSION};
use crate::outboxes::{SAGA, key};
use crate::store::{CONCURRENT, make_all};
use crate::update::{Change, Knowledge};

fn version(stored: &Item) -> Result<u64, MalformedItem> {
    item::number_of(stored, VERSION)?.ok_or(MalformedItem(VERSION))
}

/// A document whose retention has passed counts as absent, even if TTL has not deleted it yet.
fn document(partition: PartitionKey, stored: Option<&Item>, now: Timestamp) -> LoadResult {
    let doing = format!("loading partition {partition}");
    let Some(stored) = stored else { return Ok(None) };
    if readable(item::has_expired(stored, now), &doing)? {
        return Ok(None);
    }
    Ok(Some(Document {
        partition,
        version: readable(version(stored), &doing)?,
        content: item::from_json(stored, CONTENT, &doing)?,
        outbox: readable(Entries::of(Some(stored)), &doing)?.readable(),
    }))
}

#[async_trait]
impl ReadDocuments for Dynamo {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        let key = |partition: &PartitionKey| key(Owner::Saga(*partition));
        let found = self.get_many(partitions.iter().map(key), "loading partitions").await?;
        Ok(partitions.iter().map(|partition| document(*partition, found.get(&key(partition)), now)).collect())
    }

    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        let doing = format!("loading partition {partition}");
        document(partition, self.get(&key(Owner::Saga(partition)), &doing).await?.as_ref(), now)
    }
}

#[async_trait]
impl WriteDocuments for Dynamo {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        let stored: Vec<_> = writes.iter().map(|write| self.persist_one(write, now)).collect();
        stream::iter(stored).buffered(CONCURRENT).try_collect().await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        let settled: Vec<_> =
            settlements.iter().map(|(id, some)| self.settle_one(Owner::Saga(*id), some)).collect();
        make_all(settled).await.map(drop)
    }
}

impl Dynamo {
    async fn persist_one(&self, write: &Persist, now: Timestamp) -> Result<PersistOutcome, StoreError> {
        let doing = format!("storing partition {}", write.partition);
        // A new document needs no read: the condition of the write finds an existing one.
        let known = if write.loaded.is_none() { Knowledge::Absent } else { Knowledge::Nothing };
        self.change_item(&key(Owner::Saga(write.partition)), known, &doing, |stored| {
            self.next(write, stored, now, &doing)
        })
        .await
    }

    fn next(
        &self,
        write: &Persist,
        stored: Option<&Item>,
        now: Timestamp,
        doing: &str,
    ) -> Result<Change<PersistOutcome>, StoreError> {
        let content = item::json(&write.content, doing)?;
        let found = readable(stored.map(version).transpose(), doing)?;
        // The content names its attempt, so this is the same write, repeated after its response was lost.
        if found == Some(write.version) && stored.and_then(|item| item.get(CONTENT)) == Some(&content) {
            return Ok(Change::Keep(PersistOutcome::Stored));
        }
        let has_expired = readable(stored.map(|item| item::has_expired(item, now)).transpose(), doing)?;
        let is_absent = found.is_none() || has_expired == Some(true);
        let holds = match write.loaded {
            None => is_absent,
            Some(loaded) => found == Some(loaded),
        };
        if !holds {
            return Ok(Change::Keep(PersistOutcome::Conflict));
        }
        let mut entries = readable(Entries::of(stored), doing)?;
        entries.replace(&write.cancel, &write.add, doing)?;
        let mut item = item::new(&key(Owner::Saga(write.partition)));
        item::set(&mut item, VERSION, number(write.version));
        item::set(&mut item, CONTENT, content);
        if let Some(ended_at) = write.content.ended_at {
            let until = ended_at.checked_add(self.settings.saga_retention).unwrap_or(Timestamp::MAX);
            item::set(&mut item, KEEP_UNTIL, nanos(until));
        }
        readable(entries.store(&mut item, SAGA, write.partition.as_uuid()), doing)?;
        Ok(Change::Write(item, PersistOutcome::Stored))
    }
}
