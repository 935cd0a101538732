//! Creating the files and folders that a command writes, which never replace what exists.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};

/// Creates a file that did not exist.
///
/// # Errors
/// When it exists, or cannot be created.
pub(crate) fn create(path: &Path) -> anyhow::Result<File> {
    let error = match OpenOptions::new().write(true).create_new(true).open(path) {
        Ok(file) => return Ok(file),
        Err(error) => error,
    };
    let shown = path.display();
    match error.kind() {
        _ if path.is_dir() => bail!("{shown} is a folder; name a file in it with --out"),
        ErrorKind::AlreadyExists => {
            bail!(
                "{shown} cannot be created: it exists, and is not overwritten; name another file with --out"
            )
        }
        ErrorKind::NotFound => {
            bail!(
                "{shown} cannot be created: its folder does not exist; make that first, or name another with --out"
            )
        }
        _ => Err(error).with_context(|| format!("{shown} cannot be created; name another file with --out")),
    }
}

/// Makes a folder, unless it exists.
///
/// # Errors
/// When something else has its place, or it cannot be made.
pub(crate) fn make_folder(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        bail!("{shown} is a file, and several files are written; name a folder with --out");
    }
    fs::create_dir_all(path)
        .with_context(|| format!("the folder {shown} cannot be made; name another with --out"))
}
