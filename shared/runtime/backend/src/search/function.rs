//! Opening of the ports of one function.

use std::sync::Arc;

use imports::Ports;
use imports::queues::QUEUES;
use messages::{DecisionSink, Host};
use saga::Function;

use crate::config::{BackendKind, Config};
use crate::requirements::missing_settings;
use crate::services::{DatabaseOutage, LinkedServices};
use crate::{OpenError, SystemHost};

use super::opening::open_embedded;
use super::ports::Backend;
use super::services;

/// Opens the ports of one function, as far as their adapters are linked. While the database is unavailable, calls return
/// retryable errors.
///
/// # Errors
/// Returns the errors of [`open()`](crate::open()). With the services of AWS it also returns all required settings that are
/// not set. Otherwise a missing address of a queue would only be detected by the first message for it.
pub async fn open_for(
    function: &Function<Ports>,
    linked: &LinkedServices,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    if config.backend == BackendKind::Embedded {
        return open_embedded(config, host, observer);
    }
    let settings = missing_settings(function, &QUEUES, &config);
    if !settings.is_empty() {
        return Err(OpenError::Unset { function: function.name, settings });
    }
    services::open(linked, DatabaseOutage::ConnectLater, config, host, observer).await
}

/// Opens the ports of one function with the settings of the environment and the system's clock.
///
/// # Errors
/// Returns all settings that are wrong, and the errors of [`open_for`].
pub async fn for_function(
    function: &Function<Ports>,
    linked: &LinkedServices,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    open_for(function, linked, Config::from_env()?, Arc::new(SystemHost), observer).await
}
