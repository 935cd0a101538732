//! An application's own data, for code that serves requests: read while a session is open, written with its commit.
//!
//! The reads of a session are checked when it commits: if another session has changed one of the records in between,
//! the commit is refused. So the decision of a request holds for the data that it has read, without locks that an
//! abandoned request could leave.

use async_trait::async_trait;
use messages::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The kind of record, such as `stock`.
    pub kind: String,
    /// The id within the kind.
    pub id: String,
}

impl Key {
    /// Creates a key.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// A record as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of writes.
    pub revision: u64,
    /// The content.
    pub body: Value,
}

/// A write of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The record.
    pub key: Key,
    /// The new content.
    pub body: Value,
}

/// A record that belongs to an instance of a saga: no session and no other instance writes it, but any session may read
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedRecord {
    /// The record.
    #[serde(flatten)]
    pub key: Key,
    /// The version of the instance's document with which the write was staged.
    pub revision: u64,
    /// The new content.
    pub body: Value,
}

/// A read of a record by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRead {
    /// The record.
    pub key: Key,
    /// The revision that was read; 0 if there was none.
    pub revision: u64,
}

/// Reads records.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// Returns a record as the latest commit left it.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError>;
}

/// Writes records without a session, for data that no message depends on.
#[async_trait]
pub trait WriteRecords: Send + Sync {
    /// Stores the next revision of a record unconditionally. Commits of sessions that have read an earlier revision are
    /// then refused.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The record may have been stored.
    async fn write_record(&self, write: &Write) -> Result<(), StoreError>;

    /// Stores a record of an instance, unless it has reached this revision: effects may be repeated, and may be performed
    /// in another order than they were staged.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The record may have been stored.
    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError>;
}
