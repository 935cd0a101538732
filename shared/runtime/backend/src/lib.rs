//! Settings of the programs, and the adapters of their ports, which a program selects and opens once at start.
//!
//! - [`config`]: all settings;
//! - [`open`]: opens the ports that the settings select;
//! - [`queue_setting`]: the setting with a queue's address;
//! - [`embedded()`], with feature `embedded`: the ports of an open data directory;
//! - [`services`], with feature `services`: MongoDB, DynamoDB, SQS and S3;
//! - [`open_for`], with feature `services`: opens the ports of one function, and fails if a required setting is missing;
//! - [`engine`]: the corresponding functions for an application that only has the engine's ports.
//!
//! The features select the adapters that a program contains. By default it contains none.

pub mod config;
#[cfg(any(feature = "embedded", feature = "services"))]
pub mod engine;
#[cfg(feature = "services")]
mod function;
#[cfg(feature = "services")]
mod requirements;
#[cfg(feature = "services")]
mod secret;
#[cfg(feature = "services")]
pub mod services;

use std::sync::Arc;

#[cfg(any(feature = "embedded", feature = "services"))]
use dedup::ledger::NoLedger;
#[cfg(feature = "embedded")]
use embedded::Store;
use imports::Ports;
#[cfg(feature = "embedded")]
use imports::StudyStores;
#[cfg(feature = "embedded")]
use imports::queues::QUEUES;
use messages::{DecisionSink, Host, Queue, StoreError};
use saga::MissingSetting;
#[cfg(any(feature = "embedded", feature = "services"))]
use saga::{Engine, Partitions};

pub use config::{BackendKind, Config, Mode};
#[cfg(feature = "services")]
pub use function::{for_function, open_for};
#[cfg(feature = "services")]
pub use requirements::{complete, settings};
#[cfg(feature = "services")]
pub use secret::SecretError;
pub use system_host::SystemHost;

/// Ports of a program, with its settings.
#[derive(Clone)]
pub struct Backend<P = Ports> {
    /// The ports.
    pub ports: P,
    /// The settings.
    pub config: Config,
}

impl<P> Backend<P> {
    /// Returns `true` if Lambda's events come from the queues of these ports.
    pub fn has_event_sources(&self) -> bool {
        self.config.backend == BackendKind::Aws
    }
}

/// Failure to open a backend.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory cannot be opened.
    #[cfg(feature = "embedded")]
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// The database cannot be opened.
    #[cfg(feature = "services")]
    #[error(transparent)]
    Database(#[from] mongo::ConnectError),
    /// A service failed.
    #[error(transparent)]
    Service(#[from] StoreError),
    /// Settings are wrong.
    #[error(transparent)]
    Settings(#[from] config::Faults),
    /// A service is not configured.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// Settings that a function requires are not set.
    #[cfg(feature = "services")]
    #[error("{function} cannot start: not set are {}", settings.join(", "))]
    Unset {
        /// The function.
        function: &'static str,
        /// The environment variables.
        settings: Vec<String>,
    },
    /// Settings that a program requires are not set.
    #[cfg(feature = "services")]
    #[error("{}; docs/settings.md has all settings", missing_text(settings))]
    NotSet {
        /// The environment variables.
        settings: Vec<String>,
    },
    /// The database deletes ended searches too early for optimistic mode. Without a ledger only the document shows that a
    /// search has ended, so a message after its deletion would restart the search.
    #[cfg(feature = "services")]
    #[error(
        "in optimistic mode ended searches must be kept for {needed} s, and the database deletes them sooner \
         ({index}); `search-import migrate --rebuild` corrects the index"
    )]
    DeletesEarly {
        /// The difference of the existing index.
        index: String,
        /// Required retention in seconds.
        needed: i64,
    },
    /// The secret with the database's address cannot be read.
    #[cfg(feature = "services")]
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The program does not contain the adapters of the backend.
    #[error("this program is built without the {0} backend")]
    NotBuilt(&'static str),
}

#[cfg(feature = "services")]
impl OpenError {
    /// Returns whether a setting is wrong, so that every attempt fails.
    fn is_of_settings(&self) -> bool {
        match self {
            Self::Database(error) => error.is_of_settings(),
            Self::Secret(error) => matches!(error, SecretError::Form),
            Self::Service(_) => false,
            _ => true,
        }
    }
}

#[cfg(feature = "services")]
fn missing_text(settings: &[String]) -> String {
    match settings {
        [one] => format!("{one} is not set"),
        several => format!("not set are {}", several.join(", ")),
    }
}

/// Returns the environment variable with a queue's address, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
pub fn queue_setting(queue: &Queue) -> String {
    format!("SEARCH_IMPORT_{}_QUEUE_URL", queue.name().replace('-', "_").to_uppercase())
}

/// Opens the backend that the settings select. Other programs may use the same data directory at the same time.
///
/// # Errors
/// Returns an error if the data directory or the database cannot be opened, or if the program does not contain the backend.
/// A service that is not configured only causes an error when it is used.
#[cfg_attr(
    not(any(feature = "embedded", feature = "services")),
    allow(unused_variables, reason = "without adapters nothing is opened")
)]
pub async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    match config.backend {
        BackendKind::Embedded => open_embedded(config, host, observer),
        #[cfg(feature = "services")]
        BackendKind::Aws => {
            use services::{DatabaseOutage, LinkedServices};
            services::open(&LinkedServices::ALL, DatabaseOutage::Fail, config, host, observer).await
        }
        #[cfg(not(feature = "services"))]
        BackendKind::Aws => Err(OpenError::NotBuilt("aws")),
    }
}

#[cfg(feature = "embedded")]
fn open_embedded(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), store_settings(&config))?);
    Ok(embedded(&store, host, observer, config))
}

#[cfg(not(feature = "embedded"))]
fn open_embedded(_: Config, _: Arc<dyn Host>, _: Arc<dyn DecisionSink>) -> Result<Backend, OpenError> {
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
    let ports = Ports {
        engine: config.applied_to(store.engine(imports::SYSTEM, host, observer)),
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

#[cfg(any(feature = "embedded", feature = "services"))]
impl Config {
    /// Returns an engine with the settings of the outbox, the sessions and the runner, and without its ledger in
    /// optimistic mode.
    fn applied_to(&self, engine: Engine) -> Engine {
        let is_optimistic = self.mode == Mode::Optimistic;
        Engine {
            partitions: if is_optimistic {
                Ok(Partitions::of(Arc::new(NoLedger)))
            } else {
                engine.partitions
            },
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
            earlier_view: imports::job::earlier_view,
            ..engine
        }
    }
}
