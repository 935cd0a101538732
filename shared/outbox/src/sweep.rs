//! Finding and claiming what is due, wherever it is stored.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};

use crate::entry::Entry;
use crate::policy::Settlement;

/// The record that entries are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// The saga's document.
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

/// A store whose records have outboxes.
#[async_trait]
pub trait SweepOutbox: Send + Sync {
    /// Up to `limit` records with an entry that is ready, the longest waiting first. Served by an index.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Owner>, StoreError>;

    /// Claims all ready entries of one record until `until`, in one atomic conditional write, and returns them.
    /// Two callers never get the same entry while a claim lasts.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn claim_due(
        &self,
        owner: Owner,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Entry>, StoreError>;

    /// Settles entries whose claim is still the one each settlement names; others are left alone.
    ///
    /// # Errors
    /// When the store does not answer; the entries' claims then run out by themselves.
    async fn settle(&self, owner: Owner, settlements: &[Settlement]) -> Result<(), StoreError>;
}

/// Shows outboxes to an operator. What the operator then does is a settlement, conditional on what was shown.
#[async_trait]
pub trait InspectOutbox: SweepOutbox {
    /// Up to `limit` records that have entries, in the order of their ids, from after a record on, each with all of its
    /// entries. Served by an index.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn pending(
        &self,
        after: Option<Owner>,
        limit: usize,
    ) -> Result<Vec<(Owner, Vec<Entry>)>, StoreError>;

    /// How the store looks for what is due ([`SweepOutbox::due`]), in the store's own words: with the name of the index
    /// that it takes.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn plan(&self) -> Result<String, StoreError>;
}
