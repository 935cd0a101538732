//! The ports that find and claim due entries in any store.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::policy::Settlement;

/// The record that contains an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The document of a saga.
    Saga(PartitionKey),
    /// A committed transactional session.
    Session(SessionId),
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Saga(id) => write!(f, "partition {id}"),
            Self::Session(id) => write!(f, "session {id}"),
        }
    }
}

/// An outbox entry or record that this version cannot read: it is damaged, or was written by a newer version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// The location of the entry or record, in a format of the store, because its ids may be unreadable too.
    pub place: String,
    /// The reason.
    pub why: String,
}

/// An entry, or why it cannot be read.
pub type EntryResult = Result<Entry, Unreadable>;

/// The entries that were claimed in one record; an error if only this record could not be claimed.
pub type ClaimedEntries = Result<Vec<EntryResult>, StoreError>;

/// An action on an unreadable entry. Its content is kept unchanged, so that a newer version may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnreadableAction {
    /// Marks it as exhausted, for this reason; sweeps ignore it.
    Poison(String),
    /// Makes it due again at this time, unless a sweep finds it anyway: such an entry may be claimed.
    Requeue(Timestamp),
    /// Deletes the entry.
    Delete,
}

/// A store whose records contain outboxes. Unreadable entries are part of the results and do not fail a call.
#[async_trait]
pub trait SweepOutbox: Send + Sync {
    /// Returns up to `limit` records with a ready entry, the longest waiting first. Served by an index.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError>;

    /// Claims all ready entries of these records until `until`, each record in an atomic conditional write. Returns
    /// them by record, in the given order. Two callers never get the same entry while a claim lasts. `until` identifies
    /// the claim, so each caller must use a unique value. A repeated call with the same value also returns the entries
    /// that the first call claimed, in case its response was lost.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. Entries that were claimed by then are ready again once the claim
    /// expires.
    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError>;

    /// Settles entries that still have the claim of their settlement; others are left unchanged.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The claims then expire by themselves.
    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError>;

    /// Applies an action to an unreadable entry. Does nothing if the entry no longer exists.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable, or the location does not belong to this outbox.
    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError>;
}

/// A record with outbox entries, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxRecord {
    /// The id of the record in a format of the store. The next page begins after it.
    pub id: String,
    /// The owner of the outbox; `None` if the id of the record cannot be read. In this case, the entries of the record
    /// cannot be read either.
    pub owner: Option<Owner>,
    /// All entries of the record.
    pub entries: Vec<EntryResult>,
}

/// Lists outboxes for operators. Operators then settle entries, on condition of the listed claim, or resolve unreadable
/// ones.
#[async_trait]
pub trait InspectOutbox: SweepOutbox {
    /// Returns up to `limit` records with entries, in the order of their ids, after a record id. Served by an index.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError>;

    /// Works like [`InspectOutbox::pending`], with only the exhausted entries, unreadable ones included. An index of
    /// such records serves this query.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError>;

    /// Returns the entries of one record, unreadable ones included; `None` if the record does not exist. Reads only
    /// this record.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn entries_of(&self, owner: Owner) -> Result<Vec<EntryResult>, StoreError>;

    /// Returns the store's query plan of [`SweepOutbox::due`], in a format of the store, with the name of the index. This
    /// name contains `outbox_ready`.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn plan(&self) -> Result<String, StoreError>;
}
