//! Saga documents: the content as JSON, the outbox in rows of its own.

use async_trait::async_trait;
use contracts::{MessageId, SearchId, StoreError};
use jiff::Timestamp;
use outbox::{Entry, Owner, Settlement};
use rusqlite::{Connection, OptionalExtension, named_params, params};
use worker::document::{Document, Persist, Persisted, ReadSaga, WriteSaga};

use crate::Store;
use crate::fault::Fault;
use crate::value::{from_json, int, json, later, nanos, some_of, uint};

#[async_trait]
impl ReadSaga for Store {
    async fn load(&self, searches: &[SearchId], now: Timestamp) -> Result<Vec<Option<Document>>, StoreError> {
        let doing = format!("loading search {}", some_of(searches.iter()));
        let searches = searches.to_vec();
        let work = move |db: &Connection| searches.iter().map(|search| load(db, *search, now)).collect();
        self.look("saga.load", doing, work).await
    }
}

fn load(db: &Connection, search_id: SearchId, now: Timestamp) -> Result<Option<Document>, Fault> {
    let stored = db
        .prepare_cached(
            "SELECT version, content FROM saga
             WHERE search_id = ?1 AND (expires_at IS NULL OR expires_at > ?2)",
        )?
        .query_row(params![search_id.to_string(), nanos(now)], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        })
        .optional()?;
    let Some((version, content)) = stored else { return Ok(None) };
    let outbox = crate::outbox::entries(db, Owner::Saga(search_id))?;
    Ok(Some(Document { search_id, version: uint(version), content: from_json(&content)?, outbox }))
}

/// One write, encoded before the writing thread takes it.
struct Row {
    search_id: SearchId,
    loaded: Option<u64>,
    content: String,
    completed_at: Option<i64>,
    expires_at: Option<i64>,
    add: Vec<Entry>,
    cancel: Vec<MessageId>,
}

impl Store {
    fn row(&self, write: &Persist) -> Result<Row, StoreError> {
        let completed_at = write.content.state.completed_at();
        let retention = self.settings().saga_retention.unsigned_abs();
        Ok(Row {
            search_id: write.search_id,
            loaded: write.loaded,
            content: json(&write.content)
                .map_err(|fault| fault.while_doing(format!("encoding search {}", write.search_id)))?,
            completed_at: completed_at.map(nanos),
            expires_at: completed_at.map(|at| nanos(later(at, retention))),
            add: write.add.clone(),
            cancel: write.cancel.clone(),
        })
    }
}

#[async_trait]
impl WriteSaga for Store {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
        let doing = format!("storing search {}", some_of(writes.iter().map(|write| write.search_id)));
        let rows = writes.iter().map(|write| self.row(write)).collect::<Result<Vec<_>, _>>()?;
        let work = move |db: &Connection| rows.iter().map(|row| persist(db, row, now)).collect();
        self.change("saga.persist", doing, work).await
    }

    async fn settle(&self, settlements: &[(SearchId, Vec<Settlement>)]) -> Result<(), StoreError> {
        let doing =
            format!("settling the outbox of search {}", some_of(settlements.iter().map(|(id, _)| id)));
        let settlements = settlements.to_vec();
        let work = move |db: &Connection| {
            settlements.iter().try_for_each(|(id, some)| crate::outbox::settle(db, Owner::Saga(*id), some))
        };
        self.change("saga.settle", doing, work).await
    }
}

/// A document whose retention has passed counts as absent, so a first write takes its place. What is left in its
/// outbox stays: an effect that was not performed, or is poisoned, is never dropped.
const INSERT: &str = "INSERT INTO saga (search_id, version, content, completed_at, expires_at)
    VALUES (:search_id, 1, :content, :completed_at, :expires_at)
    ON CONFLICT (search_id) DO UPDATE SET version = 1, content = excluded.content,
        completed_at = excluded.completed_at, expires_at = excluded.expires_at
    WHERE saga.expires_at <= :now";

const UPDATE: &str = "UPDATE saga SET version = version + 1, content = :content,
    completed_at = :completed_at, expires_at = :expires_at
    WHERE search_id = :search_id AND version = :loaded";

fn persist(db: &Connection, row: &Row, now: Timestamp) -> Result<Persisted, Fault> {
    let search = row.search_id.to_string();
    let changed = match row.loaded {
        None => db.prepare_cached(INSERT)?.execute(named_params! {
            ":search_id": search, ":content": row.content, ":completed_at": row.completed_at,
            ":expires_at": row.expires_at, ":now": nanos(now),
        })?,
        Some(loaded) => db.prepare_cached(UPDATE)?.execute(named_params! {
            ":search_id": search, ":content": row.content, ":completed_at": row.completed_at,
            ":expires_at": row.expires_at, ":loaded": int(loaded),
        })?,
    };
    if changed == 0 {
        return Ok(Persisted::Conflict);
    }
    let owner = Owner::Saga(row.search_id);
    crate::outbox::cancel(db, owner, &row.cancel)?;
    crate::outbox::add(db, owner, &row.add)?;
    Ok(Persisted::Stored)
}
