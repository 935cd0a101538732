//! Records of the application, as sessions read and write them.

use async_trait::async_trait;
use messages::StoreError;
use outbox::records::{OwnedRecord, RecordRead};
use outbox::{Key, ReadRecords, Record, Write, WriteRecords};
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, int, json, uint};

#[async_trait]
impl ReadRecords for Store {
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
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

fn record(db: &Connection, key: &Key) -> Result<Option<Record>, Fault> {
    let stored = db
        .prepare_cached("SELECT revision, body FROM record WHERE kind = ?1 AND id = ?2")?
        .query_row([&key.kind, &key.id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    let Some((revision, body)) = stored else { return Ok(None) };
    Ok(Some(Record { revision: uint(revision), body: from_json(&body)? }))
}

/// Returns `true` if a record is unchanged since it was read.
pub(crate) fn holds(db: &Connection, read: &RecordRead) -> Result<bool, Fault> {
    let revision = db
        .prepare_cached("SELECT revision FROM record WHERE kind = ?1 AND id = ?2")?
        .query_row([&read.key.kind, &read.key.id], |row| row.get::<_, i64>(0))
        .optional()?;
    Ok(revision.map_or(0, uint) == read.revision)
}

fn advance(db: &Connection, OwnedRecord { key, revision, body }: &OwnedRecord) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO record (kind, id, revision, body) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT (kind, id) DO UPDATE SET revision = excluded.revision, body = excluded.body
         WHERE record.revision < excluded.revision",
    )?
    .execute(params![key.kind, key.id, int(*revision), json(body)?])?;
    Ok(())
}

pub(crate) fn write(db: &Connection, write: &Write) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO record (kind, id, revision, body) VALUES (?1, ?2, 1, ?3)
         ON CONFLICT (kind, id) DO UPDATE SET revision = revision + 1, body = excluded.body",
    )?
    .execute(params![write.key.kind, write.key.id, json(&write.body)?])?;
    Ok(())
}
