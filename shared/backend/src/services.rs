//! MongoDB, DynamoDB, SQS and S3 behind the ports.
//!
//! Every client is built once, while the program starts: what takes long is connecting to the database. AWS's clients
//! connect when they are first used.

use std::sync::Arc;

use aws::ledger::{Ledger, Processed};
use aws::queues::{Queues, Sqs};
use aws_types::SdkConfig;
use dedup::ledger::NoLedger;
use futures::future::try_join_all;
use imports::queues::{CONTROL, EVENTS, PARSE, PARSE_DEAD, QUEUES, SAGA, UPLOADS};
use imports::{Library, Ports, ports};
use jiff::SignedDuration;
use messages::{Host, Observe, Queue, QueueSpec};
use mongo::{Mongo, OnDifference, Settings, Uri};
use s3::{Objects, Uploads};
use saga::{Missing, Partitions, Service, Stores};

use crate::config::{Config, Mode};
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

/// Opens the services that are configured.
pub(crate) async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    let sdk = aws::config().await;
    let database = documents(&config, &sdk).await?;
    let library = database.as_ref().map(Library::of).map_err(|missing| *missing);
    let clients = Clients::new(&sdk, &QUEUES, &config, &host);
    let (objects, uploads) = (clients.objects.clone(), clients.uploads.clone());
    let ports = Ports {
        engine: clients.adapters(database, config.mode).engine(imports::SYSTEM, host, observer, &config),
        library,
        objects: Arc::new(objects),
        bucket: uploads.clone().map(|uploads| Arc::new(uploads) as _),
        uploads: uploads.clone().map(|uploads| Arc::new(uploads) as _),
        exports: uploads.map(|uploads| Arc::new(uploads) as _),
        settings: config.settings(),
    };
    Ok(Backend { ports, config })
}

/// What stands behind the engine's ports, for an application with these queues.
pub(crate) async fn adapters(
    queues: &'static [QueueSpec],
    config: &Config,
    host: &Arc<dyn Host>,
) -> Result<Adapters, OpenError> {
    let sdk = aws::config().await;
    let database = documents(config, &sdk).await?;
    Ok(Clients::new(&sdk, queues, config, host).adapters(database, config.mode))
}

/// The adapters of AWS's services, as far as they are configured.
struct Clients {
    ledger: Result<Ledger, Missing>,
    processed: Result<Processed, Missing>,
    objects: Objects,
    uploads: Result<Uploads, Missing>,
    sqs: Sqs,
}

impl Clients {
    fn new(sdk: &SdkConfig, queues: &'static [QueueSpec], config: &Config, host: &Arc<dyn Host>) -> Self {
        let services = &config.services;
        let dynamo = aws_sdk_dynamodb::Client::new(sdk);
        let s3 = s3::client(sdk);
        let urls = Queues::from_pairs(services.queue_urls.clone());
        Self {
            ledger: services
                .ledger_table
                .as_ref()
                .map(|table| Ledger::new(dynamo.clone(), table))
                .ok_or(LEDGER),
            processed: services
                .processed_table
                .as_ref()
                .map(|table| Processed::new(dynamo, table))
                .ok_or(PROCESSED),
            objects: Objects::new(s3.clone(), Arc::clone(host)),
            uploads: services
                .upload_bucket
                .as_ref()
                .map(|bucket| Uploads::new(s3, sdk, bucket, Arc::clone(host)))
                .ok_or(BUCKET),
            sqs: Sqs::new(
                aws::queues::client(sdk, config.outbox.send_timeout),
                urls,
                queues,
                Arc::clone(host),
            ),
        }
    }

    fn adapters(self, database: Result<Arc<Mongo>, Missing>, mode: Mode) -> Adapters {
        let stores = |database: Arc<Mongo>| {
            let (sagas, sessions) = (database.saga_outbox(), database.session_outbox());
            Stores::of(&database, sagas, sessions)
        };
        let history = database.as_ref().ok().cloned();
        Adapters {
            history: history.map(|history| history as _),
            records: true,
            stores: database.map(stores),
            partitions: match mode {
                Mode::Ledger => self.ledger.map(|ledger| Partitions::of(Arc::new(ledger))),
                Mode::Optimistic => Ok(Partitions::of(Arc::new(NoLedger))),
            },
            processed: self.processed.map(|processed| Arc::new(processed) as _),
            send: Arc::new(self.sqs.clone()),
            receive: Arc::new(self.sqs.clone()),
            inspect: Arc::new(self.sqs),
        }
    }
}

/// The database, with its indexes. One that is not configured is missing; one that does not answer is an error.
async fn documents(config: &Config, sdk: &SdkConfig) -> Result<Result<Arc<Mongo>, Missing>, OpenError> {
    let database = match database(config, sdk).await {
        Err(OpenError::Missing(missing)) => return Ok(Err(missing)),
        database => Arc::new(database?),
    };
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
    Ok(Ok(database))
}

/// Connects to the database.
///
/// # Errors
/// When none is configured, or it does not answer.
pub async fn database(config: &Config, sdk: &SdkConfig) -> Result<Mongo, OpenError> {
    let services = &config.services;
    let uri = match (&services.mongodb_uri, &services.mongodb_uri_secret) {
        (Some(uri), _) => uri.clone(),
        (None, Some(arn)) => secret::read(sdk, arn, services.mongodb_uri_secret_version.as_deref()).await?,
        (None, None) => return Err(DATABASE.into()),
    };
    let settings = Settings {
        max_pool_size: services.mongodb_pool_size,
        saga_retention: SignedDuration::try_from(config.saga_retention).unwrap_or(SignedDuration::MAX),
        outbox_retention: config.outbox.retention,
        // Without a setting nothing is written.
        history_retention: SignedDuration::try_from(config.history.unwrap_or_default())
            .unwrap_or(SignedDuration::MAX),
        ..Settings::new(Uri::new(uri.expose()), &services.mongodb_database)
    };
    Ok(Mongo::connect(&settings).await?)
}

/// Asks whether all the services are there that the functions work on, before anything is begun. Functions do not
/// ask: their roles do not allow it, and each would find out by itself.
///
/// # Errors
/// With all settings that are missing, or the first that leads nowhere.
pub async fn check(config: &Config, host: Arc<dyn Host>) -> Result<(), OpenError> {
    let services = [Service::DATABASE, Service::LEDGER, Service::PROCESSED, ports::UPLOADS];
    complete(config, &services, &NEEDED).await?;
    let clients = Clients::new(&aws::config().await, &QUEUES, config, &host);
    clients.uploads?;
    if config.mode == Mode::Ledger {
        clients.ledger?.check().await?;
    }
    clients.processed?.check().await?;
    try_join_all(NEEDED.iter().map(|queue| clients.sqs.check(queue))).await?;
    let bucket = config.services.upload_bucket.as_deref().ok_or(BUCKET)?;
    Ok(clients.objects.check(bucket).await?)
}
