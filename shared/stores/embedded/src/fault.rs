//! What goes wrong inside a piece of work, and what the caller hears of it.

#[cfg(feature = "search")]
use imports::Damaged;
use messages::StoreError;
use messages::store::DiskRefused;
use rusqlite::ErrorCode;

/// A failure inside a piece of work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(rusqlite::Error),
    /// SQLite cannot read its own pages.
    #[error("the database is damaged; put the folder back from a backup")]
    Damaged(#[source] rusqlite::Error),
    /// A stored or given value is not what it should be.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// What is to be stored cannot be packed.
    #[cfg(feature = "search")]
    #[error("packing it failed")]
    Pack(#[source] std::io::Error),
    /// What is stored cannot be unpacked.
    #[cfg(feature = "search")]
    #[error("what is packed is damaged")]
    Packed(#[source] std::io::Error),
    /// One study of a file is not what it should be.
    #[cfg(feature = "search")]
    #[error("study {record} cannot be read; the others can")]
    Study {
        /// Its place among the file's records.
        record: u64,
        /// The number of records of the page that come before it.
        before: usize,
        /// Why.
        source: Box<Fault>,
    },
    /// A stored text is not what it should be.
    #[error("\"{text}\" is not a {what}")]
    Malformed {
        /// What it should be.
        what: &'static str,
        /// What it is.
        text: String,
    },
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged(without_sql(error)),
            _ => Self::Sqlite(without_sql(error)),
        }
    }
}

/// What SQLite says of a statement, without the statement: an operator learns nothing from it, and a log may not hold
/// what is in it.
pub(crate) fn without_sql(error: rusqlite::Error) -> rusqlite::Error {
    match error {
        rusqlite::Error::SqlInputError { error, msg, .. } => rusqlite::Error::SqliteFailure(error, Some(msg)),
        error => error,
    }
}

/// Returns `true` if SQLite could not write for lack of space. A limit on the size of files, as file systems and users
/// have, is reported as a failed write.
pub(crate) fn is_of_disk(error: &rusqlite::Error) -> bool {
    let rusqlite::Error::SqliteFailure(failure, _) = error else { return false };
    let written = [rusqlite::ffi::SQLITE_IOERR_WRITE, rusqlite::ffi::SQLITE_IOERR_SHMSIZE];
    failure.code == ErrorCode::DiskFull || written.contains(&failure.extended_code)
}

impl Fault {
    /// As the error of a port; `doing` says what failed.
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> StoreError {
        if self.is_of_disk() {
            return StoreError::unavailable(doing, DiskRefused(self.to_string()));
        }
        let may_pass = self.may_pass();
        #[cfg(feature = "search")]
        if let Self::Study { record, before, source } = self {
            let damaged = Damaged { record, before, source };
            let error = if may_pass { StoreError::unavailable } else { StoreError::unusable };
            return error(doing, damaged);
        }
        if may_pass { StoreError::unavailable(doing, self) } else { StoreError::unusable(doing, self) }
    }

    /// Returns `true` if the disk took no more data.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(self, Self::Sqlite(error) if is_of_disk(error))
    }

    /// Whether what is stored is to blame, and not the database: then it costs only what it stands for.
    pub(crate) fn is_of_value(&self) -> bool {
        match self {
            Self::Json(_) | Self::Malformed { .. } => true,
            #[cfg(feature = "search")]
            Self::Packed(_) => true,
            #[cfg(feature = "search")]
            Self::Study { source, .. } => source.is_of_value(),
            #[cfg(feature = "search")]
            Self::Pack(_) => false,
            Self::Damaged(_) => false,
            Self::Sqlite(error) => matches!(
                error,
                rusqlite::Error::FromSqlConversionFailure(..)
                    | rusqlite::Error::IntegralValueOutOfRange(..)
                    | rusqlite::Error::InvalidColumnType(..)
                    | rusqlite::Error::Utf8Error(..)
            ),
        }
    }

    /// A disk that is full, busy, unplugged or write-protected may be so no longer at the next attempt. A value that
    /// cannot be understood stays as it is.
    fn may_pass(&self) -> bool {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => !matches!(
                error.code,
                ErrorCode::ConstraintViolation
                    | ErrorCode::TypeMismatch
                    | ErrorCode::TooBig
                    | ErrorCode::ApiMisuse
            ),
            // The memory for it was lacking.
            #[cfg(feature = "search")]
            Self::Pack(_) => true,
            #[cfg(feature = "search")]
            Self::Packed(_) => false,
            #[cfg(feature = "search")]
            Self::Study { source, .. } => source.may_pass(),
            Self::Sqlite(_) | Self::Damaged(_) | Self::Json(_) | Self::Malformed { .. } => false,
        }
    }
}
