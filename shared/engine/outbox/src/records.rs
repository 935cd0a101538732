//! An application's own data, for code that serves requests: read while a session is open, written with its commit.
//!
//! What a session has read is checked when it commits: a record that somebody else has changed in between refuses the
//! commit. So what a request decides holds for what it has read, without locks that an abandoned request could leave.

use async_trait::async_trait;
use messages::StoreError;
use serde_json::Value;

/// Names a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What kind of record it is, such as `stock`.
    pub kind: String,
    /// Which one.
    pub id: String,
}

impl Key {
    /// The record `id` of a kind.
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
    /// Counts the writes, from 1.
    pub revision: u64,
    /// What it says.
    pub body: Value,
}

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// Which.
    pub key: Key,
    /// What it is to say.
    pub body: Value,
}

/// What a session has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// Which record.
    pub key: Key,
    /// Its revision then; 0 when there was none.
    pub revision: u64,
}

/// Reads records.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// A record, as the latest commit left it.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError>;
}

/// Writes records without a session: what no message depends on.
#[async_trait]
pub trait WriteRecords: Send + Sync {
    /// Stores a record as its next revision, whatever is there. A session that has read an earlier one is refused.
    ///
    /// # Errors
    /// When the store does not answer; the record may be stored.
    async fn write_record(&self, write: &Write) -> Result<(), StoreError>;
}
