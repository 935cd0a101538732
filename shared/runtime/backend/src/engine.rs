//! The engine with the adapters that the settings select, for any application. Applications open their own ports
//! separately.

use std::sync::Arc;

use dedup::CheckTokens;
use dedup::ledger::NoLedger;
#[cfg(feature = "embedded")]
use embedded::Store;
use messages::{DecisionSink, Host};
use saga::{Engine, Partitions, System};

use crate::ConfiguredPorts;
use crate::config::{Config, Mode};
#[cfg(feature = "services")]
use crate::database::DatabaseOutage;
#[cfg(feature = "services")]
use crate::{BackendKind, OpenError, SystemHost};

/// Returns the engine with a data directory.
#[cfg(feature = "embedded")]
pub fn embedded<P>(
    system: &System<P>,
    store: &Arc<Store>,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
    config: Config,
) -> ConfiguredPorts<Engine> {
    let ports = config.applied_to(store.engine(system.name, host, observer));
    ConfiguredPorts { ports, config }
}

/// Opens the engine with the services that are configured: MongoDB or DynamoDB for the documents, DynamoDB and SQS.
///
/// # Errors
/// Returns an error if the database is unavailable, or its table on DynamoDB lacks an index.
#[cfg(feature = "services")]
pub async fn services<P>(
    system: &System<P>,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<ConfiguredPorts<Engine>, OpenError> {
    open(system, DatabaseOutage::Fail, config, host, observer).await
}

#[cfg(feature = "services")]
async fn open<P>(
    system: &System<P>,
    outage: DatabaseOutage,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<ConfiguredPorts<Engine>, OpenError> {
    system.check()?;
    let adapters = crate::services::adapters(outage, system.queues, &config, &host).await?;
    let ports = adapters.engine(system.name, host, observer, &config);
    Ok(ConfiguredPorts { ports, config })
}

/// Opens the engine of one function with the settings of the environment and the services of AWS. The engine is
/// restricted to what the function declares, see [`Engine::declared_by`]. If the database is unavailable, calls return
/// retryable errors until it is available.
///
/// # Errors
/// Returns all faults of the table, all settings that are wrong, or all required settings that are not set.
#[cfg(feature = "services")]
pub async fn for_function<P>(
    system: &System<P>,
    name: &'static str,
    observer: Arc<dyn DecisionSink>,
) -> Result<ConfiguredPorts<Engine>, OpenError> {
    let config = Config { backend: BackendKind::Aws, ..Config::from_env_of(system.name)? };
    let function = system.function(name).ok_or(OpenError::UnknownFunction(name))?;
    let settings = crate::requirements::missing_settings(function, system.queues, &config);
    if !settings.is_empty() {
        return Err(OpenError::Unset { function: name, settings });
    }
    let host = Arc::new(SystemHost);
    let opened = open(system, DatabaseOutage::ConnectLater, config, host, observer).await?;
    Ok(ConfiguredPorts { ports: opened.ports.declared_by(function, system.queues), ..opened })
}

impl Config {
    /// Returns an engine with the settings of the outbox, the sessions and the runner, and without its ledger in
    /// optimistic mode.
    pub(crate) fn applied_to(&self, engine: Engine) -> Engine {
        let is_optimistic = self.mode == Mode::Optimistic;
        let (partitions, check_tokens) = match is_optimistic {
            true => (Ok(Partitions::of(Arc::new(NoLedger))), Ok(Arc::new(NoLedger) as Arc<dyn CheckTokens>)),
            false => (engine.partitions, engine.check_tokens),
        };
        Engine {
            partitions,
            check_tokens,
            policy: self.outbox,
            session: outbox::session::Options {
                max_commit: self.session_max_commit,
                increment: self.session_increment,
                ..engine.session
            },
            runner: saga::Settings {
                concurrency: self.concurrency,
                admit_untokened: self.admit_untokened || is_optimistic,
                ..engine.runner
            },
            ..engine
        }
    }
}
