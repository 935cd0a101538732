//! Adapters of the search import's own ports: the uploaded files on S3, and the studies in the database.

use std::sync::Arc;

use futures::future::{BoxFuture, try_join_all};
use imports::queues::{CONTROL, EVENTS, PARSE, PARSE_DEAD, QUEUES, SAGA, UPLOADS};
use imports::{Ports, ports};
use messages::{DecisionSink, Host, Queue};
use s3::Objects;
use saga::Service;

use super::files::{BUCKET, Files};
use super::ports::{Backend, with_earlier_views};
use crate::OpenError;
use crate::config::{Config, Mode};
use crate::database::DatabaseOutage;
use crate::requirements::complete;
use crate::services::{LinkedServices, connect, ledger, no_ledger, no_processed, processed, sqs};

/// Queues that the functions use.
const NEEDED: [Queue; 6] = [UPLOADS, SAGA, PARSE, PARSE_DEAD, CONTROL, EVENTS];

/// Opens the configured services, as far as their adapters are linked. The future is boxed so that it is compiled once
/// here, and not again in every program that awaits it.
pub(super) fn open(
    linked: &LinkedServices,
    outage: DatabaseOutage,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> BoxFuture<'_, Result<Backend, OpenError>> {
    Box::pin(open_linked(linked, outage, config, host, observer))
}

async fn open_linked(
    linked: &LinkedServices,
    outage: DatabaseOutage,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    let sdk = aws::config().await;
    let adapters = connect(linked, outage, &sdk, &QUEUES, &config, &host).await?;
    let files = linked.files.map(|open| open(&sdk, &config, &host)).ok_or(BUCKET);
    let (objects, uploads) = match files {
        Ok(Files { objects, uploads }) => (Ok(objects), uploads),
        Err(missing) => (Err(missing.clone()), Err(missing)),
    };
    let study_stores = adapters.study_stores.clone();
    let ports = Ports {
        engine: with_earlier_views(adapters.engine(imports::SYSTEM, host, observer, &config)),
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

/// Checks that all services of the functions exist, before a program starts its work. Functions do not call it, because
/// their roles deny it and each service reports the error itself.
///
/// # Errors
/// Returns all settings that are not set, or the first service that does not exist.
pub async fn check(config: &Config, host: Arc<dyn Host>) -> Result<(), OpenError> {
    let services = [Service::DATABASE, Service::LEDGER, Service::PROCESSED, ports::UPLOADS];
    complete(config, &services, &NEEDED).await?;
    let (sdk, services) = (aws::config().await, &config.services);
    let bucket = services.upload_bucket.as_deref().ok_or(BUCKET)?;
    if config.mode == Mode::Ledger {
        ledger(
            &sdk,
            imports::SYSTEM,
            services.ledger_table.as_deref().ok_or_else(|| no_ledger(imports::SYSTEM))?,
        )
        .check()
        .await?;
    }
    processed(
        &sdk,
        imports::SYSTEM,
        services.processed_table.as_deref().ok_or_else(|| no_processed(imports::SYSTEM))?,
    )
    .check()
    .await?;
    let sqs = sqs(&sdk, &QUEUES, config, &host);
    try_join_all(NEEDED.iter().map(|queue| sqs.check(queue))).await?;
    Ok(Objects::new(s3::client(&sdk), host).check(bucket).await?)
}
