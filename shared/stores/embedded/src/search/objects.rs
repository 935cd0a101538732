//! Uploaded files: their content in a folder, and their metadata in a table.

use std::collections::BTreeMap;
use std::io::{ErrorKind, SeekFrom};
use std::path::Path;

use async_trait::async_trait;
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{self, StreamExt};
use imports::key::nickname;
use imports::messages::ObjectRef;
use imports::objects::MAX_FOUND;
use imports::{
    FindObjects, ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant,
};
use messages::StoreError;
use rusqlite::{Connection, params};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt};

use crate::Store;
use crate::fault::Fault;
use crate::folder::{self, ObjectName};
use crate::intercept::{Call, Phase};
use crate::search::cpu_pool;
use crate::search::frames::{Frames, PIECE_BYTES};
use crate::search::object_rows::{BUCKET, KEY_FIELD, StoredObject, UPLOAD_URL, find};
use crate::value::{from_json, int, json, nanos, uint};

/// The grant is a row, not a signature: only this process reads it, and a caller that knows its key could request the
/// form anyway.
#[async_trait]
impl PresignUpload for Store {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let grant = grant.clone();
        let form = PresignedPost {
            url: UPLOAD_URL.to_owned(),
            fields: BTreeMap::from([(KEY_FIELD.to_owned(), grant.key.clone())]),
            expires_at: grant.expires_at,
        };
        let doing = format!("granting the upload of {}", nickname(&grant.key));
        self.change(Call::ObjectsPresign, doing, move |db| save_grant(db, &grant)).await?;
        Ok(form)
    }
}

fn save_grant(db: &Connection, grant: &UploadGrant) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO upload_grant (key, min_bytes, max_bytes, metadata, expires_at) \
         VALUES (?1, ?2, ?2, ?3, ?4)",
    )?
    .execute(params![
        grant.key,
        int(grant.size_bytes),
        json(&grant.metadata)?,
        nanos(grant.expires_at)
    ])?;
    Ok(())
}

/// Versions are not kept, so a read with a version finds nothing.
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
        let doing = format!("looking for {}", nickname(key));
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

    /// The file is renamed to the name of an unfinished upload, then its row is deleted, and then the file. After a
    /// crash, [`Store::recover`] either restores the name of the object or removes the file.
    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        let doing = format!("removing {}", nickname(key));
        let stored = self.stored_object(key, &doing).await?;
        let unfinished = match stored.map(|stored| stored.file) {
            Some(name) => {
                let (stored, unfinished) = self.folder().object(name);
                match tokio::fs::rename(&stored, &unfinished).await {
                    Err(error) if error.kind() != ErrorKind::NotFound => {
                        return Err(StoreError::unavailable(doing, error));
                    }
                    _ => Some(unfinished),
                }
            }
            None => None,
        };
        let key = key.to_owned();
        let work = move |db: &Connection| {
            // The form cannot be used again either.
            db.prepare_cached("DELETE FROM upload_grant WHERE key = ?1")?.execute([&key])?;
            db.prepare_cached("DELETE FROM object WHERE key = ?1")?.execute([&key])?;
            Ok(())
        };
        self.change(Call::ObjectsRemove, doing, work).await?;
        if let Some(unfinished) = unfinished {
            folder::remove(&unfinished).await;
        }
        Ok(())
    }
}

fn find_below(db: &Connection, prefix: &str) -> Result<Vec<ObjectRef>, Fault> {
    let mut statement = db.prepare_cached(
        // No text in UTF-8 has the byte that ends the range.
        "SELECT key, size_bytes FROM object
         WHERE key >= ?1 AND key < CAST(?1 || x'FF' AS TEXT) ORDER BY key LIMIT ?2",
    )?;
    let found = statement.query_map(params![prefix, int(MAX_FOUND as u64)], |row| {
        let (key, size_bytes) = (row.get(0)?, uint(row.get(1)?));
        Ok(ObjectRef { bucket: BUCKET.to_owned(), key, version: None, size_bytes })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

impl Store {
    async fn open_object(&self, key: &str, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        let doing = format!("opening {}", nickname(key));
        loop {
            let Some(StoredObject { file: name, is_packed, .. }) = self.stored_object(key, &doing).await?
            else {
                return Ok(None);
            };
            let reading = format!("reading {}", nickname(key));
            match self.open_named(name, if is_packed { 0 } else { from }).await {
                Ok(file) if is_packed => {
                    let file = file.into_std().await;
                    return Ok(Some(unpacked(
                        next(move || Frames::open(file, from)?.next(UNPACK_BATCH)),
                        reading,
                    )));
                }
                Ok(file) => return Ok(Some(pieces(file, reading))),
                // The object was replaced after the query of the table, so the row names another file now.
                Err(error)
                    if error.kind() == ErrorKind::NotFound
                        && self.stored_object(key, &doing).await?.map(|stored| stored.file) != Some(name) => {
                }
                // Another type of file has this name, which a retry does not resolve.
                Err(error) if error.kind() == ErrorKind::InvalidInput => {
                    return Err(StoreError::unusable(doing, error));
                }
                Err(error) => return Err(StoreError::unavailable(doing, error)),
            }
        }
    }

    async fn stored_object(&self, key: &str, doing: &str) -> Result<Option<StoredObject>, StoreError> {
        let wanted = key.to_owned();
        self.threads().read(doing.to_owned(), move |db| find(db, &wanted)).await
    }

    /// The file is renamed after the row was stored, so it may have either name. If the file is renamed between the
    /// first two attempts, the third attempt finds it.
    async fn open_named(&self, name: ObjectName, from: u64) -> std::io::Result<File> {
        let (stored, unfinished) = self.folder().object(name);
        let mut found = Err(ErrorKind::NotFound.into());
        for path in [&stored, &unfinished, &stored] {
            found = open_at(path, from).await;
            if found.as_ref().err().is_none_or(|error| error.kind() != ErrorKind::NotFound) {
                break;
            }
        }
        found
    }
}

async fn open_at(path: &Path, from: u64) -> std::io::Result<File> {
    let mut file = folder::open(path).await?;
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

/// The number of pieces decompressed at a time: the amount that a reader takes before it looks for records, so that the
/// reader waits only for work that has already begun.
const UNPACK_BATCH: usize = 4;

/// The next bytes of a compressed object, and the reader of the rest.
type Next = std::io::Result<Option<(Vec<u8>, Frames)>>;

/// Starts decompressing the bytes.
fn next(work: impl FnOnce() -> Next + Send + 'static) -> BoxFuture<'static, Next> {
    cpu_pool::begin(work).map(Result::flatten).boxed()
}

/// The next piece is read while the caller processes the current one.
fn unpacked(first: BoxFuture<'static, Next>, doing: String) -> ObjectStream {
    stream::try_unfold((first, doing), |(unpacking, doing)| async move {
        match unpacking.await {
            Ok(None) => Ok(None),
            Ok(Some((piece, frames))) => Ok(Some((piece, (next(|| frames.next(UNPACK_BATCH)), doing)))),
            // A stored object does not change, so a damaged object remains unusable.
            Err(error) if error.kind() == ErrorKind::InvalidData => Err(StoreError::unusable(doing, error)),
            Err(error) => Err(StoreError::unavailable(doing, error)),
        }
    })
    .boxed()
}
