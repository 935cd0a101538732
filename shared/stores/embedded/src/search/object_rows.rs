//! The rows of uploaded files and of their grants.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::fault::Fault;
use crate::folder::ObjectName;
use crate::value::{from_json, int, json, timestamp, uint};

/// The name of the only bucket.
pub const BUCKET: &str = "uploads";
/// The address in upload forms; [`Store::upload`](crate::Store::upload) accepts them.
pub const UPLOAD_URL: &str = "embedded:objects";
/// The form field with the object's key.
pub(crate) const KEY_FIELD: &str = "key";

/// A stored grant.
pub(crate) struct Grant {
    /// The minimum and maximum size in bytes; they are equal unless an earlier version granted a range.
    pub(crate) bytes: RangeInclusive<u64>,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) expires_at: Timestamp,
}

/// The grant for a key, whether or not it has expired.
pub(crate) fn load_grant(db: &Connection, key: &str) -> Result<Option<Grant>, Fault> {
    let stored = db
        .prepare_cached("SELECT min_bytes, max_bytes, metadata, expires_at FROM upload_grant WHERE key = ?1")?
        .query_row([key], |row| {
            let bytes = uint(row.get(0)?)..=uint(row.get(1)?);
            Ok((bytes, row.get::<_, String>(2)?, row.get::<_, i64>(3)?))
        })
        .optional()?;
    let Some((bytes, metadata, expires_at)) = stored else { return Ok(None) };
    Ok(Some(Grant { bytes, metadata: from_json(&metadata)?, expires_at: timestamp(expires_at) }))
}

/// An object's row.
pub(crate) struct StoredObject {
    pub(crate) file: ObjectName,
    pub(crate) size_bytes: u64,
    /// `true` if its file is a series of compressed pieces.
    pub(crate) is_packed: bool,
    pub(crate) metadata: String,
}

pub(crate) fn find(db: &Connection, key: &str) -> Result<Option<StoredObject>, Fault> {
    let stored = db
        .prepare_cached("SELECT file, size_bytes, metadata, packed FROM object WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let Some((file, size_bytes, metadata, is_packed)) = stored else { return Ok(None) };
    let file =
        ObjectName::parse(&file).ok_or(Fault::Malformed { what: "name of an object's file", text: file })?;
    Ok(Some(StoredObject { file, size_bytes: uint(size_bytes), is_packed, metadata }))
}

/// An object to be stored.
pub(crate) struct NewObject<'a> {
    pub(crate) key: &'a str,
    pub(crate) file: ObjectName,
    pub(crate) size_bytes: u64,
    /// `true` if its file is a series of packed pieces, and not its own bytes.
    pub(crate) is_packed: bool,
    pub(crate) metadata: &'a BTreeMap<String, String>,
}

/// Stores the row of an object.
pub(crate) fn insert_row(db: &Connection, object: &NewObject<'_>) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT INTO object (key, file, size_bytes, metadata, packed) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        object.key,
        object.file.to_string(),
        int(object.size_bytes),
        json(object.metadata)?,
        object.is_packed
    ])?;
    Ok(())
}
