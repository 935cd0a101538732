//! An opened database: MongoDB or a DynamoDB table.

use std::sync::Arc;

#[cfg(feature = "search-services")]
use imports::StudyStores;
use saga::{KeepHistory, MissingSetting, Stores};

use crate::config::{Config, store_table};
use crate::{OpenError, requirements};

/// Result of opening a database. `MissingSetting` reports a database that is not configured, which is an error only if
/// the database is used.
pub(crate) type DatabaseResult = Result<Result<Database, MissingSetting>, OpenError>;

/// Behavior of a starting program if the database is unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DatabaseOutage {
    /// The program does not start and reports the reason to the operator.
    Fail,
    /// The program starts, and each call tries to connect. A function that does not start cannot respond to deliveries,
    /// so each one is delayed by the visibility timeout. A function that has started determines the time of the next
    /// delivery.
    ConnectLater,
}

/// Adapters of the database.
pub(crate) struct Database {
    pub(crate) stores: Stores,
    #[cfg(feature = "search-services")]
    pub(crate) study_stores: Result<StudyStores, MissingSetting>,
    pub(crate) history: Option<Arc<dyn KeepHistory>>,
}

/// Returns the error if no database is configured.
pub(crate) fn no_database(system: &str) -> MissingSetting {
    let mongodb = "the address of a MongoDB replica set, credentials included";
    let either = "either the address of a MongoDB replica set, credentials included, or a DynamoDB table";
    let what = if store_table(system).is_some() { either } else { mongodb };
    MissingSetting { setting: requirements::database(system).into(), what }
}

/// Returns whether the settings select MongoDB.
pub(crate) fn is_configured(config: &Config) -> bool {
    config.services.mongodb_uri.is_some() || config.services.mongodb_uri_secret.is_some()
}
