//! Opening of the ports of the search import.

use std::sync::Arc;

#[cfg(feature = "embedded")]
use embedded::Store;
#[cfg(feature = "embedded")]
use imports::queues::QUEUES;
#[cfg(feature = "embedded")]
use imports::{Ports, StudyStores};
use messages::{DecisionSink, Host, Queue};

use super::ports::Backend;
#[cfg(feature = "embedded")]
use super::ports::with_earlier_views;
use crate::{BackendKind, Config, OpenError};

/// Returns the environment variable with a queue's address, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
pub fn queue_setting(queue: &Queue) -> String {
    format!("SEARCH_IMPORT_{}_QUEUE_URL", queue.name().replace('-', "_").to_uppercase())
}

/// Opens the backend that the settings select. Other programs may use the same data directory at the same time.
///
/// # Errors
/// Returns an error if the data directory or the database cannot be opened, or if the program does not contain
/// the backend. A service that is not configured only causes an error when it is used.
#[cfg_attr(
    not(any(feature = "embedded", feature = "search-services")),
    allow(unused_variables, reason = "without adapters nothing is opened")
)]
pub async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    match config.backend {
        BackendKind::Embedded => open_embedded(config, host, observer),
        #[cfg(feature = "search-services")]
        BackendKind::Aws => {
            use crate::database::DatabaseOutage;
            use crate::services::LinkedServices;
            super::services::open(&LinkedServices::ALL, DatabaseOutage::Fail, config, host, observer).await
        }
        #[cfg(not(feature = "search-services"))]
        BackendKind::Aws => Err(OpenError::NotBuilt("aws")),
    }
}

#[cfg(feature = "embedded")]
pub(super) fn open_embedded(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), store_settings(&config))?);
    Ok(embedded(&store, host, observer, config))
}

#[cfg(not(feature = "embedded"))]
pub(super) fn open_embedded(
    _: Config,
    _: Arc<dyn Host>,
    _: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    Err(OpenError::NotBuilt("embedded"))
}

/// Returns the settings of a data directory.
#[cfg(feature = "embedded")]
pub fn store_settings(config: &Config) -> embedded::Settings {
    let retention =
        embedded::Settings::with_retention(&QUEUES, config.saga_retention, config.outbox.retention);
    embedded::Settings { history: config.history.is_some(), ..retention }
}

/// Returns the ports of a data directory.
#[cfg(feature = "embedded")]
pub fn embedded(
    store: &Arc<Store>,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
    config: Config,
) -> Backend {
    let engine = config.applied_to(store.engine(imports::SYSTEM, host, observer));
    let ports = Ports {
        engine: with_earlier_views(engine),
        study_stores: Ok(StudyStores::of(store)),
        objects: Ok(store.clone()),
        bucket: Ok(store.clone()),
        uploads: Ok(store.clone()),
        exports: Ok(store.clone()),
        machine: Some(store.clone()),
        settings: config.settings(),
    };
    Backend { ports, config }
}
