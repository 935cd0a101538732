//! Conversion of the environment to a [`Config`].

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use imports::manifest::{MAX_FILE_BYTES, MAX_NAME_CHARS};
use imports::ports::Quota;
use imports::{Deadlines, ObjectKey, ProjectId, exports};
use jiff::SignedDuration;
use outbox::Policy;

use super::{Config, Faults, Mode, OPERATOR_SCOPE, Secret, Services};

/// See [`Config::max_record_bytes`].
const MAX_RECORD_BYTES: usize = 5 << 20;

/// Maximum of settings in seconds: a century. Larger values are typing errors.
const MAX_SECONDS: u64 = 3_155_760_000;

fn span(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Reader of settings, which collects their names and faults.
#[derive(Default)]
struct Reader {
    pairs: BTreeMap<String, String>,
    /// Names of the settings that were read.
    names: BTreeSet<String>,
    faults: Vec<String>,
}

impl Reader {
    fn services(&mut self, default: Services) -> Services {
        let pool_size = "a number of connections, at least 1";
        Services {
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
            ledger_table: self.text("SEARCH_IMPORT_LEDGER_TABLE"),
            processed_table: self.text("SEARCH_IMPORT_PROCESSED_TABLE"),
            upload_bucket: self.text("SEARCH_IMPORT_UPLOAD_BUCKET"),
            queue_urls: self
                .pairs
                .iter()
                .filter(|(name, _)| name.starts_with("SEARCH_IMPORT_") && name.ends_with("_QUEUE_URL"))
                .map(|(name, url)| (name.clone(), url.clone()))
                .collect(),
        }
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
                "SEARCH_IMPORT_SESSION_INCREMENT_SECONDS must be at most {}, the time that a commit may take \
                 (SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS)",
                max_commit.as_secs()
            ));
        }
        (max_commit, increment)
    }

    fn outbox(&mut self, default: Policy) -> Policy {
        let from_1 = "a number, at least 1";
        let give_up_after = self.seconds("OUTBOX_GIVE_UP_SECONDS", default.give_up_after.unsigned_abs());
        let max_delay = self.seconds("OUTBOX_MAX_DELAY_SECONDS", default.max_delay.unsigned_abs());
        let stuck_after = self.seconds("OUTBOX_STUCK_SECONDS", default.stuck_after.unsigned_abs());
        let send_timeout = self.seconds("OUTBOX_SEND_TIMEOUT_SECONDS", default.send_timeout.min(stuck_after));
        if send_timeout > stuck_after {
            self.faults.push(format!(
                "SEARCH_IMPORT_OUTBOX_SEND_TIMEOUT_SECONDS must be at most {}, what a claim lasts \
                 (SEARCH_IMPORT_OUTBOX_STUCK_SECONDS)",
                stuck_after.as_secs()
            ));
        }
        let retention = self.seconds("OUTBOX_RETENTION_SECONDS", default.retention.unsigned_abs());
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

    /// Reads the time limits of a search. It waits for uploads at least as long as an upload form is valid.
    fn deadlines(&mut self, upload_valid_for: Duration, default: Deadlines) -> Deadlines {
        let upload = self.seconds("UPLOAD_TIMEOUT_SECONDS", default.upload.unsigned_abs());
        let parse = self.seconds("PARSE_TIMEOUT_SECONDS", default.parse.unsigned_abs());
        Deadlines { upload: span(upload.max(upload_valid_for)), parse: span(parse) }
    }

    fn quota(&mut self, default: Quota) -> Quota {
        Quota {
            searches: self.read("MAX_OPEN_SEARCHES", default.searches, |n| *n > 0, "a number, at least 1"),
            bytes: self.read("MAX_OPEN_BYTES", default.bytes, |n| *n > 0, "a number of bytes, at least 1"),
        }
    }

    /// Reads the visibility timeout, within the limit of SQS
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>).
    fn visibility(&mut self) -> Option<Duration> {
        let seconds = "a number of seconds from 1 to 43200";
        let visibility = self.read("VISIBILITY_SECONDS", 0, |n| (1..=43_200).contains(n), seconds);
        (visibility > 0).then(|| Duration::from_secs(visibility))
    }

    fn project(&mut self, default: ProjectId) -> ProjectId {
        let Some(text) = self.text("SEARCH_IMPORT_PROJECT") else { return default };
        ProjectId::meant_by(&text).unwrap_or_else(|error| {
            self.faults.push(format!("SEARCH_IMPORT_PROJECT names no project: the name {error}"));
            default
        })
    }

    fn text(&mut self, name: &str) -> Option<String> {
        self.names.insert(name.to_owned());
        self.pairs.get(name).filter(|text| !text.trim().is_empty()).cloned()
    }

    fn seconds(&mut self, name: &str, default: Duration) -> Duration {
        let valid = |seconds: &u64| (1..=MAX_SECONDS).contains(seconds);
        Duration::from_secs(self.read(name, default.as_secs(), valid, "a number of seconds, at least 1"))
    }

    /// Reads the retention of documents. Without a ledger only the document shows that a search has ended, so it must outlive
    /// every message. A later message would restart the search.
    fn retention(&mut self, mode: Mode, message_lifetime: Duration, default: Duration) -> Duration {
        let default = match mode {
            Mode::Ledger => default,
            Mode::Optimistic => message_lifetime,
        };
        let retention = self.seconds("SAGA_RETENTION_SECONDS", default);
        if mode == Mode::Optimistic && retention < message_lifetime {
            self.faults.push(format!(
                "SEARCH_IMPORT_SAGA_RETENTION_SECONDS must be at least {} in optimistic mode, the time that a message \
                 can live (SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS)",
                message_lifetime.as_secs()
            ));
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

    fn read<T: FromStr>(&mut self, name: &str, default: T, valid: impl Fn(&T) -> bool, must_be: &str) -> T {
        let name = format!("SEARCH_IMPORT_{name}");
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
    /// Reads the settings from the environment of the process.
    ///
    /// # Errors
    /// Returns all settings that are wrong.
    pub fn from_env() -> Result<Self, Faults> {
        Self::from_pairs(std::env::vars())
    }

    /// Reads the settings from pairs of names and values, and ignores other names.
    ///
    /// # Errors
    /// Returns all settings that are wrong.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Faults> {
        let mut reader = Reader { pairs: pairs.into_iter().collect(), ..Reader::default() };
        let config = Self::read(&mut reader);
        if reader.faults.is_empty() { Ok(config) } else { Err(Faults(reader.faults)) }
    }

    /// Returns the names of all settings except the addresses of the queues.
    pub fn names() -> BTreeSet<String> {
        let mut reader = Reader::default();
        Self::read(&mut reader);
        reader.names
    }

    fn read(reader: &mut Reader) -> Self {
        let default = Self::default();
        let mode = reader.read("MODE", default.mode, |_| true, "either \"ledger\" or \"optimistic\"");
        let message_lifetime = reader.seconds("MESSAGE_LIFETIME_SECONDS", default.message_lifetime);
        let (session_max_commit, session_increment) = reader.session(&default);
        let upload_valid_for = Duration::from_secs(reader.read(
            "UPLOAD_VALID_SECONDS",
            default.upload_valid_for.as_secs(),
            |seconds| (1..=604_800).contains(seconds),
            "a number of seconds from 1 to 604800",
        ));
        Self {
            backend: reader.read("BACKEND", default.backend, |_| true, "either \"embedded\" or \"aws\""),
            services: reader.services(default.services),
            data_dir: reader.read(
                "DATA_DIR",
                default.data_dir,
                |path| !path.as_os_str().is_empty(),
                "a folder",
            ),
            project: reader.project(default.project),
            mode,
            key_prefix: reader.read(
                "KEY_PREFIX",
                default.key_prefix,
                |prefix: &String| {
                    ObjectKey::max_name_bytes(prefix) >= MAX_NAME_CHARS
                        && !prefix.starts_with(exports::PREFIX)
                },
                "text of at most 621 bytes, so that file names of 255 characters fit into a key, and not below exports/",
            ),
            max_file_bytes: reader.read(
                "MAX_FILE_BYTES",
                default.max_file_bytes,
                |bytes| (1..=MAX_FILE_BYTES).contains(bytes),
                "a number of bytes from 1 to 5000000000",
            ),
            max_record_bytes: reader.read(
                "MAX_RECORD_BYTES",
                default.max_record_bytes,
                |bytes| (1..=MAX_RECORD_BYTES).contains(bytes),
                "a number of bytes from 1 to 5242880",
            ),
            max_records: reader.read("MAX_RECORDS", default.max_records, |n| *n > 0, "a number, at least 1"),
            max_quarantined_percent: reader.read(
                "MAX_QUARANTINED_PERCENT",
                default.max_quarantined_percent,
                |percent| *percent <= 100,
                "a number from 0 to 100",
            ),
            upload_valid_for,
            deadlines: reader.deadlines(upload_valid_for, default.deadlines),
            quota: reader.quota(default.quota),
            admit_untokened: reader.read(
                "ADMIT_UNTOKENED",
                default.admit_untokened,
                |_| true,
                "true or false",
            ),
            projects_claim: reader.text("SEARCH_IMPORT_PROJECTS_CLAIM"),
            operator_scope: reader
                .text("SEARCH_IMPORT_OPERATOR_SCOPE")
                .unwrap_or_else(|| OPERATOR_SCOPE.to_owned()),
            concurrency: reader.read("CONCURRENCY", default.concurrency, |n| *n > 0, "a number, at least 1"),
            outbox: reader.outbox(default.outbox),
            session_max_commit,
            session_increment,
            visibility: reader.visibility(),
            saga_retention: reader.retention(mode, message_lifetime, default.saga_retention),
            message_lifetime,
            history: reader.history(default.history),
        }
    }
}
