//! Exports: objects that this machine has made itself.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::TryStreamExt;
use imports::exports::Pieces;
use imports::{ExportKey, ExportLink, FindObjects, KeepExports};
use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::Connection;
use tokio::io::AsyncWriteExt;

use crate::Store;
use crate::folder::{self, remove};
use crate::intercept::{Call, Phase};
use crate::search::object_rows::{NewObject, find, insert_row};

/// The characters that are not escaped in the path of a URL.
const IN_PATHS: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[async_trait]
impl KeepExports for Store {
    async fn keep(&self, key: &ExportKey, pieces: Pieces<'_>) -> Result<u64, StoreError> {
        self.step(Call::ExportsKeep, Phase::Before).await;
        let kept = self.keep_export(key, pieces).await;
        self.step(Call::ExportsKeep, Phase::After).await;
        kept
    }

    /// Returns the address of the file itself, since the client is on this machine. Its expiry is not enforced.
    async fn link(
        &self,
        key: &ExportKey,
        _file_name: &str,
        valid_for: Duration,
    ) -> Result<Option<ExportLink>, StoreError> {
        let (doing, key) = (format!("looking for {key}"), key.to_string());
        let found = self.look(Call::ExportsLink, doing, move |db: &Connection| find(db, &key)).await?;
        let Some(found) = found else { return Ok(None) };
        let (path, _) = self.folder().object(found.file);
        let path = path.to_string_lossy();
        let valid_for = SignedDuration::try_from(valid_for).unwrap_or(SignedDuration::MAX);
        Ok(Some(ExportLink {
            url: format!("file://{}", utf8_percent_encode(&path, IN_PATHS)),
            size_bytes: found.size_bytes,
            expires_at: self.now().checked_add(valid_for).unwrap_or(Timestamp::MAX),
        }))
    }
}

impl Store {
    async fn keep_export(&self, key: &ExportKey, pieces: Pieces<'_>) -> Result<u64, StoreError> {
        let name = self.free_name();
        let (_, unfinished) = self.folder().object(name);
        let size_bytes = match write(&unfinished, pieces).await {
            Ok(size_bytes) => size_bytes,
            Err(error) => {
                remove(&unfinished).await;
                return Err(error);
            }
        };
        let (doing, key) = (format!("storing {key}"), key.to_string());
        // An existing export with this key, or an export that is stored concurrently, has the same studies.
        FindObjects::remove(self, &key).await?;
        let row = move |db: &Connection| {
            let is_free = find(db, &key)?.is_none();
            if is_free {
                // Clients open the file directly, so it is not compressed.
                let metadata = &BTreeMap::new();
                insert_row(db, &NewObject { key: &key, file: name, size_bytes, is_packed: false, metadata })?;
            }
            Ok(is_free)
        };
        self.keep(name, doing, row).await?;
        Ok(size_bytes)
    }
}

async fn write(path: &Path, mut pieces: Pieces<'_>) -> Result<u64, StoreError> {
    let failed = |error| StoreError::unavailable(format!("writing {}", path.display()), error);
    let mut file = folder::create_file(path).await.map_err(failed)?;
    let mut size = 0;
    while let Some(piece) = pieces.try_next().await? {
        size += piece.len() as u64;
        file.write_all(&piece).await.map_err(failed)?;
    }
    file.flush().await.map_err(failed)?;
    file.sync_all().await.map_err(failed)?;
    Ok(size)
}
