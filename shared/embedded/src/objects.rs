//! Uploaded files: their bytes in a folder, what is known of them in a table.

use std::collections::BTreeMap;
use std::io::SeekFrom;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use imports::messages::ObjectRef;
use imports::objects::MAX_FOUND;
use imports::{
    FindObjects, ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant,
};
use jiff::Timestamp;
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, params};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::{Call, Phase};
use crate::value::{from_json, int, json, nanos, timestamp, uint};

/// The name of the one bucket.
pub const BUCKET: &str = "uploads";
/// Where forms point; [`Store::upload`] takes them.
pub const UPLOAD_URL: &str = "embedded:objects";
/// The form field with the object's key.
pub(crate) const KEY_FIELD: &str = "key";
/// How much of an object is read at once: large enough that switching threads costs nothing beside it, and small
/// enough that many objects may be read at the same time.
pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// The grant is a row, not a signature: nobody but this process reads it, and whoever can name its key can ask for the
/// form too.
#[async_trait]
impl PresignUpload for Store {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let grant = grant.clone();
        let form = PresignedPost {
            url: UPLOAD_URL.to_owned(),
            fields: BTreeMap::from([(KEY_FIELD.to_owned(), grant.key.clone())]),
            expires_at: grant.expires_at,
        };
        let doing = format!("granting the upload of {}", grant.key);
        self.change(Call::ObjectsPresign, doing, move |db| save_grant(db, &grant)).await?;
        Ok(form)
    }
}

fn save_grant(db: &Connection, grant: &UploadGrant) -> Result<(), Fault> {
    db.prepare_cached("INSERT OR REPLACE INTO upload_grant VALUES (?1, ?2, ?3, ?4)")?.execute(params![
        grant.key,
        int(grant.max_bytes),
        json(&grant.metadata)?,
        nanos(grant.expires_at)
    ])?;
    Ok(())
}

/// The grant for a key, whether or not it has expired.
pub(crate) fn load_grant(db: &Connection, key: &str) -> Result<Option<UploadGrant>, Fault> {
    let stored = db
        .prepare_cached("SELECT max_bytes, metadata, expires_at FROM upload_grant WHERE key = ?1")?
        .query_row([key], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, row.get::<_, i64>(2)?)))
        .optional()?;
    let Some((max_bytes, metadata, expires_at)) = stored else { return Ok(None) };
    Ok(Some(UploadGrant {
        key: key.to_owned(),
        max_bytes: uint(max_bytes),
        metadata: from_json(&metadata)?,
        expires_at: timestamp(expires_at),
    }))
}

/// An object's row.
pub(crate) struct Stored {
    pub(crate) file: String,
    pub(crate) size_bytes: u64,
    metadata: String,
}

pub(crate) fn find(db: &Connection, key: &str) -> Result<Option<Stored>, Fault> {
    Ok(db
        .prepare_cached("SELECT file, size_bytes, metadata FROM object WHERE key = ?1")?
        .query_row([key], |row| {
            Ok(Stored { file: row.get(0)?, size_bytes: uint(row.get(1)?), metadata: row.get(2)? })
        })
        .optional()?)
}

/// Versions are not kept, so nothing is found under one.
#[async_trait]
impl ReadObject for Store {
    async fn head(
        &self,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        if bucket != BUCKET || version.is_some() {
            return Ok(None);
        }
        let doing = format!("looking for object {key}");
        let key = key.to_owned();
        let work = move |db: &Connection| match find(db, &key)? {
            Some(stored) => {
                let metadata = from_json(&stored.metadata)?;
                Ok(Some(ObjectFacts { size_bytes: stored.size_bytes, version: None, metadata }))
            }
            None => Ok(None),
        };
        self.look(Call::ObjectsHead, doing, work).await
    }

    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        if object.bucket != BUCKET || object.version.is_some() {
            return Ok(None);
        }
        self.step(Call::ObjectsOpen, Phase::Before).await;
        let opened = self.open_object(&object.key, from).await;
        self.step(Call::ObjectsOpen, Phase::After).await;
        opened
    }
}

#[async_trait]
impl FindObjects for Store {
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError> {
        let doing = format!("looking for objects below {prefix}");
        let prefix = prefix.to_owned();
        self.look(Call::ObjectsFind, doing, move |db| find_below(db, &prefix)).await
    }
}

fn find_below(db: &Connection, prefix: &str) -> Result<Vec<ObjectRef>, Fault> {
    let mut statement = db.prepare_cached(
        // No character comes after the one that ends the range.
        "SELECT key, size_bytes FROM object WHERE key >= ?1 AND key < ?1 || char(1114111) ORDER BY key LIMIT ?2",
    )?;
    let found = statement.query_map(params![prefix, int(MAX_FOUND as u64)], |row| {
        let (key, size_bytes) = (row.get(0)?, uint(row.get(1)?));
        Ok(ObjectRef { bucket: BUCKET.to_owned(), key, version: None, size_bytes })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

impl Store {
    async fn open_object(&self, key: &str, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        let doing = format!("opening object {key}");
        loop {
            let Some(path) = self.object_path(key, &doing).await? else { return Ok(None) };
            match open_at(&path, from).await {
                Ok(file) => return Ok(Some(pieces(file, format!("reading object {key}")))),
                // Replaced between the look into the table and this one: the row names another file by now.
                Err(error)
                    if error.kind() == std::io::ErrorKind::NotFound
                        && self.object_path(key, &doing).await?.as_ref() != Some(&path) => {}
                Err(error) => return Err(StoreError::unavailable(doing, error)),
            }
        }
    }

    async fn object_path(&self, key: &str, doing: &str) -> Result<Option<PathBuf>, StoreError> {
        let wanted = key.to_owned();
        let stored = self.engine().read(doing.to_owned(), move |db| find(db, &wanted)).await?;
        Ok(stored.map(|stored| self.objects_dir().join(stored.file)))
    }

    /// Deletes the grants that ended before `now`, which nothing asks for any more.
    pub(crate) fn purge_grants(db: &Connection, now: Timestamp) -> Result<usize, Fault> {
        Ok(db.prepare_cached("DELETE FROM upload_grant WHERE expires_at <= ?1")?.execute([nanos(now)])?)
    }
}

async fn open_at(path: &Path, from: u64) -> std::io::Result<File> {
    let mut file = File::open(path).await?;
    file.seek(SeekFrom::Start(from)).await?;
    Ok(file)
}

fn pieces(file: File, doing: String) -> ObjectStream {
    stream::try_unfold((file, doing), |(mut file, doing)| async move {
        let mut piece = vec![0; PIECE_BYTES];
        match file.read(&mut piece).await {
            Ok(0) => Ok(None),
            Ok(read) => {
                piece.truncate(read);
                Ok(Some((piece, (file, doing))))
            }
            Err(error) => Err(StoreError::unavailable(doing, error)),
        }
    })
    .boxed()
}
