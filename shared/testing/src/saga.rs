//! What [`ReadSaga`], [`WriteSaga`] and the [`InspectOutbox`] of sagas promise.
//!
//! - [`documents`]: versions, conflicts and expiry;
//! - [`entries`]: the outbox as the worker that stored it sees it;
//! - [`sweep`]: the outbox as a sweeper sees it.

use contracts::{Host, SearchId};
use jiff::SignedDuration;
use outbox::{Entry, InspectOutbox};
use worker::document::{Document, Persist, Persisted, ReadSaga, WriteSaga};

use crate::{Checked, sample};

pub mod documents;
pub mod entries;
pub mod sweep;

/// What is under test.
pub struct Ports<'a> {
    /// Reads.
    pub read: &'a dyn ReadSaga,
    /// Writes.
    pub write: &'a dyn WriteSaga,
    /// Sweeps.
    pub sweep: &'a dyn InspectOutbox,
    /// Ids and time.
    pub host: &'a dyn Host,
    /// How long the store keeps a search that has ended.
    pub retention: SignedDuration,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    documents::all(ports).await?;
    entries::all(ports).await?;
    sweep::all(ports).await
}

impl Ports<'_> {
    async fn load(&self, search: SearchId) -> Result<Option<Document>, contracts::StoreError> {
        let found = self.read.load(&[search], sample::now(self.host)).await?;
        assert_eq!(found.len(), 1, "one answer for one search");
        Ok(found.into_iter().next().flatten())
    }

    /// The document, which must be there.
    async fn stored(&self, search: SearchId) -> Result<Document, Box<dyn std::error::Error + Send + Sync>> {
        self.load(search).await?.ok_or_else(|| format!("search {search} is not stored").into())
    }

    async fn persist(&self, write: Persist) -> Result<Persisted, contracts::StoreError> {
        let answers = self.write.persist(&[write], sample::now(self.host)).await?;
        assert_eq!(answers.len(), 1, "one answer for one write");
        Ok(answers.first().copied().unwrap_or(Persisted::Conflict))
    }

    /// A new search with these entries in its outbox.
    async fn create(&self, add: Vec<Entry>) -> Result<SearchId, contracts::StoreError> {
        let search = sample::search(self.host);
        let write = Persist { add, ..sample::persist(search, None, sample::uploading(self.host, "created")) };
        assert_eq!(self.persist(write).await?, Persisted::Stored);
        Ok(search)
    }
}
