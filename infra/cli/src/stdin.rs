//! A file from standard input, which is spooled to the disk because its size must be announced before the upload.
//!
//! The spool file is kept in the data directory while its upload is pending, so that `resume` finds it after an
//! interruption. Without a data directory, it is a temporary file.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use embedded::Store;
use tempfile::{Builder, NamedTempFile, TempPath};
use uuid::Uuid;

/// The argument for standard input.
const MARK: &str = "-";
/// The default name of the file.
pub(crate) const NAME: &str = "stdin";
/// The prefix of the names of spool files, which is followed by an id.
const SPOOL_PREFIX: &str = "stdin-";

/// Returns `true` for the argument that stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path == Path::new(MARK)
}

/// A wrong use of standard input.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    /// Reading from a terminal would look like a hanging program.
    #[error(
        "- reads a file from standard input, which is a terminal; write `search-import import - < FILE`, or the file's \
         name instead of -"
    )]
    Terminal,
    #[error("standard input can be read once, but - is given several times")]
    Repeated,
    #[error("--name is for the file from standard input, but none of the files is -")]
    Name,
}

/// Checks the use of standard input for these files.
///
/// # Errors
/// Returns an error if standard input cannot be read as requested.
pub(crate) fn check(files: &[PathBuf], name: Option<&str>) -> Result<(), Misuse> {
    match files.iter().filter(|path| is_stdin(path)).count() {
        0 if name.is_some() => Err(Misuse::Name),
        0 => Ok(()),
        1 if io::stdin().is_terminal() => Err(Misuse::Terminal),
        1 => Ok(()),
        _ => Err(Misuse::Repeated),
    }
}

/// A spooled file.
pub(crate) struct SpoolFile {
    pub(crate) path: TempPath,
    pub(crate) size_bytes: u64,
}

/// Spools standard input to a file, up to one byte more than the limit, so that a longer file is rejected as too large.
pub(crate) async fn spool(dir: Option<&Path>, max_bytes: u64) -> anyhow::Result<SpoolFile> {
    let file = create(dir).context("cannot create a file for the data from standard input")?;
    // If this future is dropped, the path deletes the file even while the thread below still writes to it.
    let (file, path) = file.into_parts();
    let copied = tokio::task::spawn_blocking(move || copy(file, max_bytes.saturating_add(1))).await?;
    let failed = || format!("writing the data from standard input to {} failed", path.display());
    Ok(SpoolFile { size_bytes: copied.with_context(failed)?, path })
}

fn create(dir: Option<&Path>) -> io::Result<NamedTempFile> {
    match dir {
        Some(dir) => {
            let name = format!("{SPOOL_PREFIX}{}", Uuid::new_v4());
            Builder::new().prefix(&name).rand_bytes(0).tempfile_in(dir.canonicalize()?)
        }
        None => Builder::new().prefix(SPOOL_PREFIX).tempfile(),
    }
}

fn copy(mut file: File, max_bytes: u64) -> io::Result<u64> {
    io::copy(&mut io::stdin().lock().take(max_bytes), &mut file)
}

/// Deletes spool files in a data directory that no pending upload needs, because they were uploaded or never announced.
pub(crate) async fn tidy(store: &Store, dir: &Path) -> anyhow::Result<()> {
    let pending = store.pending_uploads().await?;
    let dir = dir.canonicalize()?;
    for entry in std::fs::read_dir(&dir)? {
        let path = entry?.path();
        if is_spool_file(&path) && !pending.iter().any(|pending| pending.upload.path == path) {
            std::fs::remove_file(&path).with_context(|| format!("deleting {} failed", path.display()))?;
        }
    }
    Ok(())
}

fn is_spool_file(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(SPOOL_PREFIX)).is_some_and(|id| Uuid::try_parse(id).is_ok())
}
