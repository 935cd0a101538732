//! MongoDB, DynamoDB, SQS and S3 behind the ports.
//!
//! Every client is built once, while the program starts. AWS's clients connect when they are first used. The database is
//! connected to while the program starts. If it is unavailable, a program that may wait (`Absent`) connects later.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws::ledger::{Ledger, Processed};
use aws::queues::{Queues, Sqs};
use aws_types::SdkConfig;
use dedup::ProcessedMessages;
use dedup::ledger::NoLedger;
use futures::future::{BoxFuture, try_join_all};
use imports::queues::{CONTROL, EVENTS, PARSE, PARSE_DEAD, QUEUES, SAGA, UPLOADS};
use imports::{Ports, ReadObject, StudyStores, ports};
use jiff::SignedDuration;
use messages::store::chain;
use messages::{DecisionSink, Host, Queue, QueueSpec};
use mongo::{Client, ConnectError, Mongo, OnDifference, Settings, Uri};
use s3::{Objects, Uploads};
use saga::{KeepHistory, Missing, Partitions, Service, Stores};

use crate::config::{Config, Mode, Secret};
use crate::{Adapters, Backend, OpenError, complete, secret};

const DATABASE: Missing =
    Missing { setting: "MONGODB_URI", what: "the address of a MongoDB replica set, credentials included" };
const LEDGER: Missing =
    Missing { setting: aws::ledger::LEDGER_TABLE, what: "the DynamoDB table of the partitions" };
const PROCESSED: Missing =
    Missing { setting: aws::ledger::PROCESSED_TABLE, what: "the DynamoDB table of processed messages" };
const BUCKET: Missing = Missing { setting: s3::UPLOAD_BUCKET, what: "the S3 bucket of the uploads" };

/// The queues that the functions send to or receive from.
const NEEDED: [Queue; 6] = [UPLOADS, SAGA, PARSE, PARSE_DEAD, CONTROL, EVENTS];

/// The adapters that a program is linked with. Of those that are not named here nothing is in it, so what a function says it
/// uses, as a constant, is what it carries.
#[derive(Clone, Copy)]
pub struct Linked {
    database: Option<OpenDatabase>,
    ledger: Option<OpenTable<Partitions>>,
    processed: Option<OpenTable<Arc<dyn ProcessedMessages>>>,
    files: Option<OpenFiles>,
}

type OpenDatabase = for<'a> fn(&'a Config, &'a SdkConfig, Absent) -> BoxFuture<'a, Connected>;
type OpenTable<T> = fn(&SdkConfig, &str) -> T;
type OpenFiles = fn(&SdkConfig, &Config, &Arc<dyn Host>) -> Files;
/// A database that is not configured is no error.
type Connected = Result<Result<Database, Missing>, OpenError>;

/// The time that a function waits for its database while it starts: less than the ten seconds that Lambda gives it
/// (<https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>).
const START: Duration = Duration::from_secs(8);

/// The consequence of an unavailable database for a program that starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// It does not start. An operator reads the reason.
    Refused,
    /// It starts, and each call tries to connect. A function that does not start answers no delivery, and each delivery costs a
    /// visibility timeout. A function that has started sets the time of the next delivery.
    Awaited,
}

/// What stands behind the ports that the database has.
struct Database {
    stores: Stores,
    study_stores: StudyStores,
    history: Arc<dyn KeepHistory>,
}

/// What stands behind the ports of the uploaded files.
struct Files {
    objects: Arc<dyn ReadObject>,
    uploads: Result<Arc<Uploads>, Missing>,
}

impl Linked {
    /// Every adapter, for programs that use what their settings name.
    pub const ALL: Self = Self {
        database: Some(open_database),
        ledger: Some(open_ledger),
        processed: Some(open_processed),
        files: Some(open_files),
    };

    /// Those that these services need. It is for a constant: in a variable it would bring all of them.
    pub const fn with(services: &[Service]) -> Self {
        let mut linked = Self { database: None, ledger: None, processed: None, files: None };
        let mut rest = services;
        while let [service, others @ ..] = rest {
            if service.is(Service::DATABASE) {
                linked.database = Self::ALL.database;
            } else if service.is(Service::LEDGER) || service.is(Service::TOKENS) {
                linked.ledger = Self::ALL.ledger;
            } else if service.is(Service::PROCESSED) {
                linked.processed = Self::ALL.processed;
            } else {
                // The application's own are all of the uploaded files and what is kept beside them.
                linked.files = Self::ALL.files;
            }
            rest = others;
        }
        linked
    }
}

/// Opens the services that are configured, as far as the program is linked with them.
pub(crate) async fn open(
    linked: &Linked,
    absent: Absent,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    let sdk = aws::config().await;
    let (adapters, study_stores) = connect(linked, absent, &sdk, &QUEUES, &config, &host).await?;
    let files = linked.files.map(|open| open(&sdk, &config, &host)).ok_or(BUCKET);
    let (objects, uploads) = match files {
        Ok(Files { objects, uploads }) => (Ok(objects), uploads),
        Err(missing) => (Err(missing), Err(missing)),
    };
    let ports = Ports {
        engine: adapters.engine(imports::SYSTEM, host, observer, &config),
        study_stores,
        objects,
        bucket: uploads.clone().map(|uploads| uploads as _),
        uploads: uploads.clone().map(|uploads| uploads as _),
        exports: uploads.map(|uploads| uploads as _),
        machine: None,
        settings: config.settings(),
    };
    Ok(Backend { ports, config })
}

/// What stands behind the engine's ports, for an application with these queues.
pub(crate) async fn adapters(
    absent: Absent,
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Result<Adapters, OpenError> {
    const ENGINE: Linked = Linked::with(&[Service::DATABASE, Service::LEDGER, Service::PROCESSED]);
    let (adapters, _) = connect(&ENGINE, absent, &aws::config().await, queues, config, host).await?;
    Ok(adapters)
}

/// What stands behind the engine's ports, and what the database holds of the application.
async fn connect(
    linked: &Linked,
    absent: Absent,
    sdk: &SdkConfig,
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Result<(Adapters, Result<StudyStores, Missing>), OpenError> {
    let services = &config.services;
    let (stores, study_stores, history) = match linked.database {
        Some(open) => match open(config, sdk, absent).await? {
            Ok(Database { stores, study_stores, history }) => (Ok(stores), Ok(study_stores), Some(history)),
            Err(missing) => (Err(missing), Err(missing), None),
        },
        None => (Err(DATABASE), Err(DATABASE), None),
    };
    let sqs = sqs(sdk, queues, config, host);
    let adapters = Adapters {
        history,
        records: true,
        stores,
        partitions: match config.mode {
            Mode::Ledger => {
                let ledger = linked.ledger.zip(services.ledger_table.as_ref());
                ledger.map(|(open, table)| open(sdk, table)).ok_or(LEDGER)
            }
            Mode::Optimistic => Ok(Partitions::of(Arc::new(NoLedger))),
        },
        processed: linked
            .processed
            .zip(services.processed_table.as_ref())
            .map(|(open, table)| open(sdk, table))
            .ok_or(PROCESSED),
        send: Arc::new(sqs.clone()),
        receive: Arc::new(sqs.clone()),
        inspect: Arc::new(sqs),
    };
    Ok((adapters, study_stores))
}

fn open_database<'a>(config: &'a Config, sdk: &'a SdkConfig, absent: Absent) -> BoxFuture<'a, Connected> {
    Box::pin(async move {
        let database = match documents(config, sdk, absent).await? {
            Ok(database) => database,
            Err(missing) => return Ok(Err(missing)),
        };
        let (sagas, sessions) = (database.saga_outbox(), database.session_outbox());
        Ok(Ok(Database {
            stores: Stores::of(&database, sagas, sessions),
            study_stores: StudyStores::of(&database),
            history: database,
        }))
    })
}

fn open_ledger(sdk: &SdkConfig, table: &str) -> Partitions {
    Partitions::of(Arc::new(ledger(sdk, table)))
}

fn open_processed(sdk: &SdkConfig, table: &str) -> Arc<dyn ProcessedMessages> {
    Arc::new(processed(sdk, table))
}

fn open_files(sdk: &SdkConfig, config: &Config, host: &Arc<dyn Host>) -> Files {
    let client = s3::client(sdk);
    let bucket = config.services.upload_bucket.as_ref().ok_or(BUCKET);
    Files {
        objects: Arc::new(Objects::new(client.clone(), Arc::clone(host))),
        uploads: bucket.map(|bucket| Arc::new(Uploads::new(client, sdk, bucket, Arc::clone(host)))),
    }
}

fn ledger(sdk: &SdkConfig, table: &str) -> Ledger {
    Ledger::new(aws_sdk_dynamodb::Client::new(sdk), table)
}

fn processed(sdk: &SdkConfig, table: &str) -> Processed {
    Processed::new(aws_sdk_dynamodb::Client::new(sdk), table)
}

fn sqs(sdk: &SdkConfig, queues: &'static [QueueSpec], config: &Config, host: &Arc<dyn Host>) -> Sqs {
    let urls = Queues::from_pairs(config.services.queue_urls.clone());
    Sqs::new(aws::queues::client(sdk, config.outbox.send_timeout), urls, queues, Arc::clone(host))
}

/// The database, with its indexes. A database that is not configured is missing. For one that does not answer, `absent` decides.
async fn documents(
    config: &Config,
    sdk: &SdkConfig,
    absent: Absent,
) -> Result<Result<Arc<Mongo>, Missing>, OpenError> {
    if !is_configured(config) {
        return Ok(Err(DATABASE));
    }
    let connecting = client(config, sdk);
    let connected = match absent {
        Absent::Refused => connecting.await,
        Absent::Awaited => match tokio::time::timeout(START, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Unreachable("it does not answer in time".to_owned()).into()),
        },
    };
    let database = match connected {
        Ok((client, settings)) => Mongo::new(client, &settings),
        Err(error) if absent == Absent::Refused || error.is_of_settings() => return Err(error),
        Err(error) => {
            tracing::warn!(error = chain(&error), "the database is unavailable; each call tries to connect");
            let of = (config.clone(), sdk.clone());
            let connect = move || -> BoxFuture<'static, Result<Client, Box<dyn Error + Send + Sync>>> {
                let (config, sdk) = of.clone();
                Box::pin(async move {
                    match client(&config, &sdk).await {
                        Ok((client, _)) => Ok(client),
                        // Unwrapped, because the adapter recognizes an unreachable server by its own type.
                        Err(OpenError::Database(error)) => Err(error.into()),
                        Err(error) => Err(error.into()),
                    }
                })
            };
            // Each attempt reads the address again.
            Mongo::connecting(Box::new(connect), &settings(config, ""))
        }
    };
    Ok(Ok(Arc::new(database)))
}

/// A client of a database that has its indexes.
async fn client(config: &Config, sdk: &SdkConfig) -> Result<(Client, Settings), OpenError> {
    let settings = settings(config, address(config, sdk).await?.expose());
    let client = mongo::connect::client(&settings).await?;
    let database = Mongo::new(client.clone(), &settings);
    let retention = database.saga_retention();
    for difference in database.ensure_indexes(OnDifference::Report).await?.differences() {
        if config.mode == Mode::Optimistic && difference.deletes_sagas_before(retention) {
            return Err(OpenError::DeletesEarly {
                index: difference.to_string(),
                needed: retention.as_secs(),
            });
        }
        tracing::warn!("index {difference}; `search-import migrate --rebuild` builds it as it should be");
    }
    Ok((client, settings))
}

fn is_configured(config: &Config) -> bool {
    config.services.mongodb_uri.is_some() || config.services.mongodb_uri_secret.is_some()
}

async fn address(config: &Config, sdk: &SdkConfig) -> Result<Secret, OpenError> {
    let services = &config.services;
    match (&services.mongodb_uri, &services.mongodb_uri_secret) {
        (Some(uri), _) => Ok(uri.clone()),
        (None, Some(arn)) => {
            Ok(secret::read(sdk, arn, services.mongodb_uri_secret_version.as_deref()).await?)
        }
        (None, None) => Err(DATABASE.into()),
    }
}

fn settings(config: &Config, address: &str) -> Settings {
    let services = &config.services;
    Settings {
        max_pool_size: services.mongodb_pool_size,
        saga_retention: SignedDuration::try_from(config.saga_retention).unwrap_or(SignedDuration::MAX),
        outbox_retention: config.outbox.retention,
        // Without a setting nothing is written.
        history_retention: SignedDuration::try_from(config.history.unwrap_or_default())
            .unwrap_or(SignedDuration::MAX),
        ..Settings::new(Uri::new(address), &services.mongodb_database)
    }
}

/// Connects to the database.
///
/// # Errors
/// When none is configured, or it does not answer.
pub async fn database(config: &Config, sdk: &SdkConfig) -> Result<Mongo, OpenError> {
    Ok(Mongo::connect(&settings(config, address(config, sdk).await?.expose())).await?)
}

/// Asks whether all the services are there that the functions work on, before anything is begun. Functions do not
/// ask: their roles do not allow it, and each would find out by itself.
///
/// # Errors
/// With all settings that are missing, or the first that leads nowhere.
pub async fn check(config: &Config, host: Arc<dyn Host>) -> Result<(), OpenError> {
    let services = [Service::DATABASE, Service::LEDGER, Service::PROCESSED, ports::UPLOADS];
    complete(config, &services, &NEEDED).await?;
    let (sdk, services) = (aws::config().await, &config.services);
    let bucket = services.upload_bucket.as_deref().ok_or(BUCKET)?;
    if config.mode == Mode::Ledger {
        ledger(&sdk, services.ledger_table.as_deref().ok_or(LEDGER)?).check().await?;
    }
    processed(&sdk, services.processed_table.as_deref().ok_or(PROCESSED)?).check().await?;
    let sqs = sqs(&sdk, &QUEUES, config, &host);
    try_join_all(NEEDED.iter().map(|queue| sqs.check(queue))).await?;
    Ok(Objects::new(s3::client(&sdk), host).check(bucket).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which of the database, the ledger, the processed messages and the files.
    fn parts(linked: &Linked) -> [bool; 4] {
        let Linked { database, ledger, processed, files } = linked;
        [database.is_some(), ledger.is_some(), processed.is_some(), files.is_some()]
    }

    #[test]
    fn a_program_is_linked_with_what_its_services_need() {
        const NONE: Linked = Linked::with(&[]);
        const WRITER: Linked = Linked::with(&[Service::LEDGER, Service::DATABASE]);
        const READER: Linked = Linked::with(&[Service::PROCESSED, Service::TOKENS, ports::OBJECTS]);
        assert_eq!(parts(&NONE), [false; 4]);
        assert_eq!(parts(&WRITER), [true, true, false, false]);
        assert_eq!(parts(&READER), [false, true, true, true]);
        assert_eq!(parts(&Linked::ALL), [true; 4]);
    }
}
