//! The ports of an installation and of a saga.

use std::sync::Arc;

use async_trait::async_trait;
use dedup::{ClaimPartition, GrantTokens};
use jiff::Timestamp;
use messages::{Host, PartitionKey, StoreError, Token};
use outbox::session::SettleSessions;
use outbox::{
    CommitSession, Dispatcher, InspectOutbox, Owner, ReadRecords, ReadViews, WriteRecords, WriteViews,
};

use crate::document::{ReadDocuments, WriteDocuments};
use crate::failures::KeepFailures;
use crate::system::MissingSetting;

/// The engine's ports to the database.
#[derive(Clone)]
pub struct Stores {
    /// Reads documents.
    pub read_documents: Arc<dyn ReadDocuments>,
    /// Writes documents.
    pub write_documents: Arc<dyn WriteDocuments>,
    /// Lists the outboxes of documents.
    pub saga_outbox: Arc<dyn InspectOutbox>,
    /// Stores sessions.
    pub commit_sessions: Arc<dyn CommitSession>,
    /// Reads and settles sessions.
    pub settle_sessions: Arc<dyn SettleSessions>,
    /// Lists the outboxes of sessions.
    pub session_outbox: Arc<dyn InspectOutbox>,
    /// Reads an application's records.
    pub records: Arc<dyn ReadRecords>,
    /// Writes records without a session.
    pub write_records: Arc<dyn WriteRecords>,
    /// Reads views.
    pub read_views: Arc<dyn ReadViews>,
    /// Writes views.
    pub write_views: Arc<dyn WriteViews>,
    /// Stores failures.
    pub failures: Arc<dyn KeepFailures>,
}

impl Stores {
    /// Takes all ports from one store, except its two outboxes.
    pub fn of<S>(
        store: &Arc<S>,
        saga_outbox: impl InspectOutbox + 'static,
        session_outbox: impl InspectOutbox + 'static,
    ) -> Self
    where
        S: ReadDocuments
            + WriteDocuments
            + CommitSession
            + SettleSessions
            + ReadRecords
            + WriteRecords
            + ReadViews
            + WriteViews
            + KeepFailures
            + 'static,
    {
        Self {
            read_documents: store.clone(),
            write_documents: store.clone(),
            saga_outbox: Arc::new(saga_outbox),
            commit_sessions: store.clone(),
            settle_sessions: store.clone(),
            session_outbox: Arc::new(session_outbox),
            records: store.clone(),
            write_records: store.clone(),
            read_views: store.clone(),
            write_views: store.clone(),
            failures: store.clone(),
        }
    }
}

/// The outboxes of one type of record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outboxes {
    /// The outboxes of sagas.
    Sagas,
    /// The outboxes of committed sessions.
    Sessions,
}

impl Outboxes {
    /// All outboxes.
    pub const ALL: [Self; 2] = [Self::Sagas, Self::Sessions];

    /// Returns the store of these outboxes.
    pub fn of(self, stores: &Stores) -> &dyn InspectOutbox {
        match self {
            Self::Sagas => stores.saga_outbox.as_ref(),
            Self::Sessions => stores.session_outbox.as_ref(),
        }
    }
}

impl From<Owner> for Outboxes {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::Saga(_) => Self::Sagas,
            Owner::Session(_) => Self::Sessions,
        }
    }
}

/// The ports that change the ledger of partitions.
#[derive(Clone)]
pub struct Partitions {
    /// Claims and releases partitions.
    pub ledger: Arc<dyn ClaimPartition>,
    /// Grants tokens to partitions.
    pub tokens: Arc<dyn GrantTokens>,
}

impl Partitions {
    /// Takes both ports from one ledger.
    pub fn of<L: ClaimPartition + GrantTokens + 'static>(ledger: Arc<L>) -> Self {
        Self { ledger: ledger.clone(), tokens: ledger }
    }
}

/// Grants no tokens, because no ledger is configured.
pub(crate) struct NoTokens(pub(crate) MissingSetting);

impl NoTokens {
    fn error(&self) -> StoreError {
        StoreError::unavailable("granting tokens", self.0.clone())
    }
}

#[async_trait]
impl GrantTokens for NoTokens {
    async fn grant(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<(), StoreError> {
        Err(self.error())
    }

    async fn begin(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<bool, StoreError> {
        Err(self.error())
    }

    async fn revoke(&self, _: PartitionKey, _: &[Token], _: Timestamp) -> Result<(), StoreError> {
        Err(self.error())
    }
}

/// The ports of a saga.
#[derive(Clone)]
pub struct Ports {
    /// Loads documents.
    pub read: Arc<dyn ReadDocuments>,
    /// Stores documents.
    pub write: Arc<dyn WriteDocuments>,
    /// Claims partitions.
    pub ledger: Arc<dyn ClaimPartition>,
    /// Grants the tokens of events for other partitions.
    pub tokens: Arc<dyn GrantTokens>,
    /// Performs the outbox, and reports decisions for the function.
    pub dispatcher: Dispatcher,
    /// The clock and random numbers.
    pub host: Arc<dyn Host>,
}
