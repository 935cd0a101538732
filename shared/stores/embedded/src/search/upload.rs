//! Accepting an upload as S3 accepts a presigned POST, including the notification.

use std::ops::RangeInclusive;
use std::path::Path;

use futures::stream::{FuturesOrdered, StreamExt};
use imports::PresignedPost;
use imports::key::nickname;
use imports::queues::UPLOADS;
use jiff::Timestamp;
use messages::StoreError;
use rusqlite::Connection;
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::Store;
use crate::fault::Fault;
use crate::folder::{self, ObjectName, remove};
use crate::intercept::{Call, Phase};
use crate::queues::{QueuedMessage, insert};
use crate::search::cpu_pool;
use crate::search::frames::{self, PIECE_BYTES};
use crate::search::notification::notification;
use crate::search::object_rows::{Grant, KEY_FIELD, NewObject, find, insert_row, load_grant};

/// The reason why an upload is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// No such form was created.
    #[error("the upload of {} is not permitted", nickname(key))]
    NotGranted {
        /// The object's key.
        key: String,
    },
    /// The form has expired.
    #[error("the permission to upload {} ended at {expired_at}", nickname(key))]
    Expired {
        /// The object's key.
        key: String,
        /// The time at which the form expires.
        expired_at: Timestamp,
    },
    /// The form has already been used.
    #[error("the file was uploaded with this form before")]
    Used,
    /// The file has fewer bytes than announced.
    #[error("the file has {size_bytes} bytes, and {min_bytes} were announced")]
    TooSmall {
        /// The size of the file.
        size_bytes: u64,
        /// The announced size.
        min_bytes: u64,
    },
    /// The file has more bytes than announced.
    #[error("the file has more than the {max_bytes} bytes that were announced")]
    TooLarge {
        /// The announced size.
        max_bytes: u64,
    },
    /// The file to be uploaded cannot be read.
    #[error("reading the file failed")]
    Read(#[source] std::io::Error),
    /// The folder or the database refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl UploadError {
    /// Returns `true` if a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotGranted { .. }
            | Self::Expired { .. }
            | Self::Used
            | Self::TooSmall { .. }
            | Self::TooLarge { .. } => false,
            Self::Read(_) => true,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

impl Store {
    /// Checks that a form can be used now, regardless of the file.
    ///
    /// # Errors
    /// Returns an error if the form was not created by this store, has expired, or has been used.
    pub async fn check_form(&self, form: &PresignedPost) -> Result<(), UploadError> {
        self.granted(form).await.map(drop)
    }

    /// Uploads the bytes of `source` with a form of this store. Afterwards either both the object and its notification
    /// are durable, or neither. A form can be used once; if its upload failed, it may be used again until it expires.
    ///
    /// # Errors
    /// Returns an error if the form does not permit it, or the bytes cannot be read or stored. In this case,
    /// nothing is stored.
    pub async fn upload<R>(&self, form: &PresignedPost, source: R) -> Result<u64, UploadError>
    where
        R: AsyncRead + Send + Unpin,
    {
        self.step(Call::ObjectsUpload, Phase::Before).await;
        let result = self.take_upload(form, source).await;
        self.step(Call::ObjectsUpload, Phase::After).await;
        result
    }

    /// Works like [`Store::upload`], for a file.
    pub async fn upload_file(&self, form: &PresignedPost, path: &Path) -> Result<u64, UploadError> {
        let file = folder::open(path).await.map_err(UploadError::Read)?;
        self.upload(form, file).await
    }

    async fn take_upload<R>(&self, form: &PresignedPost, source: R) -> Result<u64, UploadError>
    where
        R: AsyncRead + Send + Unpin,
    {
        let (key, grant) = self.granted(form).await?;
        let name = self.free_name();
        let (_, partial) = self.folder().object(name);
        let size_bytes = match copy(source, &partial, &grant.bytes).await {
            Ok(size_bytes) => size_bytes,
            Err(error) => {
                remove(&partial).await;
                return Err(error);
            }
        };
        let (doing, now) = (format!("storing {}", nickname(&key)), self.now());
        let row = move |db: &Connection| insert_object(db, &key, &grant, name, size_bytes, now);
        if !self.keep(name, doing, row).await? {
            // A concurrent upload with the same form was faster.
            return Err(UploadError::Used);
        }
        self.sends().notify();
        Ok(size_bytes)
    }

    /// A host that repeats its ids after a restart, such as the one of tests, must not overwrite the bytes of another
    /// object.
    pub(crate) fn free_name(&self) -> ObjectName {
        loop {
            let name = ObjectName::new(self.host().fresh_id());
            let (stored, unfinished) = self.folder().object(name);
            if [stored, unfinished].iter().all(|path| path.symlink_metadata().is_err()) {
                return name;
            }
        }
    }

    /// Returns the form's key and its grant.
    async fn granted(&self, form: &PresignedPost) -> Result<(String, Grant), UploadError> {
        let key = form.fields.get(KEY_FIELD).cloned().unwrap_or_default();
        let wanted = key.clone();
        let doing = format!("looking for the permission to upload {}", nickname(&key));
        let look = move |db: &Connection| Ok((load_grant(db, &wanted)?, find(db, &wanted)?.is_some()));
        match self.threads().read(doing, look).await? {
            // The object stays when its form has expired.
            (_, true) => Err(UploadError::Used),
            (None, false) => Err(UploadError::NotGranted { key }),
            (Some(grant), false) if grant.expires_at <= self.now() => {
                Err(UploadError::Expired { key, expired_at: grant.expires_at })
            }
            (Some(grant), false) => Ok((key, grant)),
        }
    }

    /// Stores the bytes first, then the row that names them, and renames the file last. A crash therefore leaves either
    /// an unfinished file, which [`Store::recover`] removes, or a file with a row, which it renames. It never leaves a
    /// row without its file, or a complete file that no row names.
    ///
    /// `row` stores the row, or returns `false` if it must not be stored; in this case, the file is removed.
    pub(crate) async fn keep<F>(&self, name: ObjectName, doing: String, row: F) -> Result<bool, StoreError>
    where
        F: FnOnce(&Connection) -> Result<bool, Fault> + Send + 'static,
    {
        let (stored, unfinished) = self.folder().object(name);
        let flushed = flush_folder(&self.folder().objects()).await;
        flushed.map_err(|error| StoreError::unavailable(doing.clone(), error))?;
        if !self.threads().write(doing, row).await? {
            remove(&unfinished).await;
            return Ok(false);
        }
        if let Err(error) = tokio::fs::rename(&unfinished, &stored).await {
            tracing::debug!(path = %unfinished.display(), %error, "a stored file keeps the name of an unfinished one");
        }
        Ok(true)
    }
}

/// The number of pieces compressed at the same time, while the next one is read.
const PACK_BATCH: usize = 2;

/// Copies the bytes compressed and flushes them. The size is checked as it grows, so that no client can fill the disk.
async fn copy<R>(mut source: R, to: &Path, bytes: &RangeInclusive<u64>) -> Result<u64, UploadError>
where
    R: AsyncRead + Send + Unpin,
{
    let failed = |error| StoreError::unavailable(format!("writing {}", to.display()), error);
    let mut file = folder::create_file(to).await.map_err(failed)?;
    let (mut packing, mut size) = (FuturesOrdered::new(), 0);
    loop {
        // Reads one byte more than granted, to detect a larger file.
        let left = bytes.end().saturating_add(1).saturating_sub(size).min(PIECE_BYTES as u64);
        let mut piece = Vec::with_capacity(PIECE_BYTES);
        size += (&mut source).take(left).read_to_end(&mut piece).await.map_err(UploadError::Read)? as u64;
        if size > *bytes.end() {
            return Err(UploadError::TooLarge { max_bytes: *bytes.end() });
        }
        let is_last = piece.len() < PIECE_BYTES;
        if !piece.is_empty() {
            packing.push_back(cpu_pool::begin(move || frames::pack(&piece)));
        }
        while packing.len() > if is_last { 0 } else { PACK_BATCH }
            && let Some(packed) = packing.next().await
        {
            let packed = packed.flatten().map_err(failed)?;
            file.write_all(&packed).await.map_err(failed)?;
        }
        if is_last {
            break;
        }
    }
    if size < *bytes.start() {
        return Err(UploadError::TooSmall { size_bytes: size, min_bytes: *bytes.start() });
    }
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    Ok(size)
}

/// Flushes a new entry of a folder.
async fn flush_folder(folder: &Path) -> std::io::Result<()> {
    // On other systems a folder cannot be opened, and needs no flush.
    if cfg!(unix) { File::open(folder).await?.sync_all().await } else { Ok(()) }
}

/// Stores the object's row and its notification. Returns `false` if the object exists already.
fn insert_object(
    db: &Connection,
    key: &str,
    grant: &Grant,
    file: ObjectName,
    size_bytes: u64,
    now: Timestamp,
) -> Result<bool, Fault> {
    if find(db, key)?.is_some() {
        return Ok(false);
    }
    insert_row(db, &NewObject { key, file, size_bytes, is_packed: true, metadata: &grant.metadata })?;
    let sequencer = db.last_insert_rowid();
    let body = notification(key, size_bytes, sequencer, now);
    let message =
        QueuedMessage { queue: UPLOADS, id: None, partition: None, body, sent_at: now, visible_at: now };
    insert(db, &message)?;
    Ok(true)
}
