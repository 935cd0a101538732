//! What a function needs before it may start.

use std::sync::Arc;

use backend::{Backend, Service, Uses};
use config::{BackendKind, Config, Mode};
use contracts::{Host, Observe};
use sqs::Queues;

use crate::{OpenError, open, secret};

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
/// Like [`open()`]; and, on the services of AWS, with every setting that the function needs and does not have. A queue
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
    fn a_queue_has_the_setting_that_its_adapter_reads() {
        assert!(
            outbox::Queue::ALL.into_iter().all(|queue| crate::queue_setting(queue) == Queues::setting(queue))
        );
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
