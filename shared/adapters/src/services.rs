//! MongoDB, DynamoDB, SQS and S3 behind the ports.
//!
//! Every client is built once, while the program starts: what takes long is connecting to the database. AWS's clients
//! connect when they are first used.

use std::sync::Arc;

use aws_types::SdkConfig;
use backend::{Backend, Documents, Missing, Partitions};
use config::{Config, Mode};
use contracts::{Host, Observe};
use dedup::ledger::NoLedger;
use dynamo::{Ledger, Processed};
use futures::future::try_join_all;
use jiff::SignedDuration;
use mongo::{Mongo, OnDifference, Settings, Uri};
use outbox::Queue;
use s3::{Objects, Uploads};
use sqs::{Queues, Sqs};

use crate::{OpenError, secret};

const DATABASE: Missing =
    Missing { setting: "MONGODB_URI", what: "the address of a MongoDB replica set, credentials included" };
const LEDGER: Missing =
    Missing { setting: dynamo::LEDGER_TABLE, what: "the DynamoDB table of the partitions" };
const PROCESSED: Missing =
    Missing { setting: dynamo::PROCESSED_TABLE, what: "the DynamoDB table of processed messages" };
const BUCKET: Missing = Missing { setting: s3::UPLOAD_BUCKET, what: "the S3 bucket of the uploads" };

/// The queues that the functions send to or receive from. Queue "uploads" is not among them: it is there only where
/// S3 tells a queue of an upload instead of a function.
const QUEUES: [Queue; 5] = [Queue::Saga, Queue::Parse, Queue::ParseDead, Queue::Control, Queue::Events];

/// Opens the services that are configured.
pub(crate) async fn open(
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn Observe>,
) -> Result<Backend, OpenError> {
    let sdk = aws::config().await;
    let documents = documents(&config, &sdk).await?;
    let clients = Clients::new(&sdk, &config, &host);
    Ok(Backend {
        documents,
        partitions: match config.mode {
            Mode::Ledger => clients.ledger.map(|ledger| Partitions::of(Arc::new(ledger))),
            Mode::Optimistic => Ok(Partitions::of(Arc::new(NoLedger))),
        },
        processed: clients.processed.map(|processed| Arc::new(processed) as _),
        objects: Arc::new(clients.objects),
        uploads: clients.uploads.map(|uploads| Arc::new(uploads) as _),
        queue: Arc::new(clients.sqs.clone()),
        source: Arc::new(clients.sqs),
        host,
        observer,
        config,
    })
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
    fn new(sdk: &SdkConfig, config: &Config, host: &Arc<dyn Host>) -> Self {
        let services = &config.services;
        let dynamo = aws_sdk_dynamodb::Client::new(sdk);
        let s3 = s3::client(sdk);
        let queues = Queues::from_pairs(services.queue_urls.clone());
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
            sqs: Sqs::new(sqs::client(sdk, config.outbox.send_timeout), queues, Arc::clone(host)),
        }
    }
}

/// The database, with its indexes. One that is not configured is missing; one that does not answer is an error.
async fn documents(config: &Config, sdk: &SdkConfig) -> Result<Result<Documents, Missing>, OpenError> {
    let database = match database(config, sdk).await {
        Err(OpenError::Missing(missing)) => return Ok(Err(missing)),
        database => database?,
    };
    for difference in database.ensure_indexes(OnDifference::Report).await?.differences() {
        tracing::warn!("index {difference}; `search-import migrate --rebuild` builds it as it should be");
    }
    let (sagas, sessions) = (database.saga_outbox(), database.session_outbox());
    Ok(Ok(Documents::of(Arc::new(database), sagas, sessions)))
}

/// Connects to the database.
///
/// # Errors
/// When none is configured, or it does not answer.
pub async fn database(config: &Config, sdk: &SdkConfig) -> Result<Mongo, OpenError> {
    let services = &config.services;
    let uri = match (&services.mongodb_uri, &services.mongodb_uri_secret) {
        (Some(uri), _) => uri.clone(),
        (None, Some(arn)) => secret::read(sdk, arn).await?,
        (None, None) => return Err(DATABASE.into()),
    };
    let settings = Settings {
        max_pool_size: services.mongodb_pool_size,
        saga_retention: SignedDuration::try_from(config.saga_retention).unwrap_or(SignedDuration::MAX),
        outbox_retention: config.outbox.retention,
        ..Settings::new(Uri::new(uri.expose()), &services.mongodb_database)
    };
    Ok(Mongo::connect(&settings).await?)
}

/// Asks whether all the services are there that the functions work on, before anything is begun. Functions do not
/// ask: their roles do not allow it, and each would find out by itself.
///
/// # Errors
/// With the first setting that is missing or leads nowhere.
pub async fn check(config: &Config, host: Arc<dyn Host>) -> Result<(), OpenError> {
    let clients = Clients::new(&aws::config().await, config, &host);
    clients.uploads?;
    if config.mode == Mode::Ledger {
        clients.ledger?.check().await?;
    }
    clients.processed?.check().await?;
    try_join_all(QUEUES.map(|queue| clients.sqs.check(queue))).await?;
    let bucket = config.services.upload_bucket.as_deref().ok_or(BUCKET)?;
    Ok(clients.objects.check(bucket).await?)
}
