//! The adapters behind the ports of a program, chosen and opened once, at its start.
//!
//! - [`open`]: the backend that the settings name;
//! - [`embedded()`]: the ports of a data directory that is open already;
//! - [`services`]: MongoDB, DynamoDB, SQS and S3.

pub mod services;

use std::sync::Arc;

use backend::{Backend, Documents, Missing, Partitions};
use config::{BackendKind, Config, Mode};
use contracts::{Host, Observe, StoreError};
use dedup::ledger::NoLedger;
use embedded::{Settings, Store};
use mongo::ConnectError;

/// Why a backend cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory.
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// The database.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// One of the services.
    #[error(transparent)]
    Service(#[from] StoreError),
    /// A service that is not configured.
    #[error(transparent)]
    Missing(#[from] Missing),
}

/// Opens the backend that the settings name. A data directory is opened beside other programs that work in it.
///
/// # Errors
/// When the data directory or the database cannot be opened. What is not configured is no error here, but where it
/// is used.
pub async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    match config.backend {
        BackendKind::Embedded => {
            let settings = Settings::with_retention(config.saga_retention, config.outbox.retention);
            let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), settings)?);
            Ok(embedded(&store, host, observer, config))
        }
        BackendKind::Aws => services::open(config, host, observer).await,
    }
}

/// The ports of a data directory.
pub fn embedded(
    store: &Arc<Store>,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
    config: Config,
) -> Backend {
    Backend {
        documents: Ok(Documents::of(Arc::clone(store), store.saga_outbox(), store.session_outbox())),
        partitions: Ok(match config.mode {
            Mode::Ledger => Partitions::of(Arc::clone(store)),
            Mode::Optimistic => Partitions::of(Arc::new(NoLedger)),
        }),
        processed: Ok(store.clone()),
        objects: store.clone(),
        uploads: Ok(store.clone()),
        queue: store.clone(),
        source: store.clone(),
        host,
        observer,
        config,
    }
}
