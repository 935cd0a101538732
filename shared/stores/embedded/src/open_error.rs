//! Reasons why a data directory cannot be opened.

use std::path::{Path, PathBuf};

use messages::store::DiskRefused;
use rusqlite::ErrorCode;

use crate::fault::{is_of_disk, without_sql};
use crate::tables::VERSION;

/// The reason why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The folder, or a file in it, cannot be created or used.
    #[error("preparing {} failed", path.display())]
    Folder {
        /// The path of the folder or file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The database cannot be opened.
    #[error("opening {} failed", path.display())]
    Database {
        /// The path of the database.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
    /// The file is not a database of this system.
    #[error("{} is not a database of this program, and is not touched; name another data directory", path.display())]
    NotOurs {
        /// The path of the file.
        path: PathBuf,
    },
    /// The database is damaged: truncated, overwritten, or edited.
    #[error("{} is damaged; restore the folder from a backup, or move it away to start with an empty one", path.display())]
    Damaged {
        /// The path of the database.
        path: PathBuf,
        /// The cause.
        #[source]
        source: rusqlite::Error,
    },
    /// The database contains code, which SQLite would run with every statement on its tables, for any length of time.
    #[error(
        "{} has the {kind} \"{name}\", which could run code of another program: restore the folder from a backup, or \
         remove the {kind} with sqlite3",
        path.display()
    )]
    Programmed {
        /// The path of the database.
        path: PathBuf,
        /// `trigger`, `view` or `virtual table`.
        kind: String,
        /// The name of the trigger, view or table.
        name: String,
    },
    /// The database is missing, although files that it listed exist.
    #[error(
        "{} is missing or empty, and {left}; nothing is changed: restore the database from a backup, or move the folder \
         away to start with an empty one",
        path.display()
    )]
    Lost {
        /// The database.
        path: PathBuf,
        /// The files that are left, in words.
        left: String,
    },
    /// A newer version wrote the data directory.
    #[error("{} has schema version {found}, and this version supports up to {}: use a newer one", path.display(), VERSION)]
    Newer {
        /// The path of the database.
        path: PathBuf,
        /// The version of the database.
        found: i64,
    },
    /// An earlier version wrote the data directory, which a reader cannot upgrade.
    #[error("{} has schema version {found}, and reading needs {}; a command that works in it, such as `resume`, upgrades it", path.display(), VERSION)]
    Older {
        /// The path of the database.
        path: PathBuf,
        /// The version of the database.
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
            // The operating system's error states the reason; SQLite's error repeats only that opening failed.
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
