//! Opening of the ports of one function.

use std::sync::Arc;

use imports::Ports;
use imports::queues::QUEUES;
use messages::{DecisionSink, Host};
use saga::Function;

use crate::config::{BackendKind, Config};
use crate::database::DatabaseOutage;
use crate::requirements::missing_settings;
use crate::services::LinkedServices;
use crate::{OpenError, SystemHost};

use super::opening::open_embedded;
use super::ports::Backend;
use super::services;

/// Opens the ports of one function, as far as their adapters are linked. The engine is restricted to what the function
/// declares, see [`saga::Engine::declared_by`]. While the database is unavailable, calls return
/// retryable errors.
///
/// # Errors
/// Returns the errors of [`open()`](crate::open()). With the services of AWS it also returns all required
/// settings that are not set. Otherwise a missing address of a queue would only be detected by the first message for
/// it.
pub async fn open_for(
    function: &Function<Ports>,
    linked: &LinkedServices,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    let Backend { ports, config } = if config.backend == BackendKind::Embedded {
        open_embedded(config, host, observer)?
    } else {
        let settings = missing_settings(function, &QUEUES, &config);
        if !settings.is_empty() {
            return Err(OpenError::Unset { function: function.name, settings });
        }
        services::open(linked, DatabaseOutage::ConnectLater, config, host, observer).await?
    };
    let engine = ports.engine.declared_by(function, &QUEUES);
    Ok(Backend { ports: Ports { engine, ..ports }, config })
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
