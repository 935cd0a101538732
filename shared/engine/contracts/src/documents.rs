//! The contract of [`ReadDocuments`], [`WriteDocuments`] and the [`InspectOutbox`] of sagas.
//!
//! - [`versions`]: versions, conflicts and expiry;
//! - [`entries`]: the outbox, for the worker that stored it;
//! - [`sweep`]: the outbox, for a sweep.

use futures::future::BoxFuture;
use jiff::SignedDuration;
use messages::{Host, MessageId, PartitionKey};
use outbox::{Entry, InspectOutbox};
use saga::{Document, Persist, PersistOutcome, ReadDocuments, WriteDocuments};

use crate::{CheckResult, sample};

pub mod entries;
pub mod sweep;
pub mod versions;

/// The adapter under test.
pub struct Ports<'a> {
    /// Reads.
    pub read: &'a dyn ReadDocuments,
    /// Writes.
    pub write: &'a dyn WriteDocuments,
    /// Sweeps.
    pub sweep: &'a dyn InspectOutbox,
    /// Ids and time.
    pub host: &'a dyn Host,
    /// The retention of an ended partition.
    pub retention: SignedDuration,
    /// Damages the stored data of a partition, bypassing the ports. Without it, the adapter has its own test of
    /// unreadable documents.
    pub damage: Option<&'a Damage<'a>>,
    /// Damages an entry of a partition's outbox, bypassing the ports, as if a newer version had written it.
    pub damage_entry: Option<&'a DamageEntry<'a>>,
}

/// Makes an entry unreadable.
pub type DamageEntry<'a> = dyn Fn(PartitionKey, MessageId) -> BoxFuture<'a, CheckResult> + Send + Sync + 'a;

/// Makes the stored data of a partition unreadable.
pub type Damage<'a> = dyn Fn(PartitionKey) -> BoxFuture<'a, CheckResult> + Send + Sync + 'a;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    versions::all(ports).await?;
    entries::all(ports).await?;
    sweep::all(ports).await
}

impl Ports<'_> {
    async fn load(&self, partition: PartitionKey) -> Result<Option<Document>, messages::StoreError> {
        let found = self.read.load(&[partition], sample::now(self.host)).await?;
        assert_eq!(found.len(), 1, "one answer for one partition");
        let found = found.into_iter().next().transpose().map(Option::flatten);
        let latest = self.read.load_latest(partition, sample::now(self.host)).await;
        assert_eq!(found.as_ref().ok(), latest.as_ref().ok(), "nothing is written in between");
        found
    }

    /// Returns the document, which must exist.
    async fn stored(
        &self,
        partition: PartitionKey,
    ) -> Result<Document, Box<dyn std::error::Error + Send + Sync>> {
        self.load(partition).await?.ok_or_else(|| format!("partition {partition} is not stored").into())
    }

    async fn persist(&self, write: Persist) -> Result<PersistOutcome, messages::StoreError> {
        let answers = self.write.persist(&[write], sample::now(self.host)).await?;
        assert_eq!(answers.len(), 1, "one answer for one write");
        Ok(answers.first().copied().unwrap_or(PersistOutcome::Conflict))
    }

    /// Returns a new partition with these entries in its outbox.
    async fn create(&self, add: Vec<Entry>) -> Result<PartitionKey, messages::StoreError> {
        let partition = sample::partition(self.host);
        let write =
            Persist { add, ..sample::persist(partition, None, sample::content(self.host, "created")) };
        assert_eq!(self.persist(write).await?, PersistOutcome::Stored);
        Ok(partition)
    }
}
