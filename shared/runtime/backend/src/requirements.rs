//! What a function needs before it may start.

use std::sync::Arc;

use aws::queues::Queues;
use imports::Ports;
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use imports::queues::QUEUES;
use messages::{DecisionSink, Host, Queue, QueueSpec};
use saga::{Function, Service};

use crate::config::{BackendKind, Config, Mode};
use crate::services::{self, Linked};
use crate::{Backend, OpenError, SystemHost, open_embedded, secret};

/// The settings that lead to a service. Of a service with several, the first ones are alternatives or have a default.
pub fn settings(service: Service) -> &'static [&'static str] {
    match service {
        Service::DATABASE => &[
            "MONGODB_URI",
            secret::SETTING,
            secret::VERSION,
            "MONGODB_DATABASE",
            "SEARCH_IMPORT_MONGODB_POOL_SIZE",
        ],
        Service::LEDGER | Service::TOKENS => &[aws::ledger::LEDGER_TABLE],
        Service::PROCESSED => &[aws::ledger::PROCESSED_TABLE],
        BUCKET | UPLOADS | EXPORTS | LINKS => &[s3::UPLOAD_BUCKET],
        _ => &[],
    }
}

/// The settings of `config` that the function needs and that are not there.
pub(crate) fn unset<P>(function: &Function<P>, table: &[QueueSpec], config: &Config) -> Vec<String> {
    missing(function.services, &function.queues(table), config)
}

/// The settings of `config` that lead to these services and queues and that are not there.
fn missing<'a>(
    needed: &[Service],
    queues: impl IntoIterator<Item = &'a Queue>,
    config: &Config,
) -> Vec<String> {
    let services = &config.services;
    let has = |service: &Service| match *service {
        Service::DATABASE => services.mongodb_uri.is_some() || services.mongodb_uri_secret.is_some(),
        Service::LEDGER | Service::TOKENS => {
            services.ledger_table.is_some() || config.mode == Mode::Optimistic
        }
        Service::PROCESSED => services.processed_table.is_some(),
        BUCKET | UPLOADS | EXPORTS | LINKS => services.upload_bucket.is_some(),
        // Each event says itself where its object is.
        OBJECTS => true,
        _ => false,
    };
    let known = Queues::from_pairs(services.queue_urls.clone());
    let missing = needed.iter().filter(|service| !has(service));
    // A service without a setting is one that this crate opens nothing for; its name is all there is to say.
    let of_services = missing.map(|service| settings(*service).first().unwrap_or(&service.0).to_string());
    let of_queues = queues.into_iter().filter(|queue| known.url(queue).is_none()).map(Queues::setting);
    of_services.chain(of_queues).collect()
}

/// Whether everything is set that leads to these services and queues of AWS, and the region that they are in. It is for
/// programs that people start, which have nothing built before; a function is in a region in any case.
///
/// # Errors
/// With all settings that are not there.
pub async fn complete(config: &Config, services: &[Service], queues: &[Queue]) -> Result<(), OpenError> {
    let mut settings = missing(services, queues, config);
    let only_database = queues.is_empty()
        && services.iter().all(|service| *service == Service::DATABASE)
        && (config.services.mongodb_uri.is_some() || config.services.mongodb_uri_secret.is_none());
    if !only_database && aws::region().await.is_none() {
        settings.push(aws::REGION.to_owned());
    }
    if settings.is_empty() { Ok(()) } else { Err(OpenError::NotSet { settings }) }
}

/// Opens the ports of one function, as far as it is linked with what is behind them. While the database is
/// unavailable, calls fail with errors that are retryable.
///
/// # Errors
/// Like [`open()`](crate::open()); and, on the services of AWS, with every setting that the function needs and does not have. A queue
/// whose address is missing would otherwise be noticed by the first message for it.
pub async fn open_for(
    function: &Function<Ports>,
    linked: &Linked,
    config: Config,
    host: Arc<dyn Host>,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    if config.backend == BackendKind::Embedded {
        return open_embedded(config, host, observer);
    }
    let settings = unset(function, &QUEUES, &config);
    if !settings.is_empty() {
        return Err(OpenError::Unset { function: function.name, settings });
    }
    services::open(linked, services::Absent::Awaited, config, host, observer).await
}

/// Opens the ports of one function by the environment, on the real machine.
///
/// # Errors
/// With every setting that is wrong, and as [`open_for`].
pub async fn for_function(
    function: &Function<Ports>,
    linked: &Linked,
    observer: Arc<dyn DecisionSink>,
) -> Result<Backend, OpenError> {
    open_for(function, linked, Config::from_env()?, Arc::new(SystemHost), observer).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use imports::queues::{PARSE, SAGA};
    use saga::Source;

    const FUNCTION: Function<Ports> = Function {
        name: "run-saga",
        services: &[Service::DATABASE, Service::LEDGER],
        source: Source::Queue(SAGA),
        sends: &[SAGA, PARSE],
        drains: &[],
        build: None,
    };

    fn missing(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        unset(&FUNCTION, &QUEUES, &Config::from_pairs(pairs).unwrap())
    }

    #[test]
    fn a_queue_has_the_setting_that_its_adapter_reads() {
        assert!(QUEUES.iter().all(|spec| crate::queue_setting(&spec.queue) == Queues::setting(&spec.queue)));
    }

    #[test]
    fn a_function_names_every_setting_that_it_needs_and_does_not_have() {
        let queues = ["SAGA", "SAGA_DEAD", "PARSE"].map(|queue| format!("SEARCH_IMPORT_{queue}_QUEUE_URL"));
        let services = ["MONGODB_URI", aws::ledger::LEDGER_TABLE].map(str::to_owned);
        assert_eq!(missing(&[]), [services.as_slice(), queues.as_slice()].concat());
        let set = queues.each_ref().map(|name| (name.as_str(), "https://sqs.example"));
        let secret = [("MONGODB_URI_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:1:secret:x")];
        assert_eq!(missing(&[set.as_slice(), &secret].concat()), [aws::ledger::LEDGER_TABLE]);
        let optimistic = [("SEARCH_IMPORT_MODE", "optimistic")];
        assert!(missing(&[set.as_slice(), &secret, &optimistic].concat()).is_empty());
    }
}
