//! The data directory on the disk: what belongs in it, who may read it, and which files are opened.
//!
//! A directory may come out of an archive that somebody else has packed, and its database too. So whatever has the
//! place of one of our files and is something else, above all a symbolic link, is refused; a file is opened without
//! following links; and a name from the database is one that [`Folder`] itself could have given. Only the directory
//! itself may be reached by a link: whoever starts the program has named it.

use std::fs::{DirBuilder, File, FileType, Metadata, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// The database's name in the data directory.
pub const DATABASE: &str = "search-import.sqlite";
/// What SQLite puts beside it.
const BESIDE_DATABASE: [&str; 3] = ["-wal", "-shm", "-journal"];
/// The objects' folder in the data directory.
const OBJECTS: &str = "objects";
/// The file that names the process which works in the data directory.
const LOCK: &str = "lock";
/// An upload's file begins like this until its object is stored.
const UNFINISHED: &str = "partial-";

/// What has the place of something of ours.
#[derive(Debug, thiserror::Error)]
#[error("{} is {found} where {expected} belongs, so nothing is touched", path.display())]
struct Misplaced {
    path: PathBuf,
    found: &'static str,
    expected: &'static str,
}

/// A data directory whose parts are what they should be, as far as they are there.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Without symbolic links.
    dir: PathBuf,
}

impl Folder {
    /// One that is there.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let folder = Self { dir: dir.canonicalize()? };
        is_folder(&folder.dir)?;
        is_folder(&folder.objects())?;
        folder.files().iter().try_for_each(|file| is_file(file).map(drop))?;
        Ok(folder)
    }

    /// One to work in: what is missing is made, and nobody else may read what is in it.
    pub(crate) fn prepare(dir: &Path) -> Result<Self> {
        create(dir)?;
        let folder = Self::open(dir)?;
        create(&folder.objects())?;
        for path in folder.files().iter().chain([&folder.objects()]) {
            keep_private(path)?;
        }
        Ok(folder)
    }

    /// The directory, without symbolic links.
    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.dir.join(DATABASE)
    }

    /// What brings the database's log to the disk. It is opened when it is first flushed, which is after a commit, and
    /// stays the same file as long as the database is open.
    pub(crate) fn flush_log(&self) -> impl FnMut() -> Result<()> + Send + use<> {
        let path = self.dir.join(format!("{DATABASE}-wal"));
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

    /// Where the bytes of an object are, once it is stored and while it is not.
    pub(crate) fn object(&self, name: ObjectName) -> (PathBuf, PathBuf) {
        let objects = self.objects();
        (objects.join(name.to_string()), objects.join(format!("{UNFINISHED}{name}")))
    }

    fn files(&self) -> Vec<PathBuf> {
        let beside = BESIDE_DATABASE.map(|end| self.dir.join(format!("{DATABASE}{end}")));
        [self.lock(), self.database()].into_iter().chain(beside).collect()
    }

    /// What would be lost if the directory were begun anew, in words; none when its database is missing because there
    /// never was one.
    pub(crate) fn orphaned(&self) -> Result<Option<String>> {
        let objects = self.objects();
        if !is_folder(&objects)? {
            return Ok(None);
        }
        let names = std::fs::read_dir(&objects)?.collect::<Result<Vec<_>>>()?;
        let files =
            names.iter().filter(|entry| Found::of(&entry.file_name().to_string_lossy()).is_some()).count();
        Ok((files > 0).then(|| format!("{} holds {files} uploaded files", objects.display())))
    }

    /// As [`Folder::orphaned`], when there is no database yet or an empty file: a log without its database is what
    /// SQLite would delete.
    pub(crate) fn left_without_database(&self) -> Result<Option<String>> {
        if size(&self.database())? > 0 {
            return Ok(None);
        }
        let log = self.dir.join(format!("{DATABASE}-wal"));
        match size(&log)? {
            0 => self.orphaned(),
            bytes => Ok(Some(format!("{} holds {bytes} bytes of it", log.display()))),
        }
    }

    /// Returns the space that is left for a user without special rights; none where the file system cannot tell.
    #[cfg(unix)]
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        let facts = rustix::fs::statvfs(&self.dir).ok()?;
        Some(facts.f_bavail.saturating_mul(facts.f_frsize))
    }

    #[cfg(not(unix))]
    pub(crate) fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Makes the database's file, so that nobody else can read it from the beginning. SQLite gives those beside it the
    /// same permissions.
    pub(crate) fn create_database(&self) -> Result<()> {
        match private(OpenOptions::new().write(true).create_new(true)).open(self.database()) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The name of an object's file, as the database holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObjectName(Uuid);

impl ObjectName {
    #[cfg(feature = "search")]
    pub(crate) fn new(id: Uuid) -> Self {
        Self(id)
    }

    /// Reads a name; nothing else than a UUID as it is usually written is one, so it leads to no other folder.
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

/// A file in the folder of objects that this program could have made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// All bytes of an object.
    Object(ObjectName),
    /// An upload's, until its object is stored.
    Unfinished(ObjectName),
}

impl Found {
    /// By its name. None for what this program does not make, and so does not touch.
    pub(crate) fn of(name: &str) -> Option<Self> {
        match name.strip_prefix(UNFINISHED) {
            Some(rest) => ObjectName::parse(rest).map(Self::Unfinished),
            None => ObjectName::parse(name).map(Self::Object),
        }
    }
}

/// What of a path is there, itself and not what a link leads to.
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

/// Whether a folder is there; fails when something else is.
fn is_folder(path: &Path) -> Result<bool> {
    is(path, FileType::is_dir, "a folder")
}

/// Whether a regular file is there; fails when something else is.
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
    Err(Error::new(ErrorKind::InvalidInput, Misplaced { path: path.to_owned(), found, expected }))
}

/// Makes a folder that nobody else may enter, and those above it. One that is there stays as it is.
pub(crate) fn create(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// A file that is made this way is nobody else's to read; a link is not followed, and a pipe not waited for.
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
        // In plain words, if it is because of what is there.
        Err(error) => return Err(is_file(path).err().unwrap_or(error)),
    };
    if file.metadata().await?.is_file() {
        return Ok(file);
    }
    is_file(path)?;
    Err(Error::new(ErrorKind::InvalidInput, "it was not a file when it was opened"))
}

/// Makes a file that was not there.
#[cfg(feature = "search")]
pub(crate) async fn create_file(path: &Path) -> Result<tokio::fs::File> {
    let mut options = OpenOptions::new();
    private(options.write(true).create_new(true));
    tokio::fs::OpenOptions::from(options).open(path).await
}

/// Takes the rights that others have on what earlier releases made. What belongs to another user stays as it is.
#[cfg(unix)]
fn keep_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;

    let Some(facts) = look(path)? else { return Ok(()) };
    let mode = facts.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    // By its path, although that follows links: a file of SQLite's that is opened and closed here would lose the locks
    // that this process has on it.
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

    #[test]
    fn only_a_name_that_was_given_here_is_one_of_ours() {
        let name = "019b76da-a800-7000-8000-000005000001";
        let object = ObjectName::parse(name).unwrap();
        assert_eq!(Found::of(name), Some(Found::Object(object)));
        assert_eq!(Found::of(&format!("partial-{name}")), Some(Found::Unfinished(object)));
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
            assert_eq!(Found::of(foreign), None, "{foreign}");
        }
    }
}
