//! The documents in MongoDB.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use aws_types::SdkConfig;
use futures::future::BoxFuture;
#[cfg(feature = "search-services")]
use imports::StudyStores;
use jiff::SignedDuration;
use messages::Host;
use messages::store::chain;
use mongo::{Client, ConnectError, Mongo, OnDifference, Settings, Uri};
use saga::{MissingSetting, Stores};

use crate::config::{Config, Mode, Secret};
use crate::database::{Database, DatabaseOutage, DatabaseResult, is_configured, no_database};
use crate::{OpenError, secret};

/// Time limit for connecting to the database while a function starts: less than Lambda's limit of ten seconds
/// (<https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Opens the database; see `DatabaseOutage`.
pub(crate) fn open<'a>(
    config: &'a Config,
    sdk: &'a SdkConfig,
    _: &'a Arc<dyn Host>,
    outage: DatabaseOutage,
) -> BoxFuture<'a, DatabaseResult> {
    Box::pin(async move {
        let database = match documents(config, sdk, outage).await? {
            Ok(database) => database,
            Err(missing) => return Ok(Err(missing)),
        };
        let (sagas, sessions) = (database.saga_outbox(), database.session_outbox());
        Ok(Ok(Database {
            stores: Stores::of(&database, sagas, sessions),
            #[cfg(feature = "search-services")]
            study_stores: Ok(StudyStores::of(&database)),
            history: Some(database),
        }))
    })
}

/// Opens the database and creates its indexes. `outage` determines the behavior if the database is unavailable.
async fn documents(
    config: &Config,
    sdk: &SdkConfig,
    outage: DatabaseOutage,
) -> Result<Result<Arc<Mongo>, MissingSetting>, OpenError> {
    if !is_configured(config) {
        return Ok(Err(no_database(&config.system)));
    }
    let connecting = client(config, sdk);
    let connected = match outage {
        DatabaseOutage::Fail => connecting.await,
        DatabaseOutage::ConnectLater => match tokio::time::timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(connected) => connected,
            Err(_) => Err(ConnectError::Unreachable("it does not answer in time".to_owned()).into()),
        },
    };
    let database = match connected {
        Ok((client, settings)) => Mongo::new(client, &settings),
        Err(error) if outage == DatabaseOutage::Fail || error.is_of_settings() => return Err(error),
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

/// Connects to the database and creates its indexes.
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
        tracing::warn!("index {difference}; `migrate --rebuild` corrects it");
    }
    Ok((client, settings))
}

async fn address(config: &Config, sdk: &SdkConfig) -> Result<Secret, OpenError> {
    let services = &config.services;
    match (&services.mongodb_uri, &services.mongodb_uri_secret) {
        (Some(uri), _) => Ok(uri.clone()),
        (None, Some(arn)) => {
            Ok(secret::read(sdk, arn, services.mongodb_uri_secret_version.as_deref()).await?)
        }
        (None, None) => Err(no_database(&config.system).into()),
    }
}

fn settings(config: &Config, address: &str) -> Settings {
    let services = &config.services;
    Settings {
        max_pool_size: services.mongodb_pool_size,
        saga_retention: SignedDuration::try_from(config.saga_retention).unwrap_or(SignedDuration::MAX),
        outbox_retention: config.outbox.retention,
        // Without the setting no history is stored.
        history_retention: SignedDuration::try_from(config.history.unwrap_or_default())
            .unwrap_or(SignedDuration::MAX),
        database: services.mongodb_database.clone(),
        ..Settings::new(&config.system, Uri::new(address))
    }
}

/// Connects to the database.
pub async fn database(config: &Config, sdk: &SdkConfig) -> Result<Mongo, OpenError> {
    Ok(Mongo::connect(&settings(config, address(config, sdk).await?.expose())).await?)
}
