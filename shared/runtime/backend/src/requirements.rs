//! Settings that a function requires.

use aws::queues::Queues;
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use messages::{Queue, QueueSpec};
use saga::{Function, Service};

use crate::config::{Config, Mode};
use crate::{OpenError, secret};

/// Returns the settings of a service. If a service has several, they are alternatives or have a default.
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

/// Returns the settings that the function requires and that are not set.
pub(crate) fn missing_settings<P>(
    function: &Function<P>,
    table: &[QueueSpec],
    config: &Config,
) -> Vec<String> {
    missing(function.services, &function.queues(table), config)
}

/// Returns the settings of these services and queues that are not set.
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
        // Each event contains the location of its object.
        OBJECTS => true,
        _ => false,
    };
    let known = Queues::from_pairs(services.queue_urls.clone());
    let missing = needed.iter().filter(|service| !has(service));
    // This crate has no adapter for a service without a setting, so its name is reported.
    let of_services = missing.map(|service| settings(*service).first().unwrap_or(&service.0).to_string());
    let of_queues = queues.into_iter().filter(|queue| known.url(queue).is_none()).map(Queues::setting);
    of_services.chain(of_queues).collect()
}

/// Checks that the settings of these services and queues and the region of AWS are set. It is for programs that operators
/// start. The environment of a function always contains the region.
///
/// # Errors
/// Returns all settings that are not set.
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

#[cfg(test)]
mod tests {
    use super::*;
    use imports::Ports;
    use imports::queues::{PARSE, QUEUES, SAGA};
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
        missing_settings(&FUNCTION, &QUEUES, &Config::from_pairs(pairs).unwrap())
    }

    #[test]
    fn queue_setting_equals_that_of_its_adapter() {
        assert!(QUEUES.iter().all(|spec| crate::queue_setting(&spec.queue) == Queues::setting(&spec.queue)));
    }

    #[test]
    fn all_missing_settings_are_listed() {
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
