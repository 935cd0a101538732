//! The adapters behind the ports of a program, chosen and opened once, at its start.
//!
//! - [`open`]: the backend that the settings name;
//! - [`queue_setting`]: the setting with a queue's address;
//! - [`embedded()`], with feature `embedded`: the ports of a data directory that is open already;
//! - [`services`], with feature `services`: MongoDB, DynamoDB, SQS and S3;
//! - [`open_for`], with the same: the backend of one function, which is refused to start without what it uses.
//!
//! A program has only the adapters whose features it asks for; there are none by default.

#[cfg(feature = "services")]
mod requirements;
#[cfg(feature = "services")]
mod secret;
#[cfg(feature = "services")]
pub mod services;

use std::sync::Arc;

use backend::{Backend, Missing};
#[cfg(feature = "embedded")]
use backend::{Documents, Partitions};
#[cfg(feature = "embedded")]
use config::Mode;
use config::{BackendKind, Config};
use contracts::{Host, Observe, StoreError};
#[cfg(feature = "embedded")]
use dedup::ledger::NoLedger;
#[cfg(feature = "embedded")]
use embedded::{Settings, Store};
use outbox::Queue;

#[cfg(feature = "services")]
pub use requirements::{open_for, settings};
#[cfg(feature = "services")]
pub use secret::SecretError;

/// Why a backend cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory.
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// The database.
    #[cfg(feature = "services")]
    #[error(transparent)]
    Database(#[from] mongo::ConnectError),
    /// One of the services.
    #[error(transparent)]
    Service(#[from] StoreError),
    /// A service that is not configured.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Settings that a function needs.
    #[cfg(feature = "services")]
    #[error("{function} cannot start: not set are {}", settings.join(", "))]
    Unset {
        /// The function.
        function: &'static str,
        /// The environment variables.
        settings: Vec<String>,
    },
    /// The secret that holds the database's address.
    #[cfg(feature = "services")]
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A backend whose adapters this program is built without.
    #[error("this program is built without the {0} backend")]
    NotBuilt(&'static str),
}

/// The environment variable that a queue's address is read from, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
pub fn queue_setting(queue: Queue) -> String {
    format!("SEARCH_IMPORT_{}_QUEUE_URL", queue.name().replace('-', "_").to_uppercase())
}

/// Opens the backend that the settings name. A data directory is opened beside other programs that work in it.
///
/// # Errors
/// When the data directory or the database cannot be opened, or the program is built without the backend. What is not
/// configured is no error here, but where it is used.
#[cfg_attr(
    not(any(feature = "embedded", feature = "services")),
    allow(unused_variables, reason = "without adapters nothing is opened")
)]
pub async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    match config.backend {
        #[cfg(feature = "embedded")]
        BackendKind::Embedded => {
            let settings = Settings::with_retention(config.saga_retention, config.outbox.retention);
            let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), settings)?);
            Ok(embedded(&store, host, observer, config))
        }
        #[cfg(not(feature = "embedded"))]
        BackendKind::Embedded => Err(OpenError::NotBuilt("embedded")),
        #[cfg(feature = "services")]
        BackendKind::Aws => services::open(config, host, observer).await,
        #[cfg(not(feature = "services"))]
        BackendKind::Aws => Err(OpenError::NotBuilt("aws")),
    }
}

/// The ports of a data directory.
#[cfg(feature = "embedded")]
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
