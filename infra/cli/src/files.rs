//! Files and folders named on the command line. Commands never overwrite existing files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, IntoInnerError, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use tempfile::{Builder, NamedTempFile, PathPersistError, TempPath};

/// Returns the size of a regular file.
///
/// # Errors
/// Returns the reason if it is not a regular file or cannot be opened.
pub(crate) fn size(path: &Path) -> Result<u64, String> {
    let not_opened = |error: io::Error| match error.kind() {
        ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => format!("the file cannot be opened: {error}"),
    };
    // Opening a named pipe waits for a program that writes to it.
    let metadata = fs::metadata(path).map_err(not_opened)?;
    if metadata.is_dir() {
        return Err("it is a directory, not a file".to_owned());
    }
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    File::open(path).map(drop).map_err(not_opened)?;
    Ok(metadata.len())
}

/// Returns the name of a file without its folder.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned())
}

/// The beginning of the temporary name of an incomplete file.
const INCOMPLETE: &str = ".search-import-incomplete-";

/// A new file that has a temporary name in its folder until it is complete. An incomplete file could be mistaken for a
/// complete one. Dropping it before it is finished deletes it.
pub(crate) struct IncompleteFile {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl IncompleteFile {
    /// Creates the file.
    ///
    /// # Errors
    /// Returns an error if a file of the final name exists, or none can be created.
    pub(crate) fn create(path: &Path) -> anyhow::Result<Self> {
        let created = match path.symlink_metadata() {
            Ok(_) => Err(ErrorKind::AlreadyExists.into()),
            Err(error) if error.kind() == ErrorKind::NotFound => create_incomplete(path),
            Err(error) => Err(error),
        };
        let file = created.map_err(|error| not_created(path, error))?;
        Ok(Self { file: BufWriter::new(file), path: path.to_owned() })
    }

    /// Writes the rest, and closes the file.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(crate) fn complete(self) -> anyhow::Result<CompleteFile> {
        let Self { file, path } = self;
        let written = file.into_inner().map_err(IntoInnerError::into_error);
        let written = written.with_context(|| format!("writing to {} failed", path.display()))?;
        Ok(CompleteFile { temporary: written.into_temp_path(), path })
    }
}

/// A complete file that still has its temporary name. Dropping it deletes it.
pub(crate) struct CompleteFile {
    temporary: TempPath,
    path: PathBuf,
}

impl CompleteFile {
    /// Gives the file its final name.
    ///
    /// # Errors
    /// Returns an error if a file of the final name was created in the meantime, or the file cannot be renamed.
    pub(crate) fn publish(self) -> anyhow::Result<()> {
        let Self { temporary, path } = self;
        let Err(PathPersistError { error, path: temporary }) = temporary.persist_noclobber(&path) else {
            return Ok(());
        };
        if error.kind() == ErrorKind::AlreadyExists {
            return Err(not_created(&path, error));
        }
        // The file system can neither rename without overwriting nor create links, so an empty file takes the name.
        let named = OpenOptions::new().write(true).create_new(true).open(&path);
        named.map_err(|error| not_created(&path, error))?;
        let renamed = temporary.persist(&path).map_err(|error| error.error);
        renamed.with_context(|| format!("writing to {} failed", path.display()))
    }
}

impl Write for IncompleteFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

fn create_incomplete(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = Builder::new();
    builder.prefix(INCOMPLETE);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As for any new file, and restricted by the umask. Temporary files are private by default.
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder.unwrap_or(Path::new(".")))
}

/// Returns the error of a file that cannot be created, with the next step.
fn not_created(path: &Path, error: io::Error) -> anyhow::Error {
    let shown = path.display();
    match error.kind() {
        _ if path.is_dir() => anyhow!("{shown} is a folder; name a file in it with --out"),
        ErrorKind::AlreadyExists => {
            anyhow!(
                "{shown} cannot be created: it exists and is never overwritten; name another file with --out"
            )
        }
        ErrorKind::NotFound => {
            anyhow!(
                "{shown} cannot be created: its folder does not exist; create it, or name another with --out"
            )
        }
        _ => anyhow::Error::new(error)
            .context(format!("{shown} cannot be created; name another file with --out")),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A signal may end the program at any time before the file is finished.
    #[test]
    fn incomplete_file_never_has_its_final_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("export.ris");
        let names = || fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        let begun = || {
            let mut file = IncompleteFile::create(&path).unwrap();
            file.write_all(b"TY  - JOUR").unwrap();
            file.flush().unwrap();
            file
        };
        let dropped = begun();
        let [ref name]: [_; 1] = Vec::try_into(names()).unwrap();
        assert!(name.to_str().unwrap().starts_with(INCOMPLETE), "{name:?}");
        drop(dropped);
        assert_eq!(names(), Vec::<std::ffi::OsString>::new());

        let (first, second) = (begun(), begun());
        let first = first.complete().unwrap();
        assert!(!path.exists());
        first.publish().unwrap();
        let refused = second.complete().unwrap().publish().unwrap_err().to_string();
        assert!(refused.contains("it exists and is never overwritten"), "{refused}");
        assert_eq!(fs::read(&path).unwrap(), b"TY  - JOUR");
        assert_eq!(names(), ["export.ris"]);
        assert!(IncompleteFile::create(&path).is_err());
        let other = folder.path().join("other.ris");
        File::create(&other).unwrap();
        let modes = [path, other].map(|path| path.metadata().unwrap().permissions());
        assert_eq!(modes[0], modes[1]);
    }
}
