//! The ports that a program works on, by the service that is behind them in the cloud.
//!
//! A function takes the ports that it uses from here, and knows no adapter; which adapters there are is chosen once,
//! at a program's start, by the `adapters` crate. A function that asks for a service which is not configured says
//! which setting is missing; one that does not ask needs no such setting.

mod uses;

use std::sync::Arc;

use config::Config;
use contracts::{Host, Observe, Reporter};
use dedup::{ClaimPartition, GrantTokens, RememberProcessed};
use imports::{
    PresignUpload, ReadJobs, ReadObject, ReadStudies, ReportProgress, Write, WriteJobs, WriteStudies,
};
use outbox::{CommitSession, InspectOutbox, ReceiveMessages, SendMessages, SettleSessions};
use worker::{Dispatcher, ReadSaga, WriteSaga};

pub use uses::{Service, Uses};

/// A service that is not configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{setting} is not set; it is {what}")]
pub struct Missing {
    /// The environment variable.
    pub setting: &'static str,
    /// What it should name.
    pub what: &'static str,
}

/// The ports of one program.
#[derive(Clone)]
pub struct Backend {
    /// What MongoDB holds.
    pub documents: Result<Documents, Missing>,
    /// Who is inside a partition, and what it admits.
    pub partitions: Result<Partitions, Missing>,
    /// The memory of processed messages.
    pub processed: Result<Arc<dyn RememberProcessed>, Missing>,
    /// The uploaded files.
    pub objects: Arc<dyn ReadObject>,
    /// Forms for uploading.
    pub uploads: Result<Arc<dyn PresignUpload>, Missing>,
    /// Where messages are sent.
    pub queue: Arc<dyn SendMessages>,
    /// Where they are received, and settled.
    pub source: Arc<dyn ReceiveMessages>,
    /// Time, sleep and randomness.
    pub host: Arc<dyn Host>,
    /// Who is told of decisions.
    pub observer: Arc<dyn Observe>,
    /// The settings.
    pub config: Config,
}

/// What MongoDB holds.
#[derive(Clone)]
pub struct Documents {
    /// Reads the documents of searches.
    pub read_sagas: Arc<dyn ReadSaga>,
    /// Changes them.
    pub write_sagas: Arc<dyn WriteSaga>,
    /// Their outboxes.
    pub saga_outbox: Arc<dyn InspectOutbox>,
    /// Stores sessions.
    pub commit_sessions: Arc<dyn CommitSession<Write>>,
    /// Finds them again.
    pub settle_sessions: Arc<dyn SettleSessions>,
    /// Their outboxes.
    pub session_outbox: Arc<dyn InspectOutbox>,
    /// Reads imports.
    pub read_jobs: Arc<dyn ReadJobs>,
    /// Writes them.
    pub write_jobs: Arc<dyn WriteJobs>,
    /// Is told how far a file is.
    pub progress: Arc<dyn ReportProgress>,
    /// Reads studies.
    pub read_studies: Arc<dyn ReadStudies>,
    /// Stores them.
    pub write_studies: Arc<dyn WriteStudies>,
}

impl Documents {
    /// The ports of a store that has them all, with its two outboxes.
    pub fn of<S>(
        store: Arc<S>,
        saga_outbox: impl InspectOutbox + 'static,
        session_outbox: impl InspectOutbox + 'static,
    ) -> Self
    where
        S: ReadSaga
            + WriteSaga
            + CommitSession<Write>
            + SettleSessions
            + ReadJobs
            + WriteJobs
            + ReportProgress
            + ReadStudies
            + WriteStudies
            + 'static,
    {
        Self {
            read_sagas: store.clone(),
            write_sagas: store.clone(),
            saga_outbox: Arc::new(saga_outbox),
            commit_sessions: store.clone(),
            settle_sessions: store.clone(),
            session_outbox: Arc::new(session_outbox),
            read_jobs: store.clone(),
            write_jobs: store.clone(),
            progress: store.clone(),
            read_studies: store.clone(),
            write_studies: store,
        }
    }
}

/// Who is inside a partition, and what it admits.
#[derive(Clone)]
pub struct Partitions {
    /// Claims and releases them.
    pub ledger: Arc<dyn ClaimPartition>,
    /// Grants tokens to them.
    pub tokens: Arc<dyn GrantTokens>,
}

impl Partitions {
    /// The ports of a ledger that has both.
    pub fn of<L: ClaimPartition + GrantTokens + 'static>(ledger: Arc<L>) -> Self {
        Self { ledger: ledger.clone(), tokens: ledger }
    }
}

impl Backend {
    /// What MongoDB holds.
    ///
    /// # Errors
    /// When no database is configured.
    pub fn documents(&self) -> Result<&Documents, Missing> {
        self.documents.as_ref().map_err(|missing| *missing)
    }

    /// Partitions.
    ///
    /// # Errors
    /// When no table is configured for them.
    pub fn partitions(&self) -> Result<&Partitions, Missing> {
        self.partitions.as_ref().map_err(|missing| *missing)
    }

    /// Takes notes for a function.
    pub fn reporter(&self, function: &'static str) -> Reporter {
        let (host, observer) = (Arc::clone(&self.host), Arc::clone(&self.observer));
        Reporter { function, host, observer, began_at: None }
    }

    /// Performs outbox entries for a function.
    ///
    /// # Errors
    /// When no database is configured.
    pub fn dispatcher(&self, function: &'static str) -> Result<Dispatcher, Missing> {
        Ok(Dispatcher {
            queue: Arc::clone(&self.queue),
            jobs: Arc::clone(&self.documents()?.write_jobs),
            policy: self.config.outbox,
            reporter: self.reporter(function),
        })
    }
}
