//! The data directory on the disk: its files, their permissions, and opening them.
//!
//! A directory, and its database, may come from an untrusted archive. A file of another type with the name of one of
//! these files, such as a symbolic link, is refused. Files are opened without following links, and names in the
//! database must be names that [`Folder`] could have generated. Only the directory itself may be reached through a
//! link, because the user who starts the program has named it.

use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The name of the search import's database in a data directory. A directory that already contains it keeps this name
/// for every system, because earlier versions gave it to all databases.
pub const DATABASE: &str = "search-import.sqlite";
/// The suffixes of SQLite's additional files.
const DATABASE_SUFFIXES: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The objects' folder in the data directory.
const OBJECTS: &str = "objects";
/// The file that names the process which works in the data directory.
const LOCK: &str = "lock";
/// The prefix of the file of an upload until its object is stored.
const UNFINISHED: &str = "partial-";

/// The error of a path that has another type of file than expected.
#[derive(Debug, thiserror::Error)]
#[error("{} is {found} where {expected} is expected, so nothing is changed", path.display())]
struct FileTypeError {
    path: PathBuf,
    found: &'static str,
    expected: &'static str,
}

/// A data directory whose existing parts have the expected types.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// The path without symbolic links.
    dir: PathBuf,
    /// The name of the database.
    database: String,
}

impl Folder {
    /// Opens an existing data directory of a system.
    pub(crate) fn open(dir: &Path, system: &str) -> Result<Self> {
        let dir = dir.canonicalize()?;
        let folder = Self { database: database_name(&dir, system), dir };
        is_folder(&folder.dir)?;
        is_folder(&folder.objects())?;
        folder.files().iter().try_for_each(|file| is_file(file).map(drop))?;
        Ok(folder)
    }

    /// Opens a data directory to work in. Creates missing parts, readable only by their owner.
    pub(crate) fn prepare(dir: &Path, system: &str) -> Result<Self> {
        create(dir)?;
        let folder = Self::open(dir, system)?;
        create(&folder.objects())?;
        for path in folder.files().iter().chain([&folder.objects()]) {
            keep_private(path)?;
        }
        Ok(folder)
    }

    /// Returns the path of the directory, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join(&self.database)
    }

    /// Returns a function that flushes the database's log to the disk. The log is opened at the first flush, which
    /// follows a commit, and stays the same file while the database is open.
    pub(crate) fn flush_log(&self) -> impl FnMut() -> Result<()> + Send + use<> {
        let path = self.dir.join(format!("{}-wal", self.database));
        let mut log: Option<File> = None;
        move || match &log {
            Some(log) => log.sync_data(),
            None => {
                let opened = private(OpenOptions::new().read(true).write(true)).open(&path)?;
                opened.sync_data()?;
                log = Some(opened);
                Ok(())
            }
        }
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.dir.join(OBJECTS)
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.dir.join(LOCK)
    }

    /// Returns the paths of the bytes of an object: once it is stored, and before.
    pub(crate) fn object(&self, name: ObjectName) -> (PathBuf, PathBuf) {
        let objects = self.objects();
        (objects.join(name.to_string()), objects.join(format!("{UNFINISHED}{name}")))
    }

    /// Creates a file for temporary data, which no other program can open. It disappears when it is closed; on systems
    /// that cannot delete an open file, at the next start.
    #[cfg(feature = "search")]
    pub(crate) fn scratch(&self, name: ObjectName) -> Result<File> {
        let (_, path) = self.object(name);
        let file = private(OpenOptions::new().read(true).write(true).create_new(true)).open(&path)?;
        let _ = std::fs::remove_file(&path);
        Ok(file)
    }

    fn files(&self) -> Vec<PathBuf> {
        let beside = DATABASE_SUFFIXES.map(|end| self.dir.join(format!("{}{end}", self.database)));
        [self.lock(), self.database()].into_iter().chain(beside).collect()
    }

    /// Describes the data that a new database would hide; `None` if the directory never had a database.
    pub(crate) fn orphaned(&self) -> Result<Option<String>> {
        let objects = self.objects();
        if !is_folder(&objects)? {
            return Ok(None);
        }
        let names = std::fs::read_dir(&objects)?.collect::<Result<Vec<_>>>()?;
        let files = names
            .iter()
            .filter(|entry| ObjectFile::of(&entry.file_name().to_string_lossy()).is_some())
            .count();
        Ok((files > 0).then(|| format!("{} holds {files} uploaded files", objects.display())))
    }

    /// Works like [`Folder::orphaned`], if there is no database or an empty file: SQLite would delete a log without its
    /// database.
    pub(crate) fn left_without_database(&self) -> Result<Option<String>> {
        if size(&self.database())? > 0 {
            return Ok(None);
        }
        let log = self.dir.join(format!("{}-wal", self.database));
        match size(&log)? {
            0 => self.orphaned(),
            bytes => Ok(Some(format!("{} holds {bytes} bytes of it", log.display()))),
        }
    }

    /// Returns the space that is left for a user without special rights; `None` if the file system does not report it.
    #[cfg(unix)]
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let facts = rustix::fs::statvfs(&self.dir).ok()?;
        Some(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    #[cfg(not(unix))]
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Creates the file of the database so that only its owner can read it from the start. SQLite creates its
    /// additional files with the same permissions.
    pub(crate) fn create_database(&self) -> Result<()> {
        match private(OpenOptions::new().write(true).create_new(true)).open(self.database()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Returns the name of the database of a system, such as `orders.sqlite`.
fn database_name(dir: &Path, system: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name = format!("{}.sqlite", system.chars().map(safe).collect::<String>());
    // A link counts as existing, so that it is refused like one with the other name.
    let exists = |name: &str| dir.join(name).symlink_metadata().is_ok();
    if !exists(&name) && exists(DATABASE) { DATABASE.to_owned() } else { name }
}

/// The name of an object's file, as stored in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName(Uuid);

impl ObjectName {
    #[cfg(feature = "search")]
    pub(crate) fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Parses a name. Only a UUID in its usual form is a valid name, so a name cannot lead to another folder.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let name = Self(Uuid::try_parse(text).ok()?);
        (name.to_string() == text).then_some(name)
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(&self.0, f)
    }
}

/// A file in the folder of objects that this program could have created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectFile {
    /// All bytes of an object.
    Object(ObjectName),
    /// An upload whose object is not stored yet.
    Unfinished(ObjectName),
}

impl ObjectFile {
    /// Classifies a file by its name. Returns `None` for files that this program does not create, and therefore does
    /// not touch.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name.strip_prefix(UNFINISHED) {
            Some(rest) => ObjectName::parse(rest).map(Self::Unfinished),
            None => ObjectName::parse(name).map(Self::Object),
        }
    }
}

/// Returns the metadata of a path, or `None` if it does not exist. A link is not followed.
fn look(path: &Path) -> Result<Option<Metadata>> {
    match path.symlink_metadata() {
        Ok(facts) => Ok(Some(facts)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn size(path: &Path) -> Result<u64> {
    Ok(look(path)?.map_or(0, |facts| facts.len()))
}

/// Returns `true` if a folder exists; fails if the path is something else.
fn is_folder(path: &Path) -> Result<bool> {
    is(path, FileType::is_dir, "a folder")
}

/// Returns `true` if a regular file exists; fails if the path is something else.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    is(path, FileType::is_file, "a file")
}

fn is(path: &Path, kind: fn(&FileType) -> bool, expected: &'static str) -> Result<bool> {
    let Some(facts) = look(path)? else { return Ok(false) };
    let found = facts.file_type();
    if kind(&found) {
        return Ok(true);
    }
    let found = match found {
        found if found.is_symlink() => "a symbolic link",
        found if found.is_dir() => "a folder",
        found if found.is_file() => "a file",
        _ => "a device, a pipe or a socket",
    };
    Err(Error::new(ErrorKind::InvalidInput, FileTypeError { path: path.to_owned(), found, expected }))
}

/// Creates a folder that only its owner may enter, and its parents. An existing folder is left unchanged.
pub(crate) fn create(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Makes new files readable only by their owner. Links are not followed, and opening a pipe does not block.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;
        options.mode(0o600).custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    options
}

/// Opens a regular file to read it.
#[cfg(feature = "search")]
pub(crate) async fn open(path: &Path) -> Result<tokio::fs::File> {
    let mut options = OpenOptions::new();
    private(options.read(true));
    let file = match tokio::fs::OpenOptions::from(options).open(path).await {
        Ok(file) => file,
        // Prefers the plain description if the path has the wrong type.
        Err(error) => return Err(is_file(path).err().unwrap_or(error)),
    };
    if file.metadata().await?.is_file() {
        return Ok(file);
    }
    is_file(path)?;
    Err(Error::new(ErrorKind::InvalidInput, "it was not a file when it was opened"))
}

/// Creates a file that must not exist yet.
#[cfg(feature = "search")]
pub(crate) async fn create_file(path: &Path) -> Result<tokio::fs::File> {
    let mut options = OpenOptions::new();
    private(options.write(true).create_new(true));
    tokio::fs::OpenOptions::from(options).open(path).await
}

/// Removes the permissions of other users from files of earlier versions. Files of another user are left unchanged.
#[cfg(unix)]
fn keep_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let Some(facts) = look(path)? else { return Ok(()) };
    let mode = facts.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    // Uses the path, although that follows links: opening and closing a file of SQLite here would release the locks
    // that this process holds on it.
    match std::fs::set_permissions(path, PermissionsExt::from_mode(mode & 0o700)) {
        Err(error) if error.kind() != ErrorKind::PermissionDenied => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn keep_private(_path: &Path) -> Result<()> {
    Ok(())
}

/// Removes a file. A file that cannot be removed stays; if it belongs to an unfinished upload, the next
/// [`Store::recover`](crate::Store::recover) removes it.
pub(crate) async fn remove(path: &Path) {
    if let Err(error) = tokio::fs::remove_file(path).await {
        tracing::debug!(path = %path.display(), %error, "an unlisted file could not be removed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(all(unix, feature = "search"))]
    #[test]
    fn scratch_file_has_no_name_and_is_private() {
        use std::io::{Read, Seek, Write};
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::prepare(dir.path(), "orders").unwrap();
        let name = ObjectName::new(Uuid::nil());
        let mut file = folder.scratch(name).unwrap();
        assert_eq!(folder.objects().read_dir().unwrap().count(), 0);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        file.write_all(b"keys").unwrap();
        file.rewind().unwrap();
        let mut read = String::new();
        file.read_to_string(&mut read).unwrap();
        assert_eq!(read, "keys");
        // The file of an upload with this name is kept.
        let (_, path) = folder.object(name);
        std::fs::write(&path, "upload").unwrap();
        folder.scratch(name).unwrap_err();
        assert_eq!(std::fs::read(&path).unwrap(), b"upload");
    }

    #[test]
    fn only_generated_object_names_are_recognized() {
        let name = "019b76da-a800-7000-8000-000005000001";
        let object = ObjectName::parse(name).unwrap();
        assert_eq!(ObjectFile::of(name), Some(ObjectFile::Object(object)));
        assert_eq!(ObjectFile::of(&format!("partial-{name}")), Some(ObjectFile::Unfinished(object)));
        for foreign in [
            "",
            "..",
            "../lock",
            "/etc/passwd",
            "notes.txt",
            "partial-",
            "partial-x",
            "partial-partial-019b76da-a800-7000-8000-000005000001",
            "019B76DA-A800-7000-8000-000005000001",
            "019b76daa80070008000000005000001",
            "{019b76da-a800-7000-8000-000005000001}",
            "019b76da-a800-7000-8000-000005000001/../x",
        ] {
            assert_eq!(ObjectFile::of(foreign), None, "{foreign}");
        }
    }
}
