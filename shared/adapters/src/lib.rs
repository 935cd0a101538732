//! The adapters behind the ports of a program, chosen and opened once, at its start.
//!
//! - [`open`]: the backend that the settings name;
//! - [`embedded()`]: the ports of a data directory that is open already;
//! - [`open_for`]: the same for one function, which is refused to start without what it uses;
//! - [`services`]: MongoDB, DynamoDB, SQS and S3.

mod secret;
pub mod services;

use std::sync::Arc;

use backend::{Backend, Documents, Missing, Partitions, Service, Uses};
use config::{BackendKind, Config, Mode};
use contracts::{Host, Observe, StoreError};
use dedup::ledger::NoLedger;
use embedded::{Settings, Store};
use mongo::ConnectError;
use sqs::Queues;

pub use secret::SecretError;

/// Why a backend cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The data directory.
    #[error(transparent)]
    Embedded(#[from] embedded::OpenError),
    /// The database.
    #[error(transparent)]
    Database(#[from] ConnectError),
    /// One of the services.
    #[error(transparent)]
    Service(#[from] StoreError),
    /// A service that is not configured.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Settings that a function needs.
    #[error("{function} cannot start: not set are {}", settings.join(", "))]
    Unset {
        /// The function.
        function: &'static str,
        /// The environment variables.
        settings: Vec<String>,
    },
    /// The secret that holds the database's address.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// The settings that lead to a service. Of a service with several, the first ones are alternatives or have a default.
pub fn settings(service: Service) -> &'static [&'static str] {
    match service {
        Service::Database => {
            &["MONGODB_URI", secret::SETTING, "MONGODB_DATABASE", "SEARCH_IMPORT_MONGODB_POOL_SIZE"]
        }
        Service::Ledger => &[dynamo::LEDGER_TABLE],
        Service::Processed => &[dynamo::PROCESSED_TABLE],
        Service::Uploads => &[s3::UPLOAD_BUCKET],
        Service::Objects => &[],
    }
}

/// The settings of `config` that the function needs and that are not there.
fn unset(uses: &Uses, config: &Config) -> Vec<String> {
    let services = &config.services;
    let has = |service: &Service| match service {
        Service::Database => services.mongodb_uri.is_some() || services.mongodb_uri_secret.is_some(),
        Service::Ledger => services.ledger_table.is_some() || config.mode == Mode::Optimistic,
        Service::Processed => services.processed_table.is_some(),
        Service::Uploads => services.upload_bucket.is_some(),
        Service::Objects => true,
    };
    let queues = Queues::from_pairs(services.queue_urls.clone());
    let of_services =
        uses.services.iter().filter(|service| !has(service)).map(|service| settings(*service)[0].to_owned());
    let of_queues = uses.queues().filter(|queue| queues.url(*queue).is_none()).map(Queues::setting);
    of_services.chain(of_queues).collect()
}

/// Opens the backend of one function.
///
/// # Errors
/// Like [`open`]; and, on the services of AWS, with every setting that the function needs and does not have. A queue
/// whose address is missing would otherwise be noticed by the first message for it.
pub async fn open_for(
    uses: &Uses,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    let settings = if config.backend == BackendKind::Aws { unset(uses, &config) } else { Vec::new() };
    if !settings.is_empty() {
        return Err(OpenError::Unset { function: uses.function, settings });
    }
    open(config, host, observer).await
}

/// Opens the backend that the settings name. A data directory is opened beside other programs that work in it.
///
/// # Errors
/// When the data directory or the database cannot be opened. What is not configured is no error here, but where it
/// is used.
pub async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    match config.backend {
        BackendKind::Embedded => {
            let settings = Settings::with_retention(config.saga_retention, config.outbox.retention);
            let store = Arc::new(Store::open(&config.data_dir, Arc::clone(&host), settings)?);
            Ok(embedded(&store, host, observer, config))
        }
        BackendKind::Aws => services::open(config, host, observer).await,
    }
}

/// The ports of a data directory.
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

#[cfg(test)]
mod tests {
    use super::*;

    const USES: Uses = Uses {
        function: "run-saga",
        services: &[Service::Database, Service::Ledger],
        receives: Some(outbox::Queue::Saga),
        sends: &[outbox::Queue::Saga, outbox::Queue::Parse],
    };

    fn missing(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        unset(&USES, &Config::from_pairs(pairs).unwrap())
    }

    #[test]
    fn a_function_names_every_setting_that_it_needs_and_does_not_have() {
        let queues = ["SAGA", "SAGA_DEAD", "PARSE"].map(|queue| format!("SEARCH_IMPORT_{queue}_QUEUE_URL"));
        let services = ["MONGODB_URI", dynamo::LEDGER_TABLE].map(str::to_owned);
        assert_eq!(missing(&[]), [services.as_slice(), queues.as_slice()].concat());
        let set = queues.each_ref().map(|name| (name.as_str(), "https://sqs.example"));
        let secret = [("MONGODB_URI_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:1:secret:x")];
        assert_eq!(missing(&[set.as_slice(), &secret].concat()), [dynamo::LEDGER_TABLE]);
        let optimistic = [("SEARCH_IMPORT_MODE", "optimistic")];
        assert!(missing(&[set.as_slice(), &secret, &optimistic].concat()).is_empty());
    }
}
