//! Settings of all programs, which are read once from the environment at start and converted to typed values.
//!
//! All faults are reported together, so that an operator can correct them at once.

pub(crate) mod reader;

pub use reader::store_table;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use messages::naming;
use outbox::Policy;
use saga::Service;

/// Method of recognizing duplicate messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Tokens in the partition's ledger item, which recognize duplicates of any age.
    Ledger,
    /// Versions, processed ids and states only, which recognize duplicates while the saga's document exists.
    Optimistic,
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ledger" => Ok(Self::Ledger),
            "optimistic" => Ok(Self::Optimistic),
            _ => Err("either \"ledger\" or \"optimistic\"".to_owned()),
        }
    }
}

/// Adapters of the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// SQLite and a folder on this machine.
    Embedded,
    /// MongoDB or DynamoDB for the documents, DynamoDB, SQS and S3.
    Aws,
}

impl FromStr for BackendKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "embedded" => Ok(Self::Embedded),
            "aws" => Ok(Self::Aws),
            _ => Err("either \"embedded\" or \"aws\"".to_owned()),
        }
    }
}

/// Text that may contain credentials. `Debug` does not display it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Addresses of the services of [`BackendKind::Aws`]. A program needs only the settings that it uses. An empty value
/// counts as not set. Region, credentials and endpoints are read from the usual variables of AWS programs.
///
/// The names of the variables begin with the name of the system, here `ORDERS_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    /// `MONGODB_URI`: the address of the database, including credentials.
    pub mongodb_uri: Option<Secret>,
    /// `MONGODB_URI_SECRET_ARN`: the secret of Secrets Manager that contains the address instead.
    pub mongodb_uri_secret: Option<String>,
    /// `MONGODB_URI_SECRET_VERSION`: the id of the version of the secret. Default: the current one.
    pub mongodb_uri_secret_version: Option<String>,
    /// `MONGODB_DATABASE`: the name of the database. Default: the name of the
    /// system, such as `orders`.
    pub mongodb_database: String,
    /// `ORDERS_MONGODB_POOL_SIZE`: the maximum number of connections of one process to one server. Default: 10. All
    /// processes together must stay below the server's limit of connections.
    pub mongodb_pool_size: u32,
    /// `ORDERS_STORE_TABLE`: the DynamoDB table of the documents, which replaces MongoDB. The search import requires
    /// MongoDB.
    pub store_table: Option<String>,
    /// `ORDERS_LEDGER_TABLE`: the DynamoDB table of the partitions.
    pub ledger_table: Option<String>,
    /// `ORDERS_PROCESSED_TABLE`: the DynamoDB table of processed messages.
    pub processed_table: Option<String>,
    /// The S3 bucket of the uploads of the search import.
    #[cfg(feature = "search")]
    pub upload_bucket: Option<String>,
    /// `ORDERS_…`: the settings of the application's own services, by variable; see [`Config::of_service`].
    pub own: BTreeMap<String, Secret>,
    /// `ORDERS_…_QUEUE_URL`: the addresses of the SQS queues, by setting.
    pub queue_urls: BTreeMap<String, String>,
}

impl Services {
    fn of(system: &str) -> Self {
        Self {
            mongodb_uri: None,
            mongodb_uri_secret: None,
            mongodb_uri_secret_version: None,
            mongodb_database: naming::snake(system),
            mongodb_pool_size: 10,
            store_table: None,
            ledger_table: None,
            processed_table: None,
            #[cfg(feature = "search")]
            upload_bucket: None,
            own: BTreeMap::new(),
            queue_urls: BTreeMap::new(),
        }
    }
}

/// Settings of a system. The names of the variables begin with the name of the system, here `ORDERS_`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The name of the system.
    pub system: String,
    /// Settings of the search import.
    #[cfg(feature = "search")]
    pub search: crate::search::SearchSettings,
    /// `ORDERS_BACKEND`: `embedded` or `aws`. Default: `embedded`.
    pub backend: BackendKind,
    /// Services of the `aws` backend.
    pub services: Services,
    /// `ORDERS_DATA_DIR`: the folder of the embedded stores. Default: `.orders` in the working directory.
    pub data_dir: PathBuf,
    /// `ORDERS_MODE`: `ledger` or `optimistic`. Default: `ledger`.
    pub mode: Mode,
    /// `ORDERS_ADMIT_UNTOKENED`: whether the first message of a partition may have no token. Default: `false`.
    pub admit_untokened: bool,
    /// `ORDERS_CONCURRENCY`: the maximum number of partitions that a batch processes concurrently. Default: 10.
    pub concurrency: usize,
    /// The outbox:
    /// - `ORDERS_OUTBOX_GIVE_UP_SECONDS`: the time since its first failure after which an entry that fails again is
    ///   exhausted. Default: 86,400;
    /// - `ORDERS_OUTBOX_MAX_DELAY_SECONDS`: the maximum delay between two attempts. Default: 300;
    /// - `ORDERS_OUTBOX_STUCK_SECONDS`: the duration of a claim, after which another worker may take over. Default:
    ///   300;
    /// - `ORDERS_OUTBOX_BATCH`: the maximum number of records that a sweep claims at a time. Default: 250;
    /// - `ORDERS_OUTBOX_SEND_TIMEOUT_SECONDS`: the time limit of a call to a queue, after which its messages count as
    ///   not sent. Default: 15. At most half the duration of a claim;
    /// - `ORDERS_OUTBOX_RETENTION_SECONDS`: the retention of the records of settled sessions, at least a day.
    ///   Default: 604,800.
    pub outbox: Policy,
    /// `ORDERS_SESSION_MAX_COMMIT_SECONDS`: the time limit of a session's commit, after which the session is abandoned.
    /// Default: 15. At most 900.
    pub session_max_commit: Duration,
    /// `ORDERS_SESSION_INCREMENT_SECONDS`: half the first delay between two checks for the commit, which doubles.
    /// Default: 2. At most the time limit of the commit.
    pub session_increment: Duration,
    /// `ORDERS_VISIBILITY_SECONDS`: the visibility timeout in programs that receive messages themselves, at most
    /// 43,200. Default: 60, and as long as specified for queues that specify it. On Lambda the queues determine it.
    pub visibility: Option<Duration>,
    /// `ORDERS_SAGA_RETENTION_SECONDS`: the retention of the documents of ended sagas. Default: 604,800 (7 days) in
    /// ledger mode, where it is at least 129,600 (36 hours). In optimistic mode it is at least
    /// [`Config::message_lifetime`], which is then the default.
    pub saga_retention: Duration,
    /// `ORDERS_MESSAGE_LIFETIME_SECONDS`: the maximum lifetime of a message in a queue and its dead-letter queue.
    /// Default: 1,209,600, the limit of SQS
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>).
    pub message_lifetime: Duration,
    /// `ORDERS_HISTORY_SECONDS`: the retention of the decisions about messages in the database. Default: 2,592,000 (30
    /// days). The value 0 corresponds to `None`: none are stored. A data directory keeps the latest ones of each
    /// partition instead.
    pub history: Option<Duration>,
}

impl Config {
    /// Returns the default settings of a system.
    pub fn of(system: &str) -> Self {
        Self {
            system: system.to_owned(),
            #[cfg(feature = "search")]
            search: crate::search::SearchSettings::default(),
            backend: BackendKind::Embedded,
            services: Services::of(system),
            data_dir: PathBuf::from(format!(".{system}")),
            mode: Mode::Ledger,
            admit_untokened: false,
            concurrency: 10,
            outbox: Policy::default(),
            session_max_commit: Duration::from_secs(15),
            session_increment: Duration::from_secs(2),
            visibility: None,
            saga_retention: Duration::from_secs(604_800),
            message_lifetime: Duration::from_secs(1_209_600),
            history: Some(Duration::from_secs(2_592_000)),
        }
    }

    /// Returns the environment variable that configures a service of the application, such as `ORDERS_SUPPLIERS` for
    /// the service `suppliers` of `orders`.
    pub fn own_setting(&self, service: Service) -> String {
        naming::setting(&self.system, &naming::snake(service.0).to_ascii_uppercase())
    }

    /// Returns the value that configures a service of the application, such as its address. `None` if it is not set.
    pub fn of_service(&self, service: Service) -> Option<&Secret> {
        self.services.own.get(&self.own_setting(service))
    }
}

/// All faults of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration is wrong: {}", self.0.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn read(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Config, Faults> {
        Config::from_pairs("orders", pairs)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn optimistic_mode_keeps_documents_longer_than_messages() {
        let config = |more: &[(&str, &str)]| {
            let mut all = pairs(&[("ORDERS_MODE", "optimistic")]);
            all.extend(pairs(more));
            read(all)
        };
        let default = config(&[]).unwrap();
        assert_eq!(default.saga_retention, default.message_lifetime);
        let short = ("ORDERS_SAGA_RETENTION_SECONDS", "604800");
        let faults = config(&[short]).unwrap_err().to_string();
        assert!(
            faults.contains("SAGA_RETENTION_SECONDS must be a number of seconds, at least 1209600"),
            "{faults}"
        );
        assert!(config(&[short, ("ORDERS_MESSAGE_LIFETIME_SECONDS", "345600")]).is_ok());
        let of_ledger = |seconds| read(pairs(&[("ORDERS_SAGA_RETENTION_SECONDS", seconds)]));
        assert_eq!(of_ledger("129600").unwrap().saga_retention, Duration::from_secs(129_600));
        let faults = of_ledger("129599").unwrap_err().to_string();
        assert!(
            faults.contains("SAGA_RETENTION_SECONDS must be a number of seconds, at least 129600"),
            "{faults}"
        );
    }

    #[test]
    fn services_are_read_and_secret_is_hidden() {
        let config = read(pairs(&[
            ("ORDERS_BACKEND", "aws"),
            ("MONGODB_URI", "mongodb://reviewer:hunter2@db.example"),
            ("ORDERS_LEDGER_TABLE", ""),
            ("ORDERS_SAGA_QUEUE_URL", "https://sqs.example/saga"),
        ]))
        .unwrap();
        assert_eq!((config.backend, config.services.ledger_table.as_deref()), (BackendKind::Aws, None));
        assert_eq!(config.services.queue_urls.len(), 1);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn documents_are_in_one_database() {
        let (table, uri) = (("ORDERS_STORE_TABLE", "orders-store"), ("MONGODB_URI", "mongodb://db.example"));
        let config = read(pairs(&[table, ("MONGODB_URI", "")])).unwrap();
        assert_eq!(config.services.store_table.as_deref(), Some("orders-store"));
        let faults = read(pairs(&[table, uri, ("ORDERS_MODE", "maybe")])).unwrap_err().to_string();
        assert!(faults.contains("ORDERS_STORE_TABLE and MONGODB_URI are both set"), "{faults}");
        assert!(faults.contains("ORDERS_MODE must be"), "{faults}");
        let secret = ("MONGODB_URI_SECRET_ARN", "arn:aws:secretsmanager:eu-central-1:1:secret:x");
        let faults = read(pairs(&[table, secret])).unwrap_err().to_string();
        assert!(faults.contains("ORDERS_STORE_TABLE and MONGODB_URI_SECRET_ARN are both set"), "{faults}");
    }

    #[test]
    fn outbox_settings_are_read() {
        let outbox = |name: &str, value: &str| read(pairs(&[(name, value)])).map(|read| read.outbox);
        let eager = outbox("ORDERS_OUTBOX_STUCK_SECONDS", "10").unwrap();
        let stuck_after = SignedDuration::from_secs(10);
        let send_timeout = Duration::from_secs(5);
        assert_eq!(eager, Policy { stuck_after, send_timeout, ..Policy::default() });
        let patient = outbox("ORDERS_OUTBOX_GIVE_UP_SECONDS", "172800").unwrap();
        assert_eq!(patient.give_up_after, SignedDuration::from_hours(48));
        assert!(outbox("ORDERS_OUTBOX_BATCH", "0").is_err());
        let kept = outbox("ORDERS_OUTBOX_RETENTION_SECONDS", "86400").unwrap();
        assert_eq!(kept.retention, SignedDuration::from_hours(24));
        let faults = outbox("ORDERS_OUTBOX_RETENTION_SECONDS", "86399").unwrap_err();
        assert!(faults.to_string().contains("at least 86400"), "{faults}");
    }

    #[test]
    fn claim_shorter_than_two_calls_is_refused() {
        const STUCK: &str = "ORDERS_OUTBOX_STUCK_SECONDS";
        const SEND: &str = "ORDERS_OUTBOX_SEND_TIMEOUT_SECONDS";
        for (claim, call, least) in [
            (Some("11"), Some("6"), Some("11, but must be at least 12")),
            (Some("12"), Some("6"), None),
            (None, Some("151"), Some("300, but must be at least 302")),
            (None, Some("150"), None),
            (Some("1"), None, Some("1, but must be at least 2")),
            (Some("2"), None, None),
        ] {
            let set =
                |name: &str, value: Option<&str>| value.map(|value| (name.to_owned(), value.to_owned()));
            let other = set("ORDERS_CONCURRENCY", Some("0"));
            let faults = read([set(STUCK, claim), set(SEND, call), other].into_iter().flatten());
            let faults = faults.unwrap_err().to_string();
            assert!(faults.contains("ORDERS_CONCURRENCY"), "all faults are reported: {faults}");
            match least {
                None => assert!(!faults.contains(STUCK), "{claim:?} {call:?}: {faults}"),
                Some(least) => {
                    assert!(faults.contains(&format!("{STUCK} is {least}")), "{claim:?} {call:?}: {faults}");
                    assert!(faults.contains("increase the first setting or decrease"), "{faults}");
                }
            }
        }
    }

    #[test]
    fn session_increment_is_at_most_its_time_limit() {
        let delays = |max: &str, increment: &str| {
            let max = ("ORDERS_SESSION_MAX_COMMIT_SECONDS", max);
            read(pairs(&[max, ("ORDERS_SESSION_INCREMENT_SECONDS", increment)]))
        };
        assert_eq!(delays("30", "30").unwrap().session_increment, Duration::from_secs(30));
        assert!(delays("1", "2").unwrap_err().to_string().contains("INCREMENT_SECONDS must be at most 1"));
        assert!(delays("901", "2").is_err() && delays("15", "0").is_err());
    }

    #[test]
    fn history_retention_is_optional() {
        let history =
            |seconds: &str| read(pairs(&[("ORDERS_HISTORY_SECONDS", seconds)])).map(|read| read.history);
        assert_eq!((history("60"), history("0")), (Ok(Some(Duration::from_secs(60))), Ok(None)));
        assert!(history("-1").is_err() && history("3155760001").is_err());
    }

    #[test]
    fn names_derive_from_system() {
        let config = read(pairs(&[
            ("ORDERS_MODE", "optimistic"),
            ("SEARCH_IMPORT_CONCURRENCY", "7"),
            ("ORDERS_SUPPLIERS", "https://key@suppliers.example"),
        ]))
        .unwrap();
        assert_eq!((config.mode, config.concurrency), (Mode::Optimistic, 10));
        assert_eq!(config.services.mongodb_database, "orders");
        assert_eq!(config.data_dir, PathBuf::from(".orders"));
        let address = config.of_service(Service("suppliers")).map(Secret::expose);
        assert_eq!(address, Some("https://key@suppliers.example"));
        assert_eq!(config.of_service(Service("customers")), None);
        assert!(!format!("{config:?}").contains("key@"), "a setting of a service may contain credentials");
        let names = Config::names_of("orders");
        assert!(names.contains("ORDERS_MODE") && names.contains("MONGODB_URI"), "{names:?}");
        assert!(!names.iter().any(|name| name.contains("SEARCH") || name.contains("UPLOAD")), "{names:?}");
    }

    #[test]
    fn all_faults_are_reported_together() {
        let wrong = [("ORDERS_MODE", "maybe"), ("ORDERS_HISTORY_SECONDS", "x"), ("ORDERS_CONCURRENCY", "-1")];
        let faults = read(pairs(&wrong)).unwrap_err().to_string();
        assert!(wrong.iter().all(|(name, _)| faults.contains(name)), "{faults}");
    }
}
