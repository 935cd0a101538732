//! The stores and queues that a program works on, chosen once, at its start.
//!
//! A function's `main` and the local runner take the ports from here; nothing else knows which adapter is behind
//! a port. So far there is one backend: the embedded stores in a data directory.

use std::sync::Arc;

use config::{Config, Mode};
use contracts::{Host, Observe, Reporter};
use dedup::ledger::NoLedger;
use dedup::{ClaimPartition, GrantTokens};
use embedded::{OpenError, Settings, Store};
use outbox::{Policy, SendMessages, SweepOutbox};
use worker::Dispatcher;

/// The backend of one program.
#[derive(Clone)]
pub struct Backend {
    /// All stores; the embedded adapter implements every port.
    pub store: Arc<Store>,
    /// Where messages are sent.
    pub queue: Arc<dyn SendMessages>,
    /// Time, sleep and randomness.
    pub host: Arc<dyn Host>,
    /// Who is told of decisions.
    pub observer: Arc<dyn Observe>,
    /// The settings.
    pub config: Config,
}

impl Backend {
    /// Opens the data directory that the settings name, beside other programs that work in it.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(config: Config, host: Arc<dyn Host>, observer: Arc<dyn Observe>) -> Result<Self, OpenError> {
        let settings = Settings::with_retention(config.saga_retention);
        let store = Store::open(&config.data_dir, Arc::clone(&host), settings)?;
        let queue = Arc::new(store.clone());
        Ok(Self { store: Arc::new(store), queue, host, observer, config })
    }

    /// Takes notes for a function.
    pub fn reporter(&self, function: &'static str) -> Reporter {
        Reporter { function, host: Arc::clone(&self.host), observer: Arc::clone(&self.observer) }
    }

    /// Performs outbox entries for a function.
    pub fn dispatcher(&self, function: &'static str) -> Dispatcher {
        Dispatcher {
            queue: Arc::clone(&self.queue),
            jobs: self.store.clone(),
            policy: Policy::default(),
            reporter: self.reporter(function),
        }
    }

    /// Where tokens are granted.
    pub fn tokens(&self) -> Arc<dyn GrantTokens> {
        match self.config.mode {
            Mode::Ledger => self.store.clone(),
            Mode::Optimistic => Arc::new(NoLedger),
        }
    }

    /// Where partitions are claimed.
    pub fn ledger(&self) -> Arc<dyn ClaimPartition> {
        match self.config.mode {
            Mode::Ledger => self.store.clone(),
            Mode::Optimistic => Arc::new(NoLedger),
        }
    }

    /// The outboxes of sessions.
    pub fn session_outbox(&self) -> Arc<dyn SweepOutbox> {
        Arc::new(self.store.session_outbox())
    }

    /// The outboxes of sagas.
    pub fn saga_outbox(&self) -> Arc<dyn SweepOutbox> {
        Arc::new(self.store.saga_outbox())
    }
}
