//! Taking an upload: what S3 does with a presigned POST, notification included.

use std::path::{Path, PathBuf};

use imports::queues::UPLOADS;
use imports::{PresignedPost, UploadGrant};
use jiff::Timestamp;
use messages::StoreError;
use rusqlite::{Connection, params};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::{Call, Phase};
use crate::notification::notification;
use crate::objects::{KEY_FIELD, PIECE_BYTES, find, load_grant};
use crate::queues::{Sending, insert};
use crate::value::int;

/// Files that are being written begin like this.
pub(crate) const PARTIAL: &str = "partial-";

/// Why an upload is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// No such form was ever made.
    #[error("there is no permission to upload {key}")]
    NotGranted {
        /// The object's key.
        key: String,
    },
    /// The form is too old.
    #[error("the permission to upload {key} ended at {expired_at}")]
    Expired {
        /// The object's key.
        key: String,
        /// Its end.
        expired_at: Timestamp,
    },
    /// A file without content.
    #[error("the file is empty")]
    Empty,
    /// More than the form allows.
    #[error("the file is larger than the {max_bytes} bytes allowed")]
    TooLarge {
        /// The most it may have.
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
    /// Retry, or not?
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotGranted { .. } | Self::Expired { .. } | Self::Empty | Self::TooLarge { .. } => false,
            Self::Read(_) => true,
            Self::Store(error) => error.is_retryable(),
        }
    }
}

impl Store {
    /// Uploads what `source` yields with a form that was made by this store. Afterwards the object and the
    /// notification about it are durable, both or neither. The same form may be used again until it expires: the
    /// object is replaced, and its notification sent again.
    ///
    /// # Errors
    /// When the form does not allow it, or the bytes cannot be read or stored. Nothing is stored then.
    pub async fn upload<R>(&self, form: &PresignedPost, source: R) -> Result<u64, UploadError>
    where
        R: AsyncRead + Send + Unpin,
    {
        self.step(Call::ObjectsUpload, Phase::Before).await;
        let result = self.take_upload(form, source).await;
        self.step(Call::ObjectsUpload, Phase::After).await;
        result
    }

    /// As [`Store::upload`], from a file.
    ///
    /// # Errors
    /// As [`Store::upload`].
    pub async fn upload_file(&self, form: &PresignedPost, path: &Path) -> Result<u64, UploadError> {
        let file = File::open(path).await.map_err(UploadError::Read)?;
        self.upload(form, file).await
    }

    async fn take_upload<R>(&self, form: &PresignedPost, source: R) -> Result<u64, UploadError>
    where
        R: AsyncRead + Send + Unpin,
    {
        let grant = self.granted(form).await?;
        let name = self.free_name();
        let partial = self.objects_dir().join(format!("{PARTIAL}{name}"));
        let size_bytes = match copy(source, &partial, grant.max_bytes).await {
            Ok(size_bytes) => size_bytes,
            Err(error) => {
                remove(&partial).await;
                return Err(error);
            }
        };
        self.keep(&partial, &name, grant, size_bytes).await?;
        Ok(size_bytes)
    }

    /// A host that repeats its ids after a restart, as one for tests does, must not make one object's bytes
    /// another's.
    fn free_name(&self) -> String {
        loop {
            let name = self.host().fresh_id().to_string();
            if !self.objects_dir().join(&name).exists() {
                return name;
            }
        }
    }

    async fn granted(&self, form: &PresignedPost) -> Result<UploadGrant, UploadError> {
        let key = form.fields.get(KEY_FIELD).cloned().unwrap_or_default();
        let wanted = key.clone();
        let doing = format!("looking for the permission to upload {key}");
        let Some(grant) = self.engine().read(doing, move |db| load_grant(db, &wanted)).await? else {
            return Err(UploadError::NotGranted { key });
        };
        if grant.expires_at <= self.now() {
            return Err(UploadError::Expired { key, expired_at: grant.expires_at });
        }
        Ok(grant)
    }

    /// First the file, then the row that names it: a crash between the two leaves a file that nothing names,
    /// which [`Store::recover`] removes, and never a row without its file.
    async fn keep(
        &self,
        partial: &Path,
        name: &str,
        grant: UploadGrant,
        size: u64,
    ) -> Result<(), UploadError> {
        let doing = format!("storing object {}", grant.key);
        let path = self.objects_dir().join(name);
        rename(partial, path.clone()).await.map_err(|error| StoreError::unavailable(doing.clone(), error))?;
        let (now, file) = (self.now(), name.to_owned());
        let work = move |db: &Connection| replace(db, &grant, &file, size, now);
        match self.engine().write(doing, work).await {
            Ok(replaced) => {
                self.sends().tell();
                if let Some(old) = replaced {
                    remove(&self.objects_dir().join(old)).await;
                }
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Copies and makes durable; the size is watched while it grows, so that nobody fills the disk.
async fn copy<R>(mut source: R, to: &Path, max_bytes: u64) -> Result<u64, UploadError>
where
    R: AsyncRead + Send + Unpin,
{
    let failed = |error| StoreError::unavailable(format!("writing {}", to.display()), error);
    let mut file = File::create(to).await.map_err(failed)?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut size = 0;
    loop {
        let read = source.read(&mut piece).await.map_err(UploadError::Read)?;
        if read == 0 {
            break;
        }
        size += read as u64;
        if size > max_bytes {
            return Err(UploadError::TooLarge { max_bytes });
        }
        file.write_all(piece.get(..read).unwrap_or_default()).await.map_err(failed)?;
    }
    if size == 0 {
        return Err(UploadError::Empty);
    }
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    Ok(size)
}

/// Renames, and makes the folder's new entry durable.
async fn rename(from: &Path, to: PathBuf) -> std::io::Result<()> {
    tokio::fs::rename(from, &to).await?;
    match to.parent() {
        // Elsewhere a folder cannot be opened, and needs no flush.
        Some(folder) if cfg!(unix) => File::open(folder).await?.sync_all().await,
        Some(_) | None => Ok(()),
    }
}

/// What cannot be removed now is removed by the next [`Store::recover`].
pub(crate) async fn remove(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::debug!(path = %path.display(), %error, "a file that nothing names is left");
    }
}

/// Answers the file of the object that was replaced.
fn replace(
    db: &Connection,
    grant: &UploadGrant,
    file: &str,
    size_bytes: u64,
    now: Timestamp,
) -> Result<Option<String>, Fault> {
    let replaced = find(db, &grant.key)?.map(|stored| stored.file);
    db.prepare_cached(
        "INSERT OR REPLACE INTO object (key, file, size_bytes, metadata) VALUES (?1, ?2, ?3, ?4)",
    )?
    .execute(params![grant.key, file, int(size_bytes), crate::value::json(&grant.metadata)?])?;
    let sequencer = db.last_insert_rowid();
    let body = notification(&grant.key, size_bytes, sequencer, now);
    let message = Sending { queue: UPLOADS, id: None, partition: None, body, sent_at: now, visible_at: now };
    insert(db, &message)?;
    Ok(replaced)
}
