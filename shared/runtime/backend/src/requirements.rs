//! Settings that a function requires.

use aws::queues::Queues;
#[cfg(feature = "search-services")]
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use messages::{Queue, QueueSpec, naming};
use saga::{Function, Service};

use crate::OpenError;
use crate::config::{Config, Mode, store_table};

/// Environment variable with the ARN of the secret that contains the address of MongoDB.
const SECRET: &str = "MONGODB_URI_SECRET_ARN";
/// Environment variable with the version of the secret.
const SECRET_VERSION: &str = "MONGODB_URI_SECRET_VERSION";

/// Returns the settings of a service of a system. If a service has several, they are alternatives or have a default. A
/// service of the application has one, see [`Config::own_setting`].
pub fn settings(system: &str, service: Service) -> Vec<String> {
    match service {
        Service::DATABASE => {
            let shared = ["MONGODB_URI", SECRET, SECRET_VERSION, "MONGODB_DATABASE"];
            let pool = naming::setting(system, "MONGODB_POOL_SIZE");
            shared.map(str::to_owned).into_iter().chain([pool]).chain(store_table(system)).collect()
        }
        Service::LEDGER | Service::TOKENS => vec![naming::setting(system, aws::ledger::LEDGER_TABLE)],
        Service::PROCESSED => vec![naming::setting(system, aws::ledger::PROCESSED_TABLE)],
        // The addresses of the queues are separate settings.
        Service::DEPTHS => Vec::new(),
        #[cfg(feature = "search-services")]
        BUCKET | UPLOADS | EXPORTS | LINKS if system == imports::SYSTEM => vec![s3::UPLOAD_BUCKET.to_owned()],
        // Each event contains the location of its object.
        #[cfg(feature = "search-services")]
        OBJECTS if system == imports::SYSTEM => Vec::new(),
        own => vec![naming::setting(system, &naming::snake(own.0).to_ascii_uppercase())],
    }
}

/// Returns the alternative settings that select the database, as text.
pub(crate) fn database(system: &str) -> String {
    let alternatives = ["MONGODB_URI".to_owned()].into_iter().chain(store_table(system));
    alternatives.collect::<Vec<_>>().join(" or ")
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
        Service::DATABASE => {
            let has_mongodb = services.mongodb_uri.is_some() || services.mongodb_uri_secret.is_some();
            has_mongodb || services.store_table.is_some()
        }
        Service::LEDGER | Service::TOKENS => {
            services.ledger_table.is_some() || config.mode == Mode::Optimistic
        }
        Service::PROCESSED => services.processed_table.is_some(),
        Service::DEPTHS => true,
        #[cfg(feature = "search-services")]
        BUCKET | UPLOADS | EXPORTS | LINKS if config.system == imports::SYSTEM => {
            services.upload_bucket.is_some()
        }
        #[cfg(feature = "search-services")]
        OBJECTS if config.system == imports::SYSTEM => true,
        own => config.of_service(own).is_some(),
    };
    let known = Queues::from_pairs(&config.system, services.queue_urls.clone());
    let missing = needed.iter().filter(|service| !has(service));
    let of_services = missing.filter_map(|service| match *service {
        Service::DATABASE => Some(database(&config.system)),
        other => settings(&config.system, other).into_iter().next(),
    });
    let of_queues =
        queues.into_iter().filter(|queue| known.url(queue).is_none()).map(|queue| known.setting_of(queue));
    of_services.chain(of_queues).collect()
}

/// Checks that the settings of these services and queues and the region of AWS are set. It is for programs that
/// operators start. The environment of a function always contains the region.
///
/// # Errors
/// Returns all settings that are not set.
pub async fn complete(config: &Config, services: &[Service], queues: &[Queue]) -> Result<(), OpenError> {
    let mut settings = missing(services, queues, config);
    let only_database = queues.is_empty()
        && services.iter().all(|service| *service == Service::DATABASE)
        && config.services.store_table.is_none()
        && (config.services.mongodb_uri.is_some() || config.services.mongodb_uri_secret.is_none());
    if !only_database && aws::region().await.is_none() {
        settings.push(aws::REGION.to_owned());
    }
    if settings.is_empty() { Ok(()) } else { Err(OpenError::NotSet { settings }) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use saga::Source;

    const SAGA: Queue = Queue::named("saga");
    const PARSE: Queue = Queue::named("parse");
    static QUEUES: [QueueSpec; 1] = [QueueSpec::standard(SAGA, Queue::named("saga-dead"))];

    const FUNCTION: Function<()> = Function {
        name: "run-saga",
        services: &[Service::DATABASE, Service::LEDGER, Service("suppliers")],
        source: Source::Queue(SAGA),
        sends: &[SAGA, PARSE],
        drains: &[],
        build: None,
    };

    fn missing(pairs: &[(&str, &str)]) -> Vec<String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        missing_settings(&FUNCTION, &QUEUES, &Config::from_pairs("orders", pairs).unwrap())
    }

    #[test]
    fn all_missing_settings_are_listed() {
        let queues = ["SAGA", "SAGA_DEAD", "PARSE"].map(|queue| format!("ORDERS_{queue}_QUEUE_URL"));
        let services = ["MONGODB_URI or ORDERS_STORE_TABLE", "ORDERS_LEDGER_TABLE", "ORDERS_SUPPLIERS"]
            .map(str::to_owned);
        assert_eq!(missing(&[]), [services.as_slice(), queues.as_slice()].concat());
        let set = queues.each_ref().map(|name| (name.as_str(), "https://sqs.example"));
        let secret = [("MONGODB_URI_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:1:secret:x")];
        let rest = ["ORDERS_LEDGER_TABLE", "ORDERS_SUPPLIERS"];
        assert_eq!(missing(&[set.as_slice(), &secret].concat()), rest);
        let own = [("ORDERS_SUPPLIERS", "https://suppliers.example")];
        let optimistic = [("ORDERS_MODE", "optimistic")];
        assert!(missing(&[set.as_slice(), &secret, &own, &optimistic].concat()).is_empty());
        let store = [("ORDERS_STORE_TABLE", "orders-store")];
        assert_eq!(missing(&[set.as_slice(), &store].concat()), rest);
    }

    #[test]
    fn function_that_counts_messages_needs_every_queue() {
        let function = Function { services: &[Service::DEPTHS], sends: &[], ..FUNCTION };
        let table = [SAGA, PARSE, Queue::named("events")].map(QueueSpec::without_consumer);
        let missing = missing_settings(&function, &table, &Config::from_pairs("orders", []).unwrap());
        assert_eq!(missing, ["SAGA", "PARSE", "EVENTS"].map(|queue| format!("ORDERS_{queue}_QUEUE_URL")));
    }

    #[cfg(feature = "search-services")]
    #[test]
    fn settings_of_search_import_do_not_change() {
        let of = |service| settings(imports::SYSTEM, service);
        assert_eq!(of(Service::LEDGER), ["SEARCH_IMPORT_LEDGER_TABLE"]);
        assert_eq!(of(Service::PROCESSED), ["SEARCH_IMPORT_PROCESSED_TABLE"]);
        assert_eq!(database(imports::SYSTEM), "MONGODB_URI");
        assert_eq!(of(Service::DATABASE).last().unwrap(), "SEARCH_IMPORT_MONGODB_POOL_SIZE");
        assert_eq!(of(UPLOADS), ["SEARCH_IMPORT_UPLOAD_BUCKET"]);
        assert!(of(OBJECTS).is_empty());
        let queues = &imports::queues::QUEUES;
        let setting = |spec: &QueueSpec| Queues::setting(imports::SYSTEM, &spec.queue);
        assert!(queues.iter().all(|spec| crate::queue_setting(&spec.queue) == setting(spec)));
        // A service with the same name in another system is that system's own.
        assert_eq!(settings("orders", UPLOADS), ["ORDERS_UPLOADS"]);
    }
}
