//! Saga documents: the content as JSON, and the outbox in separate rows. The partition's column is `search_id`, as in
//! every table.
//!
//! Loaded documents are on the disk. A load waits only for writes of its own documents, and there are none for a
//! partition that the worker has claimed.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::store::some_of;
use messages::{MessageId, PartitionKey, StoreError};
use outbox::{Entry, Owner, Settlement};
use rusqlite::{Connection, OptionalExtension, named_params, params};
use saga::{Document, LoadResult, Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::{Call, Phase};
use crate::value::{from_json, int, json, later, nanos, uint};
use crate::work::Durability;

#[async_trait]
impl ReadDocuments for Store {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        let doing = format!("loading partition {}", some_of(partitions.iter()));
        let partitions = partitions.to_vec();
        let wanted = partitions.clone();
        let work = move |db: &Connection| wanted.iter().map(|partition| load(db, *partition, now)).collect();
        self.step(Call::SagaLoad, Phase::Before).await;
        let mut loaded = self.threads().read_and(Durability::Committed, doing.clone(), work).await;
        if self.writes_in_progress().any_of(&partitions)
            && let Err(error) = self.threads().read(doing, |_| Ok(())).await
        {
            loaded = Err(error);
        }
        self.step(Call::SagaLoad, Phase::After).await;
        loaded
    }

    /// Loads as usual: there is one database file, and every reader sees the last commit.
    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        self.load(&[partition], now).await?.pop().unwrap_or(Ok(None))
    }
}

/// An error of the database fails the call; a stored document that cannot be read fails only its partition.
fn load(db: &Connection, partition: PartitionKey, now: Timestamp) -> Result<LoadResult, Fault> {
    match document(db, partition, now) {
        Ok(document) => Ok(Ok(document)),
        Err(fault) if fault.is_of_value() => {
            Ok(Err(fault.while_doing(format!("loading partition {partition}"))))
        }
        Err(fault) => Err(fault),
    }
}

fn document(db: &Connection, partition: PartitionKey, now: Timestamp) -> Result<Option<Document>, Fault> {
    let stored = db
        .prepare_cached(
            "SELECT version, content FROM saga
             WHERE search_id = ?1 AND (expires_at IS NULL OR expires_at > ?2)",
        )?
        .query_row(params![partition.to_string(), nanos(now)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    let Some((version, content)) = stored else { return Ok(None) };
    let outbox = crate::outbox::entries(db, Owner::Saga(partition))?;
    Ok(Some(Document { partition, version: uint(version), content: from_json(&content)?, outbox }))
}

/// A write, encoded before the writing thread takes it.
struct Row {
    partition: PartitionKey,
    loaded: Option<u64>,
    version: u64,
    content: String,
    completed_at: Option<i64>,
    expires_at: Option<i64>,
    add: Vec<Entry>,
    cancel: Vec<MessageId>,
}

impl Store {
    fn row(&self, write: &Persist) -> Result<Row, StoreError> {
        let ended_at = write.content.ended_at;
        let retention = self.settings().saga_retention.unsigned_abs();
        Ok(Row {
            partition: write.partition,
            loaded: write.loaded,
            version: write.version,
            content: json(&write.content)
                .map_err(|fault| fault.while_doing(format!("encoding partition {}", write.partition)))?,
            completed_at: ended_at.map(nanos),
            expires_at: ended_at.map(|at| nanos(later(at, retention))),
            add: write.add.clone(),
            cancel: write.cancel.clone(),
        })
    }
}

#[async_trait]
impl WriteDocuments for Store {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        let doing = format!("storing partition {}", some_of(writes.iter().map(|write| write.partition)));
        let rows = writes.iter().map(|write| self.row(write)).collect::<Result<Vec<_>, _>>()?;
        let under_way = self.writes_in_progress().begin(writes.iter().map(|write| write.partition).collect());
        let work = move |db: &Connection| {
            let stored: Result<Vec<_>, _> = rows.iter().map(|row| persist(db, row, now)).collect();
            // The caller may have stopped waiting; the write is in progress until it is on the disk.
            Ok((stored?, under_way))
        };
        self.change(Call::SagaPersist, doing, work).await.map(|(stored, _)| stored)
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        let doing =
            format!("settling the outbox of partition {}", some_of(settlements.iter().map(|(id, _)| id)));
        let settlements = settlements.to_vec();
        let work = move |db: &Connection| {
            settlements.iter().try_for_each(|(id, some)| crate::outbox::settle(db, Owner::Saga(*id), some))
        };
        self.change_in_passing(Call::SagaSettle, doing, work).await
    }
}

/// A document whose retention has passed counts as absent, so a first write replaces it. The entries of its outbox
/// stay: an effect that is pending or exhausted is never dropped.
const INSERT: &str = "INSERT INTO saga (search_id, version, content, completed_at, expires_at)
    VALUES (:partition, :version, :content, :completed_at, :expires_at)
    ON CONFLICT (search_id) DO UPDATE SET version = excluded.version, content = excluded.content,
        completed_at = excluded.completed_at, expires_at = excluded.expires_at
    WHERE saga.expires_at <= :now";

const UPDATE: &str = "UPDATE saga SET version = :version, content = :content,
    completed_at = :completed_at, expires_at = :expires_at
    WHERE search_id = :partition AND version = :loaded";

fn persist(db: &Connection, row: &Row, now: Timestamp) -> Result<PersistOutcome, Fault> {
    let partition = row.partition.to_string();
    let changed = match row.loaded {
        None => db.prepare_cached(INSERT)?.execute(named_params! {
            ":partition": partition, ":version": int(row.version), ":content": row.content,
            ":completed_at": row.completed_at, ":expires_at": row.expires_at, ":now": nanos(now),
        })?,
        Some(loaded) => db.prepare_cached(UPDATE)?.execute(named_params! {
            ":partition": partition, ":version": int(row.version), ":content": row.content,
            ":completed_at": row.completed_at, ":expires_at": row.expires_at, ":loaded": int(loaded),
        })?,
    };
    if changed == 0 {
        return Ok(PersistOutcome::Conflict);
    }
    let owner = Owner::Saga(row.partition);
    crate::outbox::cancel(db, owner, &row.cancel)?;
    crate::outbox::add(db, owner, &row.add)?;
    Ok(PersistOutcome::Stored)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use std::sync::Arc;

    use super::*;

    #[test]
    fn document_is_in_progress_until_last_write_ends() {
        let writes = Arc::new(crate::writes_in_progress::WritesInProgress::default());
        let [one, other] = [1, 2].map(|n| PartitionKey::from_uuid(Uuid::from_u128(n)));
        let (first, second) = (writes.begin(vec![one, other]), writes.begin(vec![one]));
        assert!(writes.any_of(&[one]) && writes.any_of(&[other]));
        drop(first);
        assert!(writes.any_of(&[other, one]) && !writes.any_of(&[other]));
        drop(second);
        assert!(!writes.any_of(&[one, other]));
    }
}
