//! Records of the application, as sessions read and write them.

use async_trait::async_trait;
use messages::StoreError;
use outbox::records::{OwnedRecord, RecordRead};
use outbox::{Key, ReadRecords, StoredRecord, Write, WriteRecords};
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::Value;

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, int, json, nanos, timestamp, uint};

#[async_trait]
impl ReadRecords for Store {
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let doing = format!("reading record {key}");
        let key = key.clone();
        self.look(Call::RecordsRead, doing, move |db| record(db, &key)).await
    }
}

#[async_trait]
impl WriteRecords for Store {
    async fn write_record(&self, record: &Write) -> Result<(), StoreError> {
        let (doing, record) = (format!("writing record {}", record.key), record.clone());
        self.change(Call::RecordsWrite, doing, move |db| write(db, &record)).await
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let (doing, record) = (format!("writing record {}", record.key), record.clone());
        self.change(Call::RecordsWrite, doing, move |db| advance(db, &record)).await
    }
}

fn record(db: &Connection, key: &Key) -> Result<Option<StoredRecord>, Fault> {
    let stored = db
        .prepare_cached("SELECT revision, body, expires_at FROM record WHERE kind = ?1 AND id = ?2")?
        .query_row([&key.kind, &key.id], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<i64>>(2)?))
        })
        .optional()?;
    let Some((revision, body, expires_at)) = stored else { return Ok(None) };
    let body = (body != REMOVED).then(|| from_json(&body)).transpose()?;
    Ok(Some(StoredRecord { revision: uint(revision), body, expires_at: expires_at.map(timestamp) }))
}

/// The stored body of a removed record, which is not JSON.
const REMOVED: &str = "";

/// Returns a body as it is stored.
fn text(body: Option<&Value>) -> Result<String, Fault> {
    body.map_or(Ok(REMOVED.to_owned()), json)
}

/// Returns `true` if a record is unchanged since it was read.
pub(crate) fn holds(db: &Connection, read: &RecordRead) -> Result<bool, Fault> {
    let revision = db
        .prepare_cached("SELECT revision FROM record WHERE kind = ?1 AND id = ?2")?
        .query_row([&read.key.kind, &read.key.id], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(revision.map_or(0, uint) == read.revision)
}

fn advance(db: &Connection, record: &OwnedRecord) -> Result<(), Fault> {
    let (Key { kind, id }, StoredRecord { revision, body, expires_at }) = (&record.key, record.stored());
    db.prepare_cached(
        "INSERT INTO record (kind, id, revision, body, expires_at) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (kind, id) DO UPDATE
         SET revision = excluded.revision, body = excluded.body, expires_at = excluded.expires_at
         WHERE record.revision < excluded.revision",
    )?
    .execute(params![kind, id, int(revision), text(body.as_ref())?, expires_at.map(nanos)])?;
    Ok(())
}

pub(crate) fn write(db: &Connection, Write { key, body, expires_at }: &Write) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO record (kind, id, revision, body, expires_at) VALUES (?1, ?2, 1, ?3, ?4)
         ON CONFLICT (kind, id) DO UPDATE
         SET revision = revision + 1, body = excluded.body, expires_at = excluded.expires_at",
    )?
    .execute(params![key.kind, key.id, text(body.as_ref())?, expires_at.map(nanos)])?;
    Ok(())
}

pub(crate) const PURGE: &str = "DELETE FROM record WHERE expires_at <= ?1";
