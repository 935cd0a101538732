//! The contract of [`KeepExports`].

use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt};
use imports::exports::ExportContent;
use imports::{ExportFolder, ExportId, ExportKey, FindObjects, KeepExports, ProjectId};
use messages::{Host, StoreError};
use writers::Format;

use contracts::{CheckResult, sample};

/// Follows a link like a reviewer's browser.
#[async_trait]
pub trait Download: Send + Sync {
    /// Returns the content at the link.
    async fn download(&self, url: &str) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>>;
}

/// The adapter under test.
pub struct Ports<'a> {
    /// Stores exports.
    pub keep: &'a dyn KeepExports,
    /// Follows the links.
    pub download: &'a dyn Download,
    /// Lists the bucket of the exports.
    pub find: &'a dyn FindObjects,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    export_download_has_the_written_bytes(ports).await?;
    interrupted_export_is_absent(ports).await?;
    repeated_export_replaces_the_first(ports).await?;
    exports_of_a_search_are_found_and_deleted(ports).await
}

impl Ports<'_> {
    fn key(&self) -> ExportKey {
        ExportKey {
            folder: ExportFolder::Search(
                ProjectId::from_uuid(self.host.fresh_id()),
                sample::partition(self.host),
            ),
            export: ExportId::from_uuid(self.host.fresh_id()),
            content: ExportContent::Studies(Format::default()),
        }
    }

    async fn keep(
        &self,
        key: &ExportKey,
        pieces: Vec<Result<Vec<u8>, StoreError>>,
    ) -> Result<u64, StoreError> {
        self.keep.keep(key, stream::iter(pieces).boxed()).await
    }

    /// Returns the export and its size, or `None` if it is absent.
    async fn linked(
        &self,
        key: &ExportKey,
    ) -> Result<Option<DownloadedBytes>, Box<dyn std::error::Error + Send + Sync>> {
        let before = self.host.now();
        let valid_for = Duration::from_secs(60);
        let Some(link) = self.keep.link(key, "studies.jsonl", valid_for).await? else { return Ok(None) };
        assert!(link.expires_at > before, "{}", link.expires_at);
        Ok(Some((self.download.download(&link.url).await?, link.size_bytes)))
    }
}

type DownloadedBytes = (Vec<u8>, u64);

/// This holds for any size.
pub async fn export_download_has_the_written_bytes(ports: &Ports<'_>) -> CheckResult {
    for (pieces, of) in [(0, 0), (1, 5), (3, 1_000), (70, 256 * 1024), (2, 8 << 20), (1, 17 << 20)] {
        let key = ports.key();
        assert_eq!(ports.linked(&key).await?, None, "nobody has made it");
        let piece = |n: usize| (0..of).map(|at| u8::try_from((n * 31 + at) % 251).unwrap_or(0)).collect();
        let pieces: Vec<Vec<u8>> = (0..pieces).map(piece).collect();
        let whole = pieces.concat();
        let size = ports.keep(&key, pieces.into_iter().map(Ok).collect()).await?;
        assert_eq!(size, whole.len() as u64);
        let linked = ports.linked(&key).await?;
        assert!(linked == Some((whole, size)), "other bytes, of {size}");
    }
    Ok(())
}

/// No part of the export is stored, regardless of the number of bytes sent.
pub async fn interrupted_export_is_absent(ports: &Ports<'_>) -> CheckResult {
    for after in [0, 10, 9 << 20] {
        let key = ports.key();
        let broken = Err(StoreError::unavailable("reading studies", "the store is away"));
        let kept = ports.keep(&key, vec![Ok(vec![b'x'; after]), broken]).await;
        let is_it =
            |error: &StoreError| error.is_retryable() && error.to_string().contains("reading studies");
        assert!(kept.as_ref().is_err_and(is_it), "{kept:?}");
        assert_eq!(ports.linked(&key).await?, None, "after {after} bytes");
    }
    Ok(())
}

/// The message that requests an export may be redelivered.
pub async fn repeated_export_replaces_the_first(ports: &Ports<'_>) -> CheckResult {
    let key = ports.key();
    for bytes in [&b"first"[..], b"the second"] {
        ports.keep(&key, vec![Ok(bytes.to_vec())]).await?;
        assert_eq!(ports.linked(&key).await?, Some((bytes.to_vec(), bytes.len() as u64)));
    }
    Ok(())
}

/// This is how the deletion of a search deletes its exports.
pub async fn exports_of_a_search_are_found_and_deleted(ports: &Ports<'_>) -> CheckResult {
    let (key, other) = (ports.key(), ports.key());
    let second = ExportKey { export: ExportId::from_uuid(ports.host.fresh_id()), ..key };
    let second = ExportKey { content: ExportContent::Studies(Format::Asreview), ..second };
    for key in [key, second, other] {
        ports.keep(&key, vec![Ok(b"{}\n".to_vec())]).await?;
    }
    // The id is enough to find an export of unknown format.
    let found = ports.find.find(&key.folder.beginning(second.export)).await?;
    assert_eq!(found.into_iter().map(|object| object.key).collect::<Vec<_>>(), [second.to_string()]);
    let found = ports.find.find(&key.folder.to_string()).await?;
    let mut keys: Vec<String> = found.into_iter().map(|object| object.key).collect();
    keys.sort_unstable();
    let mut expected = [key.to_string(), second.to_string()];
    expected.sort_unstable();
    assert_eq!(keys, expected);
    ports.find.remove(&key.to_string()).await?;
    let there = [ports.linked(&key).await?, ports.linked(&second).await?, ports.linked(&other).await?];
    assert_eq!(there.map(|linked| linked.is_some()), [false, true, true]);
    Ok(())
}
