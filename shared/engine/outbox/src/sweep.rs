//! Finding and claiming what is due, wherever it is stored.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{PartitionKey, SessionId, StoreError};
use serde::{Deserialize, Serialize};

use crate::entry::Entry;
use crate::policy::Settlement;

/// The record that entries are stored in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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

/// Something in an outbox that this release cannot read: it is damaged, or of a later release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    /// Where it is, in the store's own words: its ids may be what cannot be read.
    pub place: String,
    /// What is wrong with it.
    pub why: String,
}

/// One stored entry.
pub type Stored = Result<Entry, Unreadable>;

/// What a claim found in one record; an error of its own when only this record could not be claimed.
pub type Claimed = Result<Vec<Stored>, StoreError>;

/// What becomes of something that cannot be read. Its content stays as it is, so that a later release may read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Treatment {
    /// It is not looked for any more, for this reason.
    Poison(String),
    /// It is due again from this moment on.
    Requeue(Timestamp),
    /// It is gone.
    Delete,
}

/// A store whose records have outboxes. What cannot be read is an answer of its own, beside what can.
#[async_trait]
pub trait SweepOutbox: Send + Sync {
    /// Up to `limit` records with an entry that is ready, the longest waiting first. Served by an index.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError>;

    /// Claims all ready entries of these records until `until`, each record in an atomic conditional write, and returns
    /// them, record by record in the given order. Two callers never get the same entry while a claim lasts; `until` is
    /// the claim's mark, so each caller needs one of its own.
    ///
    /// # Errors
    /// When the store does not answer. What was claimed by then is ready again when the claim has run out.
    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Claimed>, StoreError>;

    /// Settles entries whose claim is still the one each settlement names; others are left alone.
    ///
    /// # Errors
    /// When the store does not answer; the entries' claims then run out by themselves.
    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError>;

    /// Treats what cannot be read; nothing happens when it is not there any more.
    ///
    /// # Errors
    /// When the store does not answer, or the place is none of its own.
    async fn treat(&self, place: &str, treatment: &Treatment) -> Result<(), StoreError>;
}

/// A record that has entries, as an operator is shown it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// Its id in the store's own words; the next page begins after it.
    pub id: String,
    /// Whose it is; none when the id cannot be read, and then neither can the entries.
    pub owner: Option<Owner>,
    /// All of its entries.
    pub entries: Vec<Stored>,
}

/// Shows outboxes to an operator. What the operator then does is a settlement, conditional on what was shown, or the
/// treatment of what cannot be read.
#[async_trait]
pub trait InspectOutbox: SweepOutbox {
    /// Up to `limit` records that have entries, in the order of their ids, from after a record on. Served by an index.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<Pending>, StoreError>;

    /// The same with nothing but entries that are poisoned, those among them that cannot be read too. Served by an index that
    /// has only those.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<Pending>, StoreError>;

    /// How the store looks for what is due ([`SweepOutbox::due`]), in the store's own words: with the name of the index
    /// that it takes.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn plan(&self) -> Result<String, StoreError>;
}
