//! The lock that lets one process at a time work in a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::folder::{self, Folder};

/// The maximum length of a process id in bytes.
const MAX_PID: u64 = 20;

/// The exclusive lock of a data directory. The lock ends when this value is dropped or when the process ends for any
/// reason, because the operating system holds the lock, and not the content of the file.
///
/// Both the directory and a file in it are locked. The directory cannot be removed and replaced under a process as a
/// file can. The file names the holder, is the only lock of earlier versions, and has to suffice where a directory
/// cannot be locked (Windows, NFS).
#[derive(Debug)]
pub struct Lock {
    dir: PathBuf,
    /// The open files that hold the locks.
    _locked: [Option<File>; 2],
}

/// The reason why a data directory cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("{} is in use by {}; wait for its end, or stop it", dir.display(), holder(*pid))]
    Held {
        /// The data directory.
        dir: PathBuf,
        /// The id of the other process, if the file names it.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("locking {} failed", dir.display())]
    Io {
        /// The data directory.
        dir: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".to_owned(), |pid| format!("process {pid}"))
}

impl Lock {
    pub(crate) fn take(dir: &Path) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { dir: dir.to_owned(), source };
        folder::create(dir).map_err(failed)?;
        let folder = Folder::open(dir, crate::settings::SEARCH_IMPORT).map_err(failed)?;
        let held = || LockError::Held { dir: dir.to_owned(), pid: read_pid(&folder.lock()) };
        let directory = match lock_directory(folder.path()) {
            Ok(directory) => directory,
            Err(TryLockError::WouldBlock) => return Err(held()),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        };
        // The file is not truncated when it is opened, because the content belongs to the holder until this process
        // holds the lock.
        let mut file =
            folder::private(OpenOptions::new().read(true).write(true).create(true).truncate(false))
                .open(folder.lock())
                .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held()),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        if is_alone(&file).map_err(failed)? {
            write_pid(&mut file).map_err(failed)?;
        }
        Ok(Self { dir: folder.path().to_owned(), _locked: [directory, Some(file)] })
    }

    /// Returns `true` if this or another process holds the lock.
    ///
    /// It takes a shared lock briefly, so a process that starts at that moment may be refused.
    pub(crate) fn is_held(folder: &Folder) -> std::io::Result<bool> {
        let is_held = |file: &File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        #[cfg(unix)]
        if is_held(&File::open(folder.path())?) {
            return Ok(true);
        }
        match folder::private(OpenOptions::new().read(true)).open(folder.lock()) {
            Ok(file) => Ok(is_held(&file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Locks the directory. Returns `None` on systems that cannot lock a directory.
#[cfg(unix)]
fn lock_directory(dir: &Path) -> Result<Option<File>, TryLockError> {
    let directory = File::open(dir).map_err(TryLockError::Error)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        // For example, NFS only locks files that are open for writing.
        Err(TryLockError::Error(_)) => Ok(None),
    }
}

#[cfg(not(unix))]
fn lock_directory(_dir: &Path) -> Result<Option<File>, TryLockError> {
    Ok(None)
}

/// Returns `true` if the file has no other name, so that writing it does not change a file elsewhere.
#[cfg(unix)]
fn is_alone(file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let facts = file.metadata()?;
    Ok(facts.is_file() && facts.nlink() == 1)
}

#[cfg(not(unix))]
fn is_alone(file: &File) -> std::io::Result<bool> {
    Ok(file.metadata()?.is_file())
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(path: &Path) -> Option<u32> {
    let file = folder::private(OpenOptions::new().read(true)).open(path).ok()?;
    let mut text = String::new();
    file.take(MAX_PID).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
