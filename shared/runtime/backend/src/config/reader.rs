//! Conversion of the environment to a [`Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use jiff::SignedDuration;
use messages::naming;
use outbox::Policy;

use super::{Config, Faults, Mode, Secret, Services};

/// End of the names of the settings with the addresses of queues.
const QUEUE_URL: &str = "_QUEUE_URL";

/// Name of the setting with the DynamoDB table of the documents, without the name of the system.
const STORE_TABLE: &str = "STORE_TABLE";

/// Returns the name of the setting with the DynamoDB table that replaces MongoDB, such as `ORDERS_STORE_TABLE`. Returns
/// `None` for the search import, which requires MongoDB.
pub fn store_table(system: &str) -> Option<String> {
    #[cfg(feature = "search")]
    if system == imports::SYSTEM {
        return None;
    }
    Some(naming::setting(system, STORE_TABLE))
}

/// Maximum of settings in seconds: a century. Larger values are typing errors.
const MAX_SECONDS: u64 = 3_155_760_000;

/// The maximum time until a queue dead-letters a message. Twenty deliveries that wait for a newer version take 14 to 28
/// hours ([`messages::Backoff`]), and the time of their handling.
const REDELIVERED_FOR: Duration = Duration::from_hours(36);

pub(crate) fn span(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Reader of settings, which collects their names and faults.
pub(crate) struct Reader<'a> {
    system: &'a str,
    pairs: BTreeMap<String, String>,
    /// Names of the settings that were read.
    names: BTreeSet<String>,
    pub(crate) faults: Vec<String>,
}

impl<'a> Reader<'a> {
    fn new(system: &'a str, pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        let pairs = pairs.into_iter().collect();
        Self { system, pairs, names: BTreeSet::new(), faults: Vec::new() }
    }

    #[cfg(feature = "search")]
    pub(crate) fn system(&self) -> &str {
        self.system
    }

    fn services(&mut self, default: Services) -> Services {
        let pool_size = "a number of connections, at least 1";
        let services = Services {
            mongodb_pool_size: self.read(
                "MONGODB_POOL_SIZE",
                default.mongodb_pool_size,
                |n| *n > 0,
                pool_size,
            ),
            mongodb_uri: self.text("MONGODB_URI").map(Secret),
            mongodb_uri_secret: self.text("MONGODB_URI_SECRET_ARN"),
            mongodb_uri_secret_version: self.text("MONGODB_URI_SECRET_VERSION"),
            mongodb_database: self.text("MONGODB_DATABASE").unwrap_or(default.mongodb_database),
            store_table: self.store_table(),
            ledger_table: self.own_text("LEDGER_TABLE"),
            processed_table: self.own_text("PROCESSED_TABLE"),
            #[cfg(feature = "search")]
            upload_bucket: default.upload_bucket,
            own: default.own,
            queue_urls: self.own_pairs().filter(|(name, _)| name.ends_with(QUEUE_URL)).collect(),
        };
        self.check_database(&services);
        services
    }

    fn store_table(&mut self) -> Option<String> {
        let setting = store_table(self.system);
        if setting.is_none() && self.pairs.contains_key(&naming::setting(self.system, STORE_TABLE)) {
            self.faults.push(format!(
                "{}_STORE_TABLE is set, but {} requires MongoDB",
                self.prefix(),
                self.system
            ));
        }
        self.text(&setting?)
    }

    /// Reports two databases for the documents. If both were set, it would be unknown which of the two is intended.
    fn check_database(&mut self, services: &Services) {
        let second = match services {
            Services { mongodb_uri: Some(_), .. } => "MONGODB_URI",
            Services { mongodb_uri_secret: Some(_), .. } => "MONGODB_URI_SECRET_ARN",
            _ => return,
        };
        if services.store_table.is_some() {
            self.faults.push(format!(
                "{}_STORE_TABLE and {second} are both set, but the documents are either in DynamoDB or in MongoDB",
                self.prefix()
            ));
        }
    }

    /// Returns the pairs whose name begins with the name of the system.
    fn own_pairs(&self) -> impl Iterator<Item = (String, String)> {
        let prefix = naming::setting(self.system, "");
        let own = self.pairs.iter().filter(move |(name, _)| name.starts_with(&prefix));
        own.map(|(name, value)| (name.clone(), value.clone()))
    }

    /// Returns the settings that are neither read by an adapter nor the address of a queue: those of the application's
    /// own services.
    fn rest(&self) -> BTreeMap<String, Secret> {
        let is_set = |(name, value): &(String, String)| {
            !self.names.contains(name) && !name.ends_with(QUEUE_URL) && !value.trim().is_empty()
        };
        self.own_pairs().filter(is_set).map(|(name, value)| (name, Secret(value))).collect()
    }

    /// Reads the delays of a session. SQS limits delays to 15 minutes
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>).
    fn session(&mut self, default: &Config) -> (Duration, Duration) {
        let must_be = "a number of seconds from 1 to 900";
        let mut read = |name: &str, default: Duration| {
            let seconds = self.read(name, default.as_secs(), |n| (1..=900).contains(n), must_be);
            Duration::from_secs(seconds)
        };
        let max_commit = read("SESSION_MAX_COMMIT_SECONDS", default.session_max_commit);
        let increment = read("SESSION_INCREMENT_SECONDS", default.session_increment);
        if increment > max_commit {
            self.faults.push(format!(
                "{}_SESSION_INCREMENT_SECONDS must be at most {}, the time that a commit may take \
                 ({}_SESSION_MAX_COMMIT_SECONDS)",
                self.prefix(),
                max_commit.as_secs(),
                self.prefix()
            ));
        }
        (max_commit, increment)
    }

    fn outbox(&mut self, default: Policy) -> Policy {
        let from_1 = "a number, at least 1";
        let give_up_after = self.seconds("OUTBOX_GIVE_UP_SECONDS", default.give_up_after.unsigned_abs());
        let max_delay = self.seconds("OUTBOX_MAX_DELAY_SECONDS", default.max_delay.unsigned_abs());
        let stuck_after = self.seconds("OUTBOX_STUCK_SECONDS", default.stuck_after.unsigned_abs());
        let send_timeout = self.send_timeout(stuck_after, default.send_timeout);
        let retention = self.session_retention(default.retention.unsigned_abs());
        Policy {
            give_up_after: span(give_up_after),
            max_delay: span(max_delay),
            stuck_after: span(stuck_after),
            sends: default.sends,
            batch: self.read("OUTBOX_BATCH", default.batch, |n| *n > 0, from_1),
            send_timeout,
            retention: span(retention),
        }
    }

    /// Reads the retention of the record of a session. As long as its caller may repeat the commit, the record shows that
    /// it was stored.
    fn session_retention(&mut self, default: Duration) -> Duration {
        const LEAST: Duration = Duration::from_secs(24 * 60 * 60);
        let retention = self.seconds("OUTBOX_RETENTION_SECONDS", default);
        if retention < LEAST {
            let (prefix, least) = (self.prefix(), LEAST.as_secs());
            self.faults.push(format!(
                "{prefix}_OUTBOX_RETENTION_SECONDS must be a number of seconds, at least {least}"
            ));
        }
        retention
    }

    /// Reads the time limit of a call to a queue. A claim must last for two calls: the worker performs entries as long
    /// as one call ends before the claim, and stores the results within another.
    fn send_timeout(&mut self, stuck_after: Duration, default: Duration) -> Duration {
        let longest = Duration::from_secs(stuck_after.as_secs() / 2);
        let default = default.min(longest).max(Duration::from_secs(1));
        let send_timeout = self.seconds("OUTBOX_SEND_TIMEOUT_SECONDS", default);
        if send_timeout > longest {
            let (prefix, claim, call) = (self.prefix(), stuck_after.as_secs(), send_timeout.as_secs());
            self.faults.push(format!(
                "{prefix}_OUTBOX_STUCK_SECONDS is {claim}, but must be at least {}, twice the time limit of a call \
                 ({prefix}_OUTBOX_SEND_TIMEOUT_SECONDS is {call}); with a shorter claim, another worker could take \
                 over an effect that is still being sent; increase the first setting or decrease the second",
                call.saturating_mul(2)
            ));
        }
        send_timeout
    }

    /// Reads the visibility timeout, within the limit of SQS
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>).
    fn visibility(&mut self) -> Option<Duration> {
        let seconds = "a number of seconds from 1 to 43200";
        let visibility = self.read("VISIBILITY_SECONDS", 0, |n| (1..=43_200).contains(n), seconds);
        (visibility > 0).then(|| Duration::from_secs(visibility))
    }

    fn prefix(&self) -> String {
        naming::snake(self.system).to_ascii_uppercase()
    }

    /// Reads text from a setting whose name begins with the name of the system.
    pub(crate) fn own_text(&mut self, name: &str) -> Option<String> {
        self.text(&naming::setting(self.system, name))
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.names.insert(name.to_owned());
        self.pairs.get(name).filter(|text| !text.trim().is_empty()).cloned()
    }

    pub(crate) fn seconds(&mut self, name: &str, default: Duration) -> Duration {
        let valid = |seconds: &u64| (1..=MAX_SECONDS).contains(seconds);
        Duration::from_secs(self.read(name, default.as_secs(), valid, "a number of seconds, at least 1"))
    }

    /// Reads the retention of documents. Without a ledger only the document shows that a saga has ended, so it must
    /// outlive every message. A later message would restart the saga. With a ledger, the same holds for a message whose
    /// token was not removed, because the worker was killed after it had stored the end. The queue redelivers such a
    /// message for up to [`REDELIVERED_FOR`].
    fn retention(&mut self, mode: Mode, message_lifetime: Duration, default: Duration) -> Duration {
        let (default, least, why) = match mode {
            Mode::Ledger => (default, REDELIVERED_FOR, "the time for which a queue may redeliver a message"),
            Mode::Optimistic => {
                (message_lifetime, message_lifetime, "in optimistic mode MESSAGE_LIFETIME_SECONDS")
            }
        };
        let retention = self.seconds("SAGA_RETENTION_SECONDS", default);
        if retention < least {
            let (prefix, least) = (self.prefix(), least.as_secs());
            let must_be = format!("a number of seconds, at least {least}, {why}");
            self.faults.push(format!("{prefix}_SAGA_RETENTION_SECONDS must be {must_be}"));
        }
        retention
    }

    /// Reads the retention of the history; `None` for 0.
    fn history(&mut self, default: Option<Duration>) -> Option<Duration> {
        let must_be = "a number of seconds, or 0 for no history";
        let valid = |seconds: &u64| (0..=MAX_SECONDS).contains(seconds);
        let default = default.map_or(0, |kept| kept.as_secs());
        let seconds = self.read("HISTORY_SECONDS", default, valid, must_be);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    /// Reads a setting whose name begins with the name of the system.
    pub(crate) fn read<T: FromStr>(
        &mut self,
        name: &str,
        default: T,
        valid: impl Fn(&T) -> bool,
        must_be: &str,
    ) -> T {
        let name = naming::setting(self.system, name);
        self.names.insert(name.clone());
        let Some(text) = self.pairs.get(&name) else {
            return default;
        };
        match text.parse() {
            Ok(value) if valid(&value) => value,
            Ok(_) | Err(_) => {
                self.faults.push(format!("{name} must be {must_be}"));
                default
            }
        }
    }
}

impl Config {
    /// Reads the settings of a system from the environment of the process.
    ///
    /// # Errors
    /// Returns all settings that are wrong.
    pub fn from_env_of(system: &str) -> Result<Self, Faults> {
        Self::from_pairs(system, std::env::vars())
    }

    /// Reads the settings of a system from pairs of names and values, and ignores other names.
    ///
    /// # Errors
    /// Returns all settings that are wrong.
    pub fn from_pairs(
        system: &str,
        pairs: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, Faults> {
        let mut reader = Reader::new(system, pairs);
        let config = Self::read(&mut reader);
        if reader.faults.is_empty() { Ok(config) } else { Err(Faults(reader.faults)) }
    }

    /// Returns the names of all settings of a system, except the addresses of its queues and the settings of its own
    /// services.
    pub fn names_of(system: &str) -> BTreeSet<String> {
        let mut reader = Reader::new(system, []);
        Self::read(&mut reader);
        reader.names
    }

    fn read(reader: &mut Reader<'_>) -> Self {
        let default = Self::of(reader.system);
        let mode = reader.read("MODE", default.mode, |_| true, "either \"ledger\" or \"optimistic\"");
        let message_lifetime = reader.seconds("MESSAGE_LIFETIME_SECONDS", default.message_lifetime);
        let (session_max_commit, session_increment) = reader.session(&default);
        let is_dir = |path: &std::path::PathBuf| !path.as_os_str().is_empty();
        let from_1 = "a number, at least 1";
        let mut config = Self {
            backend: reader.read("BACKEND", default.backend, |_| true, "either \"embedded\" or \"aws\""),
            services: reader.services(default.services),
            data_dir: reader.read("DATA_DIR", default.data_dir, is_dir, "a folder"),
            mode,
            admit_untokened: reader.read(
                "ADMIT_UNTOKENED",
                default.admit_untokened,
                |_| true,
                "true or false",
            ),
            concurrency: reader.read("CONCURRENCY", default.concurrency, |n| *n > 0, from_1),
            outbox: reader.outbox(default.outbox),
            session_max_commit,
            session_increment,
            visibility: reader.visibility(),
            saga_retention: reader.retention(mode, message_lifetime, default.saga_retention),
            message_lifetime,
            history: reader.history(default.history),
            system: default.system,
            #[cfg(feature = "search")]
            search: default.search,
        };
        #[cfg(feature = "search")]
        config.read_search(reader);
        config.services.own = reader.rest();
        config
    }
}
