//! Why a data directory cannot be opened.

use std::path::{Path, PathBuf};

use messages::store::DiskRefused;
use rusqlite::ErrorCode;

use crate::fault::{is_of_disk, without_sql};
use crate::tables::VERSION;

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder, or a file in it, cannot be made or used.
    #[error("preparing {} failed", path.display())]
    Folder {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error("opening {} failed", path.display())]
    Database {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is something else.
    #[error("{} is not a database of search import, and is not touched; name another data directory", path.display())]
    NotOurs {
        /// Which.
        path: PathBuf,
    },
    /// It is one of ours no longer: cut off, overwritten, or changed by hand.
    #[error("{} is damaged; put the folder back from a backup, or move it away to begin anew", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: rusqlite::Error,
    },
    /// It has code in it, which SQLite would run at each statement on its tables, for any length of time.
    #[error(
        "{} has the {kind} \"{name}\", which could run code of another program: put the folder back from a backup, or \
         remove the {kind} with sqlite3",
        path.display()
    )]
    Programmed {
        /// Which.
        path: PathBuf,
        /// `trigger`, `view` or `virtual table`.
        kind: String,
        /// What it is called.
        name: String,
    },
    /// The database is not there, and what it listed is.
    #[error(
        "{} is missing or empty, and {left}; nothing is touched: put the database back from a backup, or move the folder \
         away to begin anew",
        path.display()
    )]
    Lost {
        /// The database.
        path: PathBuf,
        /// What is left of it, in words.
        left: String,
    },
    /// A later release wrote it.
    #[error("{} has schema version {found}, and this release knows up to {}: use a newer one", path.display(), VERSION)]
    Newer {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// An earlier release wrote it, and reading alone cannot upgrade it.
    #[error("{} has schema version {found}, and reading needs {}; a command that works in it, such as `resume`, upgrades it", path.display(), VERSION)]
    Older {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl OpenError {
    pub(crate) fn sqlite(path: &Path, source: rusqlite::Error) -> Self {
        let (path, source) = (path.to_owned(), without_sql(source));
        if is_of_disk(&source) {
            let refused = DiskRefused(format!("its disk is full, or takes no more data: {source}"));
            let source = std::io::Error::new(std::io::ErrorKind::StorageFull, refused);
            return Self::Folder { path, source };
        }
        match source.sqlite_error_code() {
            // The operating system says why, and SQLite says twice that.
            Some(ErrorCode::CannotOpen) => match std::fs::File::open(&path) {
                Err(source) => Self::Folder { path, source },
                Ok(_) => Self::Database { path, source },
            },
            Some(ErrorCode::NotADatabase) => Self::NotOurs { path },
            Some(ErrorCode::DatabaseCorrupt) => Self::Damaged { path, source },
            _ => Self::Database { path, source },
        }
    }
}
