//! Files and folders named on the command line. Commands never overwrite existing files.

use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};

/// Returns the size of a regular file.
///
/// # Errors
/// Returns the reason if it is not a regular file or cannot be opened.
pub(crate) fn size(path: &Path) -> Result<u64, String> {
    let file = File::open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("the file cannot be opened: {error}"),
    })?;
    let metadata = file.metadata().map_err(|error| format!("the file cannot be examined: {error}"))?;
    if metadata.is_dir() {
        return Err("it is a directory, not a file".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    Ok(metadata.len())
}

/// Returns the name of a file without its folder.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// Creates a new file.
///
/// # Errors
/// Returns an error if the file exists or cannot be created.
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
                "{shown} cannot be created: it exists and is never overwritten; name another file with --out"
            )
        }
        ErrorKind::NotFound => {
            bail!(
                "{shown} cannot be created: its folder does not exist; create it, or name another with --out"
            )
        }
        _ => Err(error).with_context(|| format!("{shown} cannot be created; name another file with --out")),
    }
}

/// Creates a folder unless it exists.
///
/// # Errors
/// Returns an error if it is a file or cannot be created.
pub(crate) fn create_folder(path: &Path) -> anyhow::Result<()> {
    let shown = path.display();
    if path.exists() && !path.is_dir() {
        bail!("{shown} is a file, and several files are written; name a folder with --out");
    }
    fs::create_dir_all(path)
        .with_context(|| format!("the folder {shown} cannot be created; name another with --out"))
}
