//! Every setting, and the adapters behind the ports of a program, chosen and opened once, at its start.
//!
//! - [`config`]: every setting, read once;
//! - [`machine`]: the real clock, sleep and randomness;
//! - [`open`]: the ports that the settings name;
//! - [`queue_setting`]: the setting with a queue's address;
//! - [`embedded()`], with feature `embedded`: the ports of a data directory that is open already;
//! - [`services`], with feature `services`: MongoDB, DynamoDB, SQS and S3;
//! - [`open_for`], with the same: the ports of one function, which is refused to start without what it uses;
//! - [`engine`]: the same three for an application that has no ports beside the engine's.
//!
//! A program has only the adapters whose features it asks for; there are none by default.

pub mod config;
#[cfg(any(feature = "embedded", feature = "services"))]
pub mod engine;
pub mod machine;
#[cfg(feature = "services")]
mod requirements;
#[cfg(feature = "services")]
mod secret;
#[cfg(feature = "services")]
pub mod services;

use std::sync::Arc;

#[cfg(feature = "embedded")]
use embedded::Store;
use imports::Ports;
#[cfg(feature = "embedded")]
use imports::StudyStores;
#[cfg(feature = "embedded")]
use imports::queues::QUEUES;
use messages::{DecisionSink, Host, Queue, StoreError};
use saga::Missing;
#[cfg(any(feature = "embedded", feature = "services"))]
use saga::history::Recorder;

pub use config::{BackendKind, Config, Mode};
pub use machine::SystemHost;
#[cfg(feature = "services")]
pub use requirements::{complete, for_function, open_for, settings};
#[cfg(feature = "services")]
pub use secret::SecretError;

/// The ports of one program, with the settings that they were opened by.
#[derive(Clone)]
pub struct Backend<P = Ports> {
    /// The ports.
    pub ports: P,
    /// The settings.
    pub config: Config,
}

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
    /// Settings that are wrong.
    #[error(transparent)]
    Settings(#[from] config::Faults),
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
    /// Settings that a program needs.
    #[cfg(feature = "services")]
    #[error("{}; docs/settings.md has all settings", told_unset(settings))]
    NotSet {
        /// The environment variables.
        settings: Vec<String>,
    },
    /// Without a ledger only the document tells that its search has ended: one that is deleted while messages still
    /// come lets them begin the search anew.
    #[cfg(feature = "services")]
    #[error(
        "in optimistic mode ended searches must be kept for {needed} s, and the database deletes them sooner \
         ({index}); `search-import migrate --rebuild` builds the index as it should be"
    )]
    DeletesEarly {
        /// What is there, and in whose place.
        index: String,
        /// How many seconds they must be kept.
        needed: i64,
    },
    /// The secret that holds the database's address.
    #[cfg(feature = "services")]
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// A backend whose adapters this program is built without.
    #[error("this program is built without the {0} backend")]
    NotBuilt(&'static str),
}

#[cfg(feature = "services")]
impl OpenError {
    /// Whether a setting is wrong, so that every attempt fails.
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
fn told_unset(settings: &[String]) -> String {
    match settings {
        [one] => format!("{one} is not set"),
        several => format!("not set are {}", several.join(", ")),
    }
}

/// The environment variable that a queue's address is read from, such as `SEARCH_IMPORT_SAGA_QUEUE_URL`.
pub fn queue_setting(queue: &Queue) -> String {
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
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    match config.backend {
        BackendKind::Embedded => open_embedded(config, host, observer),
        #[cfg(feature = "services")]
        BackendKind::Aws => {
            services::open(&services::Linked::ALL, services::Absent::Refused, config, host, observer).await
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

/// What a data directory is opened with.
#[cfg(feature = "embedded")]
pub fn store_settings(config: &Config) -> embedded::Settings {
    let retention =
        embedded::Settings::with_retention(&QUEUES, config.saga_retention, config.outbox.retention);
    embedded::Settings { history: config.history.is_some(), ..retention }
}

/// The ports of a data directory.
#[cfg(feature = "embedded")]
pub fn embedded(
    store: &Arc<Store>,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
    config: Config,
) -> Backend {
    let ports = Ports {
        engine: Adapters::of(store, config.mode).engine(imports::SYSTEM, host, observer, &config),
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

/// What stands behind the engine's ports.
#[cfg(any(feature = "embedded", feature = "services"))]
struct Adapters {
    stores: Result<saga::Stores, Missing>,
    partitions: Result<saga::Partitions, Missing>,
    processed: Result<Arc<dyn dedup::ProcessedMessages>, Missing>,
    send: Arc<dyn messages::SendMessages>,
    receive: Arc<dyn messages::ReceiveMessages>,
    history: Option<Arc<dyn saga::KeepHistory>>,
    /// Whether that is told of decisions here. A data directory is an observer itself, for whoever wants it told.
    records: bool,
    inspect: Arc<dyn messages::InspectQueues>,
}

#[cfg(any(feature = "embedded", feature = "services"))]
impl Adapters {
    #[cfg(feature = "embedded")]
    fn of(store: &Arc<Store>, mode: Mode) -> Self {
        use dedup::ledger::NoLedger;
        use saga::{Partitions, Stores};

        Self {
            stores: Ok(Stores::of(store, store.saga_outbox(), store.session_outbox())),
            partitions: Ok(match mode {
                Mode::Ledger => Partitions::of(Arc::clone(store)),
                Mode::Optimistic => Partitions::of(Arc::new(NoLedger)),
            }),
            processed: Ok(store.clone()),
            send: store.clone(),
            receive: store.clone(),
            history: Some(store.clone()),
            records: false,
            inspect: store.clone(),
        }
    }

    fn engine(
        self,
        system: &'static str,
        host: Arc<dyn Host>,
        observer: Arc<dyn DecisionSink>,
        config: &Config,
    ) -> saga::Engine {
        let observer = match &self.history {
            Some(history) if self.records && config.history.is_some() => {
                Arc::new(Recorder::new(observer, Arc::clone(history), Arc::clone(&host)))
            }
            _ => observer,
        };
        saga::Engine {
            system,
            stores: self.stores,
            partitions: self.partitions,
            processed: self.processed,
            send: self.send,
            receive: self.receive,
            inspect: self.inspect,
            host,
            observer,
            history: self.history,
            policy: config.outbox,
            session: outbox::session::Options {
                max_commit: config.session_max_commit,
                increment: config.session_increment,
                ..outbox::session::Options::default()
            },
            runner: saga::Settings {
                concurrency: config.concurrency,
                admit_untokened: config.admit_untokened || config.mode == Mode::Optimistic,
                ..saga::Settings::default()
            },
            earlier_view: imports::job::earlier_view,
        }
    }
}
