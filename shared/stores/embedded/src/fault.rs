//! Failures inside a piece of work, and the errors that callers get.

#[cfg(feature = "search")]
use imports::DamagedRecord;
use messages::StoreError;
use messages::panics::PanicError;
use messages::store::DiskRefused;
use rusqlite::ErrorCode;

/// A failure inside a piece of work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// SQLite refused.
    #[error(transparent)]
    Sqlite(rusqlite::Error),
    /// SQLite cannot read its own pages.
    #[error("the database is damaged; restore the folder from a backup")]
    Damaged(#[source] rusqlite::Error),
    /// A stored or given value cannot be parsed.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// The work panicked.
    #[error(transparent)]
    Panicked(#[from] PanicError),
    /// The value to store cannot be compressed.
    #[cfg(feature = "search")]
    #[error("compressing it failed")]
    Pack(#[source] std::io::Error),
    /// The stored value cannot be decompressed.
    #[cfg(feature = "search")]
    #[error("the compressed data is damaged")]
    Packed(#[source] std::io::Error),
    /// A stored study of a file cannot be read.
    #[cfg(feature = "search")]
    #[error("study {record} cannot be read; the others can")]
    Study {
        /// The number of its record in the file.
        record: u64,
        /// The number of records of the page that precede the damaged record.
        before: usize,
        /// The cause.
        source: Box<Fault>,
    },
    /// Work of the application created code, with which the database could not be opened again.
    #[error("it creates the {kind} \"{name}\", and a database with it is refused")]
    Code {
        /// `trigger`, `view` or `virtual table`.
        kind: String,
        /// Its name.
        name: String,
    },
    /// Work of the application committed or rolled back the transaction that it belongs to.
    #[error("it ended its transaction; whether its writes are stored is unknown")]
    EndedTransaction,
    /// A stored text has another form than expected.
    #[error("\"{text}\" is not a {what}")]
    Malformed {
        /// The expected form.
        what: &'static str,
        /// The text.
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

/// Removes the statement from an error of SQLite: it does not help an operator, and a log must not contain its values.
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
    /// Returns the error of a port; `doing` names the operation.
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> StoreError {
        if self.is_of_disk() {
            return StoreError::unavailable(doing, DiskRefused(self.to_string()));
        }
        let may_pass = self.may_pass();
        #[cfg(feature = "search")]
        if let Self::Study { record, before, source } = self {
            let damaged = DamagedRecord { record, before, source };
            let error = if may_pass { StoreError::unavailable } else { StoreError::unusable };
            return error(doing, damaged);
        }
        if may_pass { StoreError::unavailable(doing, self) } else { StoreError::unusable(doing, self) }
    }

    /// Returns `true` if the disk refused a write.
    pub(crate) fn is_of_disk(&self) -> bool {
        matches!(self, Self::Sqlite(error) if is_of_disk(error))
    }

    /// Returns `true` if the cause is a stored value and not the database, so that only this value is affected.
    pub(crate) fn is_of_value(&self) -> bool {
        match self {
            Self::Json(_) | Self::Malformed { .. } => true,
            #[cfg(feature = "search")]
            Self::Packed(_) => true,
            #[cfg(feature = "search")]
            Self::Study { source, .. } => source.is_of_value(),
            #[cfg(feature = "search")]
            Self::Pack(_) => false,
            Self::Damaged(_) | Self::Panicked(_) | Self::Code { .. } | Self::EndedTransaction => false,
            Self::Sqlite(error) => matches!(
                error,
                rusqlite::Error::FromSqlConversionFailure(..)
                    | rusqlite::Error::IntegralValueOutOfRange(..)
                    | rusqlite::Error::InvalidColumnType(..)
                    | rusqlite::Error::Utf8Error(..)
            ),
        }
    }

    /// Returns `true` if a retry may succeed. A disk may be full, busy, unplugged or write-protected only temporarily;
    /// a value that cannot be parsed does not change.
    fn may_pass(&self) -> bool {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => !matches!(
                error.code,
                ErrorCode::ConstraintViolation
                    | ErrorCode::TypeMismatch
                    | ErrorCode::TooBig
                    | ErrorCode::ApiMisuse
            ),
            // There was not enough memory.
            #[cfg(feature = "search")]
            Self::Pack(_) => true,
            #[cfg(feature = "search")]
            Self::Packed(_) => false,
            #[cfg(feature = "search")]
            Self::Study { source, .. } => source.may_pass(),
            Self::Sqlite(_)
            | Self::Damaged(_)
            | Self::Json(_)
            | Self::Panicked(_)
            | Self::Code { .. }
            | Self::EndedTransaction
            | Self::Malformed { .. } => false,
        }
    }
}
