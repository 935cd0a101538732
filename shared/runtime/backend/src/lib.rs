//! Settings of the programs of a system, and the adapters of their ports, which a program selects and opens once at
//! start.
//!
//! - [`config`]: all settings;
//! - `engine`: the engine of an application, on a data directory or on the services of AWS;
//! - `services`, with feature `services`: DynamoDB and SQS; the documents in DynamoDB or, with feature `mongo`, in
//!   MongoDB;
//! - `settings` and `complete`, with feature `services`: the settings that services require;
//! - `search`, with feature `search`: the settings and the ports of the search import.
//!
//! The features select the adapters that a program contains. Without features it contains none.
//!
//! # Guarantees
//!
//! - All wrong and missing settings are reported together, by name, before anything is opened.
//! - A function is restricted to the queues and services that its table declares, as its role is.
//! - While the database is unavailable, a function starts, and its calls return retryable errors.
//!
//! # Example
//!
//! The engine of one function on AWS, with the settings of its environment:
//!
//! ```no_run
//! # #[cfg(feature = "services")]
//! # async fn open(system: &saga::System<saga::Engine>) -> Result<saga::Engine, backend::OpenError> {
//! use std::sync::Arc;
//!
//! let opened = backend::engine::for_function(system, "saga", Arc::new(())).await?;
//! Ok(opened.ports)
//! # }
//! ```

pub mod config;
#[cfg(feature = "services")]
mod database;
#[cfg(any(feature = "embedded", feature = "services"))]
pub mod engine;
#[cfg(feature = "mongo")]
mod mongodb;
#[cfg(feature = "services")]
mod requirements;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "mongo")]
mod secret;
#[cfg(feature = "services")]
pub mod services;

use messages::StoreError;
use saga::{MissingSetting, WrongTable};

pub use config::{BackendKind, Config, Mode, store_table};
#[cfg(feature = "services")]
pub use requirements::{complete, settings};
#[cfg(feature = "search")]
pub use search::{Backend, SearchSettings, open, queue_setting};
#[cfg(all(feature = "search", feature = "embedded"))]
pub use search::{embedded, store_settings};
#[cfg(feature = "search-services")]
pub use search::{for_function, open_for};
#[cfg(feature = "mongo")]
pub use secret::SecretError;
pub use system_host::{AdvancedHost, SystemHost};

/// Ports of a program, with its settings.
#[derive(Clone)]
pub struct ConfiguredPorts<P> {
    /// The ports.
    pub ports: P,
    /// The settings.
    pub config: Config,
}

impl<P> ConfiguredPorts<P> {
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
    #[cfg(feature = "mongo")]
    #[error(transparent)]
    Database(#[from] mongo::ConnectError),
    /// A service failed.
    #[error(transparent)]
    Service(#[from] StoreError),
    /// Settings are wrong.
    #[error(transparent)]
    Settings(#[from] config::Faults),
    /// The table of the application is wrong.
    #[error(transparent)]
    Table(#[from] WrongTable),
    /// The table of the application has no such function.
    #[error("the table has no function {0}")]
    UnknownFunction(&'static str),
    /// A service is not configured.
    #[error(transparent)]
    Missing(#[from] MissingSetting),
    /// Settings that a function requires are not set.
    #[cfg(feature = "services")]
    #[error("{function} cannot start: these settings are missing: {}", settings.join(", "))]
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
    /// The database deletes documents too early for optimistic mode. Without a ledger only the document shows that a
    /// saga has ended, so a message after its deletion would restart the saga.
    #[cfg(feature = "mongo")]
    #[error(
        "in optimistic mode the documents of ended sagas must be kept for {needed} s, and the database deletes them \
         sooner ({index}); `migrate --rebuild` corrects the index"
    )]
    DeletesEarly {
        /// The difference of the existing index.
        index: String,
        /// Required retention in seconds.
        needed: i64,
    },
    /// The secret with the database's address cannot be read.
    #[cfg(feature = "mongo")]
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The program does not contain the adapters of the backend.
    #[error("this program is built without the {0} backend")]
    NotBuilt(&'static str),
}

#[cfg(feature = "mongo")]
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
        several => format!("these settings are missing: {}", several.join(", ")),
    }
}
