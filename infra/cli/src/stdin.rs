//! A file from standard input. It is kept on the disk until it is uploaded, since its size is announced before that.
//!
//! In a data directory it stays there while its upload is pending, so that `resume` finds it after an interruption;
//! elsewhere it goes with the program.

use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::Context;
use embedded::Store;
use tempfile::{Builder, NamedTempFile, TempPath};
use uuid::Uuid;

/// What stands for it on the command line.
const MARK: &str = "-";
/// Its name unless another one is given.
pub(crate) const NAME: &str = "stdin";
/// What the names of such files begin with in a data directory; the rest is an id.
const KEPT: &str = "stdin-";

/// Whether a file is to come from standard input.
pub(crate) fn is_meant(path: &Path) -> bool {
    path == Path::new(MARK)
}

/// Why it cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Misuse {
    /// Nobody would know that something is to be typed, and nobody types a reference file.
    #[error(
        "- reads a file from standard input, which is a terminal; write `search-import import - < FILE`, or the file's \
         name instead of -"
    )]
    Terminal,
    #[error("standard input can be read once, and - is given several times")]
    Repeated,
    #[error("--name is for the file from standard input, and none of the files is -")]
    Name,
}

/// Whether it can come from there, for these files.
///
/// # Errors
/// When it cannot.
pub(crate) fn check(files: &[PathBuf], name: Option<&str>) -> Result<(), Misuse> {
    match files.iter().filter(|path| is_meant(path)).count() {
        0 if name.is_some() => Err(Misuse::Name),
        0 => Ok(()),
        1 if io::stdin().is_terminal() => Err(Misuse::Terminal),
        1 => Ok(()),
        _ => Err(Misuse::Repeated),
    }
}

/// What came.
pub(crate) struct Spooled {
    pub(crate) path: TempPath,
    pub(crate) size_bytes: u64,
}

/// Writes standard input to a file, up to a byte more than is allowed: such a file is refused as any other that is too
/// large.
///
/// # Errors
/// When it cannot be read or written.
pub(crate) async fn spool(dir: Option<&Path>, max_bytes: u64) -> anyhow::Result<Spooled> {
    let file = create(dir).context("no file can be created for what comes from standard input")?;
    // Whoever breaks this off removes the file, whatever is still being written to it.
    let (file, path) = file.into_parts();
    let copied = tokio::task::spawn_blocking(move || copy(file, max_bytes.saturating_add(1))).await?;
    let failed = || format!("writing what comes from standard input to {} failed", path.display());
    Ok(Spooled { size_bytes: copied.with_context(failed)?, path })
}

fn create(dir: Option<&Path>) -> io::Result<NamedTempFile> {
    match dir {
        Some(dir) => {
            let name = format!("{KEPT}{}", Uuid::new_v4());
            Builder::new().prefix(&name).rand_bytes(0).tempfile_in(dir.canonicalize()?)
        }
        None => Builder::new().prefix(KEPT).tempfile(),
    }
}

fn copy(mut file: File, max_bytes: u64) -> io::Result<u64> {
    io::copy(&mut io::stdin().lock().take(max_bytes), &mut file)
}

/// Removes the files in a data directory that wait for no upload: it was made, or never announced.
///
/// # Errors
/// When the store does not answer, or one of them cannot be removed.
pub(crate) async fn tidy(store: &Store, dir: &Path) -> anyhow::Result<()> {
    let pending = store.pending_uploads().await?;
    let dir = dir.canonicalize()?;
    for entry in std::fs::read_dir(&dir)? {
        let path = entry?.path();
        if is_kept(&path) && !pending.iter().any(|pending| pending.upload.path == path) {
            std::fs::remove_file(&path).with_context(|| format!("removing {} failed", path.display()))?;
        }
    }
    Ok(())
}

/// Whether it is one of these files, by its name.
fn is_kept(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.and_then(|name| name.strip_prefix(KEPT)).is_some_and(|id| Uuid::try_parse(id).is_ok())
}
