//! One process at a time works in a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The exclusive right to work in a data directory. It ends when this is dropped, or with the process, however
/// that ends: the operating system keeps it, not the file's content.
#[derive(Debug)]
pub struct Lock {
    dir: PathBuf,
    /// The lock is the open file's.
    _file: File,
}

/// Why a data directory cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process has it.
    #[error("{} is in use by {}", dir.display(), holder(*pid))]
    Held {
        /// The data directory.
        dir: PathBuf,
        /// The other process, as far as it has said so.
        pid: Option<u32>,
    },
    /// The lock file cannot be used.
    #[error("locking {} failed", dir.display())]
    Io {
        /// The data directory.
        dir: PathBuf,
        /// Why.
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
        std::fs::create_dir_all(dir).map_err(failed)?;
        let path = dir.join("lock");
        // Not truncated when opened: until the lock is ours, the content is somebody else's.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(LockError::Held { dir: dir.to_owned(), pid: read_pid(&mut file) });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        write_pid(&mut file).map_err(failed)?;
        Ok(Self { dir: dir.canonicalize().map_err(failed)?, _file: file })
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}
