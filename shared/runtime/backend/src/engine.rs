//! The engine on the adapters that the settings name, for any application. One with ports of its own opens those beside it.

use std::sync::Arc;

#[cfg(feature = "embedded")]
use embedded::Store;
use messages::{DecisionSink, Host};
use saga::{Engine, System};

#[cfg(feature = "embedded")]
use crate::Adapters;
use crate::{Backend, Config};
#[cfg(feature = "services")]
use crate::{BackendKind, OpenError, SystemHost};

/// The engine on a data directory.
#[cfg(feature = "embedded")]
pub fn embedded<P>(
    system: &System<P>,
    store: &Arc<Store>,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
    config: Config,
) -> Backend<Engine> {
    let ports = Adapters::of(store, config.mode).engine(system.name, host, observer, &config);
    Backend { ports, config }
}

/// The engine on MongoDB, DynamoDB and SQS, as far as they are configured.
///
/// # Errors
/// When the database does not answer.
#[cfg(feature = "services")]
pub async fn services<P>(
    system: &System<P>,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend<Engine>, OpenError> {
    opened(system, crate::services::Absent::Refused, config, host, observer).await
}

#[cfg(feature = "services")]
async fn opened<P>(
    system: &System<P>,
    absent: crate::services::Absent,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend<Engine>, OpenError> {
    let adapters = crate::services::adapters(absent, system.queues, &config, &host).await?;
    let ports = adapters.engine(system.name, host, observer, &config);
    Ok(Backend { ports, config })
}

/// The engine of one function by the environment, on the real machine and the services of AWS.
///
/// # Errors
/// With every setting that is wrong or that the function needs and does not have. A database that is unavailable is waited for.
#[cfg(feature = "services")]
pub async fn for_function<P>(
    system: &System<P>,
    name: &'static str,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend<Engine>, OpenError> {
    let config = Config { backend: BackendKind::Aws, ..Config::from_env()? };
    let settings = match system.function(name) {
        Some(function) => crate::requirements::unset(function, system.queues, &config),
        None => Vec::new(),
    };
    if !settings.is_empty() {
        return Err(OpenError::Unset { function: name, settings });
    }
    opened(system, crate::services::Absent::Awaited, config, Arc::new(SystemHost), observer).await
}
