//! Adapters of MongoDB, DynamoDB and SQS. The documents are in MongoDB, or in a DynamoDB table if the settings name one.
//!
//! Every client is created once, while the program starts. AWS's clients connect when they are first used. The program
//! connects to the database while it starts, or later if the database is unavailable and `DatabaseOutage` allows it. A
//! program contains the driver of MongoDB only with the feature `mongo`.

use std::sync::Arc;

use aws::ledger::{Ledger, ProcessedTable};
use aws::queues::{Queues, Sqs};
use aws_types::SdkConfig;
use dedup::{CheckTokens, ProcessedMessages};
use dynamo::Dynamo;
use futures::future::BoxFuture;
#[cfg(feature = "search-services")]
use imports::StudyStores;
use jiff::SignedDuration;
use messages::{DecisionSink, Host, QueueSpec, naming};
use outbox::session::Options;
use saga::history::Recorder;
use saga::{Engine, KeepHistory, MissingSetting, Partitions, Service, Stores};

use crate::OpenError;
use crate::config::Config;
#[cfg(not(feature = "mongo"))]
use crate::database::is_configured;
use crate::database::{Database, DatabaseOutage, DatabaseResult, no_database};
#[cfg(feature = "mongo")]
pub use crate::mongodb::database;
#[cfg(feature = "mongo")]
use crate::mongodb::open as open_mongo;
#[cfg(feature = "search-services")]
use crate::search::files::OpenFiles;

pub(crate) fn no_ledger(system: &str) -> MissingSetting {
    let setting = naming::setting(system, aws::ledger::LEDGER_TABLE);
    MissingSetting { setting: setting.into(), what: "the DynamoDB table of the partitions" }
}

pub(crate) fn no_processed(system: &str) -> MissingSetting {
    let setting = naming::setting(system, aws::ledger::PROCESSED_TABLE);
    MissingSetting { setting: setting.into(), what: "the DynamoDB table of processed messages" }
}

/// Adapters that a program is linked with. If the value is a constant, the linker removes the code of all other
/// adapters, so the program of a function contains only the adapters that it uses.
#[derive(Clone, Copy)]
pub struct LinkedServices {
    database: Option<OpenDatabase>,
    ledger: Option<OpenTable<LedgerPorts>>,
    processed: Option<OpenTable<Arc<dyn ProcessedMessages>>>,
    #[cfg(feature = "search-services")]
    pub(crate) files: Option<OpenFiles>,
}

type OpenDatabase =
    for<'a> fn(&'a Config, &'a SdkConfig, &'a Arc<dyn Host>, DatabaseOutage) -> BoxFuture<'a, DatabaseResult>;
/// The ports that change the ledger, and the port that checks its tokens.
type LedgerPorts = (Partitions, Arc<dyn CheckTokens>);
type OpenTable<T> = fn(&SdkConfig, &str, &str) -> T;

impl LinkedServices {
    /// All adapters of the search import, for programs whose settings select them.
    pub const ALL: Self = Self {
        database: Some(open_mongo),
        ledger: Some(open_ledger),
        processed: Some(open_processed),
        #[cfg(feature = "search-services")]
        files: Some(crate::search::files::open_files),
    };

    /// Returns the adapters of these services. Use it for a constant: a variable would link all adapters.
    pub const fn with(services: &[Service]) -> Self {
        let mut linked = Self {
            database: None,
            ledger: None,
            processed: None,
            #[cfg(feature = "search-services")]
            files: None,
        };
        let mut rest = services;
        while let [service, others @ ..] = rest {
            if service.is(Service::DATABASE) {
                linked.database = Self::ALL.database;
            } else if service.is(Service::LEDGER) || service.is(Service::TOKENS) {
                linked.ledger = Self::ALL.ledger;
            } else if service.is(Service::PROCESSED) {
                linked.processed = Self::ALL.processed;
            }
            #[cfg(feature = "search-services")]
            if !service.is_of_engine() {
                // All services of the search import store uploaded files or exports.
                linked.files = Self::ALL.files;
            }
            rest = others;
        }
        linked
    }
}

/// Adapters of the engine's ports.
pub(crate) struct Adapters {
    #[cfg(feature = "search-services")]
    pub(crate) study_stores: Result<StudyStores, MissingSetting>,
    stores: Result<Stores, MissingSetting>,
    ledger: Result<LedgerPorts, MissingSetting>,
    processed: Result<Arc<dyn ProcessedMessages>, MissingSetting>,
    sqs: Sqs,
    history: Option<Arc<dyn KeepHistory>>,
}

impl Adapters {
    /// Returns the engine, which also records decisions in the database if the settings require a history.
    pub(crate) fn engine(
        self,
        system: &'static str,
        host: Arc<dyn Host>,
        observer: Arc<dyn DecisionSink>,
        config: &Config,
    ) -> Engine {
        let observer = match &self.history {
            Some(history) if config.history.is_some() => {
                Arc::new(Recorder::new(observer, Arc::clone(history), Arc::clone(&host)))
            }
            _ => observer,
        };
        let (partitions, check_tokens) = match self.ledger {
            Ok((partitions, check_tokens)) => (Ok(partitions), Ok(check_tokens)),
            Err(missing) => (Err(missing.clone()), Err(missing)),
        };
        config.applied_to(Engine {
            system,
            queue: None,
            overtime: Some(dedup::guard::OVERTIME),
            stores: self.stores,
            partitions,
            check_tokens,
            processed: self.processed,
            send: Arc::new(self.sqs.clone()),
            receive: Arc::new(self.sqs.clone()),
            inspect: Arc::new(self.sqs),
            host,
            observer,
            history: self.history,
            policy: config.outbox,
            session: Options::default(),
            runner: saga::Settings::default(),
            earlier_view: |_| None,
        })
    }
}

/// Opens the adapters of the engine's ports for an application with these queues.
pub(crate) async fn adapters(
    outage: DatabaseOutage,
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Result<Adapters, OpenError> {
    const ENGINE: LinkedServices = LinkedServices {
        database: Some(open_selected),
        ..LinkedServices::with(&[Service::LEDGER, Service::PROCESSED])
    };
    connect(&ENGINE, outage, &aws::config().await, queues, config, host).await
}

/// Opens the adapters of the engine's ports and the application's stores in the database.
pub(crate) async fn connect(
    linked: &LinkedServices,
    outage: DatabaseOutage,
    sdk: &SdkConfig,
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Result<Adapters, OpenError> {
    let (services, system) = (&config.services, &*config.system);
    let database = match linked.database {
        Some(open) => open(config, sdk, host, outage).await?,
        None => Err(no_database(system)),
    };
    let sqs = sqs(sdk, queues, config, host);
    Ok(Adapters {
        history: database.as_ref().ok().and_then(|database| database.history.clone()),
        #[cfg(feature = "search-services")]
        study_stores: match &database {
            Ok(database) => database.study_stores.clone(),
            Err(missing) => Err(missing.clone()),
        },
        stores: database.map(|database| database.stores),
        ledger: linked
            .ledger
            .zip(services.ledger_table.as_ref())
            .map(|(open, table)| open(sdk, system, table))
            .ok_or_else(|| no_ledger(system)),
        processed: linked
            .processed
            .zip(services.processed_table.as_ref())
            .map(|(open, table)| open(sdk, system, table))
            .ok_or_else(|| no_processed(system)),
        sqs,
    })
}

/// Opens the database that the settings select.
fn open_selected<'a>(
    config: &'a Config,
    sdk: &'a SdkConfig,
    host: &'a Arc<dyn Host>,
    outage: DatabaseOutage,
) -> BoxFuture<'a, DatabaseResult> {
    match store(config, sdk, host) {
        Some(store) => Box::pin(open_store(store, outage)),
        None => open_mongo(config, sdk, host, outage),
    }
}

/// Opens the documents in DynamoDB. A client connects with its first call. The roles of functions do not allow the check of
/// the table.
async fn open_store(store: Dynamo, outage: DatabaseOutage) -> DatabaseResult {
    if outage == DatabaseOutage::Fail {
        store.check_table().await?;
    }
    Ok(Ok(Database {
        stores: store.stores(),
        #[cfg(feature = "search-services")]
        study_stores: Err(no_database(imports::SYSTEM)),
        history: Some(Arc::new(store)),
    }))
}

/// Returns the documents in DynamoDB; `None` if the settings name no table for them.
pub fn store(config: &Config, sdk: &SdkConfig, host: &Arc<dyn Host>) -> Option<Dynamo> {
    let settings = dynamo::Settings {
        table: config.services.store_table.clone()?,
        saga_retention: SignedDuration::try_from(config.saga_retention).unwrap_or(SignedDuration::MAX),
        outbox_retention: config.outbox.retention,
        // Without the setting no history is stored.
        history_retention: SignedDuration::try_from(config.history.unwrap_or_default())
            .unwrap_or(SignedDuration::MAX),
        ..dynamo::Settings::new(&config.system)
    };
    Some(Dynamo::new(aws_sdk_dynamodb::Client::new(sdk), settings, Arc::clone(host)))
}

/// Returns an error if the settings select MongoDB, because the program does not contain its driver.
#[cfg(not(feature = "mongo"))]
fn open_mongo<'a>(
    config: &'a Config,
    _: &'a SdkConfig,
    _: &'a Arc<dyn Host>,
    _: DatabaseOutage,
) -> BoxFuture<'a, DatabaseResult> {
    let opened = match is_configured(config) {
        true => Err(OpenError::NotBuilt("MongoDB")),
        false => Ok(Err(no_database(&config.system))),
    };
    Box::pin(std::future::ready(opened))
}

fn open_ledger(sdk: &SdkConfig, system: &str, table: &str) -> LedgerPorts {
    let ledger = Arc::new(ledger(sdk, system, table));
    (Partitions::of(Arc::clone(&ledger)), ledger)
}

fn open_processed(sdk: &SdkConfig, system: &str, table: &str) -> Arc<dyn ProcessedMessages> {
    Arc::new(processed(sdk, system, table))
}

pub(crate) fn ledger(sdk: &SdkConfig, system: &str, table: &str) -> Ledger {
    Ledger::new(aws_sdk_dynamodb::Client::new(sdk), system, table)
}

pub(crate) fn processed(sdk: &SdkConfig, system: &str, table: &str) -> ProcessedTable {
    ProcessedTable::new(aws_sdk_dynamodb::Client::new(sdk), system, table)
}

pub(crate) fn sqs(
    sdk: &SdkConfig,
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Sqs {
    let urls = Queues::from_pairs(&config.system, config.services.queue_urls.clone());
    Sqs::new(aws::queues::client(sdk, config.outbox.send_timeout), urls, queues, Arc::clone(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether the database, the ledger and the processed messages are linked.
    fn parts(linked: &LinkedServices) -> [bool; 3] {
        [linked.database.is_some(), linked.ledger.is_some(), linked.processed.is_some()]
    }

    #[test]
    fn program_links_adapters_of_its_services() {
        const NONE: LinkedServices = LinkedServices::with(&[]);
        const WRITER: LinkedServices = LinkedServices::with(&[Service::LEDGER, Service::DATABASE]);
        const READER: LinkedServices =
            LinkedServices::with(&[Service::PROCESSED, Service::TOKENS, Service("suppliers")]);
        assert_eq!(parts(&NONE), [false; 3]);
        assert_eq!(parts(&WRITER), [true, true, false]);
        assert_eq!(parts(&READER), [false, true, true]);
        assert_eq!(parts(&LinkedServices::ALL), [true; 3]);
    }

    #[cfg(feature = "search-services")]
    #[test]
    fn only_services_of_search_import_link_files() {
        const WRITER: LinkedServices = LinkedServices::with(&[Service::LEDGER, Service::DATABASE]);
        const READER: LinkedServices = LinkedServices::with(&[imports::ports::OBJECTS]);
        assert!(WRITER.files.is_none() && READER.files.is_some());
    }
}
