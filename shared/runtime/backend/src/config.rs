//! Every setting of every program, read once at start from the environment, into typed values.
//!
//! All faults are reported together: whoever corrects a configuration wants to do it once.

mod reader;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use imports::manifest::{MAX_FILE_BYTES, MAX_NAME_CHARS};
use imports::ports::Quota;
use imports::{Deadlines, ObjectKey, ProjectId, Settings, exports};
use outbox::Policy;
use uuid::Uuid;

use self::reader::Reader;

/// See [`Config::max_record_bytes`].
const MAX_RECORD_BYTES: usize = 5 << 20;

/// Settings without a meaning on Lambda, where there is no data directory, every request names its project, and the queues
/// decide how long a message is hidden.
pub const NOT_ON_LAMBDA: [&str; 3] =
    ["SEARCH_IMPORT_DATA_DIR", "SEARCH_IMPORT_PROJECT", "SEARCH_IMPORT_VISIBILITY_SECONDS"];

/// The project of everything that names none.
const DEFAULT_PROJECT: ProjectId = ProjectId::from_uuid(Uuid::nil());

/// How duplicates are recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By tokens in the partition's ledger item: at any age.
    Ledger,
    /// By versions, processed ids and states alone: while the saga's document lives.
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

/// Which adapters are behind the ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// SQLite and a folder, on this machine.
    Embedded,
    /// MongoDB, DynamoDB, SQS and S3.
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

/// Text that may hold credentials. `Debug` does not print it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a text that was read from elsewhere.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(***)")
    }
}

/// Where the services of [`BackendKind::Aws`] are. A program needs only those that it uses; an empty value
/// counts as not set. Region, credentials and endpoints are in the variables that every AWS program has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    /// `MONGODB_URI`: the address of the database, credentials included.
    pub mongodb_uri: Option<Secret>,
    /// `MONGODB_URI_SECRET_ARN`: the secret of Secrets Manager that holds the address instead.
    pub mongodb_uri_secret: Option<String>,
    /// `MONGODB_URI_SECRET_VERSION`: the id of the version to read of it; the current one.
    pub mongodb_uri_secret_version: Option<String>,
    /// `MONGODB_DATABASE`: its name; `search_import`.
    pub mongodb_database: String,
    /// `SEARCH_IMPORT_MONGODB_POOL_SIZE`: the most connections that one process has to one server; 10. Times the
    /// number of processes, that must stay below what the server allows.
    pub mongodb_pool_size: u32,
    /// `SEARCH_IMPORT_LEDGER_TABLE`: the DynamoDB table of the partitions.
    pub ledger_table: Option<String>,
    /// `SEARCH_IMPORT_PROCESSED_TABLE`: the DynamoDB table of processed messages.
    pub processed_table: Option<String>,
    /// `SEARCH_IMPORT_UPLOAD_BUCKET`: the S3 bucket of the uploads.
    pub upload_bucket: Option<String>,
    /// `SEARCH_IMPORT_…_QUEUE_URL`: the addresses of the SQS queues, by setting.
    pub queue_urls: BTreeMap<String, String>,
}

impl Default for Services {
    fn default() -> Self {
        Self {
            mongodb_uri: None,
            mongodb_uri_secret: None,
            mongodb_uri_secret_version: None,
            mongodb_database: "search_import".to_owned(),
            mongodb_pool_size: 10,
            ledger_table: None,
            processed_table: None,
            upload_bucket: None,
            queue_urls: BTreeMap::new(),
        }
    }
}

/// The scope of operators where no other is named.
const OPERATOR_SCOPE: &str = "searches:operate";

/// The settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `SEARCH_IMPORT_BACKEND`: `embedded` or `aws`; `embedded`.
    pub backend: BackendKind,
    /// Where the services of the `aws` backend are.
    pub services: Services,
    /// `SEARCH_IMPORT_DATA_DIR`: where the embedded stores are; `.search-import` below the working directory.
    pub data_dir: PathBuf,
    /// `SEARCH_IMPORT_PROJECT`: the project of commands that name none, by its id or its name; one for everything.
    pub project: ProjectId,
    /// `SEARCH_IMPORT_MODE`: `ledger` or `optimistic`; `ledger`.
    pub mode: Mode,
    /// `SEARCH_IMPORT_KEY_PREFIX`: what the keys of uploads begin with; `uploads/`. The longer it is, the shorter are the
    /// names of files: a key has 1,024 bytes.
    pub key_prefix: String,
    /// `SEARCH_IMPORT_MAX_FILE_BYTES`: the largest file accepted; 1 GiB. At most 5 GB, what one presigned upload
    /// can create.
    pub max_file_bytes: u64,
    /// `SEARCH_IMPORT_MAX_RECORD_BYTES`: the largest record accepted; 4 MiB. At most 5 MiB: text that is not UTF-8 may
    /// grow to three times its size, and MongoDB takes no document beyond 16 MiB
    /// (<https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-BSON-Document-Size>).
    pub max_record_bytes: usize,
    /// `SEARCH_IMPORT_MAX_RECORDS`: the most records that a file may have, unreadable ones counted; 2,000,000. A file with
    /// more is refused as a whole.
    pub max_records: u64,
    /// `SEARCH_IMPORT_MAX_QUARANTINED_PERCENT`: the percentage of unreadable records tolerated; 50. A file with
    /// more is refused as a whole.
    pub max_quarantined_percent: u8,
    /// `SEARCH_IMPORT_UPLOAD_VALID_SECONDS`: how long an upload form is valid; 3,600.
    pub upload_valid_for: Duration,
    /// How long a search waits:
    /// - `SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS`: for its next file; 3,600. Never shorter than an upload form is valid;
    /// - `SEARCH_IMPORT_PARSE_TIMEOUT_SECONDS`: for its files to be read, once all of them are here; 86,400.
    pub deadlines: Deadlines,
    /// What the searches of a project that have not ended may come to:
    /// - `SEARCH_IMPORT_MAX_OPEN_SEARCHES`: how many there may be; 1,000;
    /// - `SEARCH_IMPORT_MAX_OPEN_BYTES`: the announced size of all their files; 1 TiB.
    pub quota: Quota,
    /// `SEARCH_IMPORT_ADMIT_UNTOKENED`: whether a file that was put into the bucket by hand is admitted; `false`.
    pub admit_untokened: bool,
    /// `SEARCH_IMPORT_PROJECTS_CLAIM`: the claim of a caller's token that lists the projects that are theirs; none, for
    /// callers without tokens, who may see all projects.
    pub projects_claim: Option<String>,
    /// `SEARCH_IMPORT_OPERATOR_SCOPE`: the scope of a caller's token that lets them operate the deployment.
    pub operator_scope: String,
    /// `SEARCH_IMPORT_CONCURRENCY`: the most searches that one batch works on at the same time; 10.
    pub concurrency: usize,
    /// The outbox:
    /// - `SEARCH_IMPORT_OUTBOX_GIVE_UP_SECONDS`: how long after its first failure an entry that fails again is
    ///   poisoned; 86,400;
    /// - `SEARCH_IMPORT_OUTBOX_MAX_DELAY_SECONDS`: the longest delay between two attempts; 300;
    /// - `SEARCH_IMPORT_OUTBOX_STUCK_SECONDS`: how long a claim lasts before another worker takes over; 300;
    /// - `SEARCH_IMPORT_OUTBOX_BATCH`: the most records with entries that a sweep takes at a time; 250;
    /// - `SEARCH_IMPORT_OUTBOX_SEND_TIMEOUT_SECONDS`: how long one call to a queue may take before its messages count
    ///   as not sent; 15, at most what a claim lasts;
    /// - `SEARCH_IMPORT_OUTBOX_RETENTION_SECONDS`: how long the record of a session stays once it is settled; 604,800.
    pub outbox: Policy,
    /// `SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS`: how long an announcement may take to be stored before it is given up;
    /// 15, at most 900.
    pub session_max_commit: Duration,
    /// `SEARCH_IMPORT_SESSION_INCREMENT_SECONDS`: half the first delay between two looks for it, which doubles; 2, at
    /// most the former.
    pub session_increment: Duration,
    /// `SEARCH_IMPORT_VISIBILITY_SECONDS`: how long a program that receives messages by itself hides them from
    /// others, at most 43,200; else 60, and 900 for parse commands. On Lambda the queues decide.
    pub visibility: Option<Duration>,
    /// `SEARCH_IMPORT_SAGA_RETENTION_SECONDS`: how long the document of a search that has ended is kept; 604,800
    /// (7 days) in ledger mode, [`Config::message_lifetime`] in optimistic mode.
    pub saga_retention: Duration,
    /// `SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS`: the longest time that a message can live in a queue and its
    /// dead-letter queue; 1,209,600, the most that SQS allows
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>).
    pub message_lifetime: Duration,
    /// `SEARCH_IMPORT_HISTORY_SECONDS`: how long decisions about messages are kept in the database; 2,592,000 (30 days).
    /// With 0, which is none here, none are written. A data directory keeps the latest of each search instead.
    pub history: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            backend: BackendKind::Embedded,
            services: Services::default(),
            data_dir: PathBuf::from(".search-import"),
            project: DEFAULT_PROJECT,
            mode: Mode::Ledger,
            key_prefix: "uploads/".to_owned(),
            max_file_bytes: 1 << 30,
            max_record_bytes: 4 << 20,
            max_records: 2_000_000,
            max_quarantined_percent: 50,
            upload_valid_for: Duration::from_secs(3_600),
            deadlines: Deadlines::default(),
            quota: Quota::default(),
            admit_untokened: false,
            projects_claim: None,
            operator_scope: OPERATOR_SCOPE.to_owned(),
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
}

/// Everything that is wrong with a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration is wrong: {}", self.0.join("; "))
    }
}

impl Config {
    /// What of it concerns the application.
    pub fn settings(&self) -> Settings {
        Settings {
            key_prefix: self.key_prefix.clone(),
            max_file_bytes: self.max_file_bytes,
            max_record_bytes: self.max_record_bytes,
            max_records: self.max_records,
            max_quarantined_percent: self.max_quarantined_percent,
            upload_valid_for: self.upload_valid_for,
            deadlines: self.deadlines,
            quota: self.quota,
            ..Settings::default()
        }
    }

    /// Reads the process's environment.
    ///
    /// # Errors
    /// With every setting that is wrong.
    pub fn from_env() -> Result<Self, Faults> {
        Self::from_pairs(std::env::vars())
    }

    /// Reads settings from pairs of name and value; other names are passed over.
    ///
    /// # Errors
    /// With every setting that is wrong.
    pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> Result<Self, Faults> {
        let mut reader = Reader { pairs: pairs.into_iter().collect(), ..Reader::default() };
        let config = Self::read(&mut reader);
        if reader.faults.is_empty() { Ok(config) } else { Err(Faults(reader.faults)) }
    }

    /// The names of all settings, as reading them asks for them; those of queues apart, which are one for each queue.
    pub fn names() -> BTreeSet<String> {
        let mut reader = Reader::default();
        Self::read(&mut reader);
        reader.asked
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
                "text of at most 621 bytes, so that keys have room for names of 255, and not below exports/",
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

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn without_settings_the_defaults_hold() {
        assert_eq!(Config::from_pairs([]), Ok(Config::default()));
    }

    #[test]
    fn without_a_ledger_documents_outlive_every_message() {
        let config = |more: &[(&str, &str)]| {
            let mut all = pairs(&[("SEARCH_IMPORT_MODE", "optimistic")]);
            all.extend(pairs(more));
            Config::from_pairs(all)
        };
        let default = config(&[]).unwrap();
        assert_eq!(default.saga_retention, default.message_lifetime);
        let short = ("SEARCH_IMPORT_SAGA_RETENTION_SECONDS", "604800");
        let faults = config(&[short]).unwrap_err().to_string();
        assert!(faults.contains("SAGA_RETENTION_SECONDS must be at least 1209600"), "{faults}");
        assert!(config(&[short, ("SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS", "345600")]).is_ok());
        let ledger = Config::from_pairs(pairs(&[("SEARCH_IMPORT_SAGA_RETENTION_SECONDS", "60")]));
        assert_eq!(ledger.unwrap().saga_retention, Duration::from_secs(60), "tokens outlive the document");
    }

    #[test]
    fn services_are_where_the_environment_says_and_their_secret_is_not_shown() {
        let config = Config::from_pairs(pairs(&[
            ("SEARCH_IMPORT_BACKEND", "aws"),
            ("MONGODB_URI", "mongodb://reviewer:hunter2@db.example"),
            ("SEARCH_IMPORT_LEDGER_TABLE", ""),
            ("SEARCH_IMPORT_SAGA_QUEUE_URL", "https://sqs.example/saga"),
        ]))
        .unwrap();
        assert_eq!((config.backend, config.services.ledger_table.as_deref()), (BackendKind::Aws, None));
        assert_eq!(config.services.queue_urls.len(), 1);
        assert!(!format!("{config:?}").contains("hunter2"));
    }

    #[test]
    fn the_outbox_follows_its_settings() {
        let read =
            |name: &str, value: &str| Config::from_pairs(pairs(&[(name, value)])).map(|read| read.outbox);
        let eager = read("SEARCH_IMPORT_OUTBOX_STUCK_SECONDS", "10").unwrap();
        let stuck_after = SignedDuration::from_secs(10);
        let send_timeout = stuck_after.unsigned_abs();
        assert_eq!(eager, Policy { stuck_after, send_timeout, ..Policy::default() });
        let patient = read("SEARCH_IMPORT_OUTBOX_GIVE_UP_SECONDS", "172800").unwrap();
        assert_eq!(patient.give_up_after, SignedDuration::from_hours(48));
        assert!(read("SEARCH_IMPORT_OUTBOX_BATCH", "0").is_err());
        let kept = read("SEARCH_IMPORT_OUTBOX_RETENTION_SECONDS", "86400").unwrap();
        assert_eq!(kept.retention, SignedDuration::from_hours(24));
        let slow = read("SEARCH_IMPORT_OUTBOX_SEND_TIMEOUT_SECONDS", "301").unwrap_err().to_string();
        assert!(slow.contains("SEND_TIMEOUT_SECONDS must be at most 300"), "{slow}");
    }

    #[test]
    fn a_search_waits_at_least_as_long_as_its_forms_are_valid() {
        let upload = |settings: &[(&str, &str)]| {
            Config::from_pairs(pairs(settings)).map(|config| config.deadlines.upload.as_secs())
        };
        let (valid, timeout) = ("SEARCH_IMPORT_UPLOAD_VALID_SECONDS", "SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS");
        assert_eq!(upload(&[]), Ok(3_600));
        assert_eq!(upload(&[(valid, "7200")]), Ok(7_200));
        assert_eq!(upload(&[(valid, "60"), (timeout, "120")]), Ok(120));
        assert!(upload(&[(timeout, "0")]).is_err());
    }

    #[test]
    fn a_session_looks_at_least_once_before_it_is_given_up() {
        let read = |max: &str, increment: &str| {
            let max = ("SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS", max);
            Config::from_pairs(pairs(&[max, ("SEARCH_IMPORT_SESSION_INCREMENT_SECONDS", increment)]))
        };
        assert_eq!(read("30", "30").unwrap().session_increment, Duration::from_secs(30));
        assert!(read("1", "2").unwrap_err().to_string().contains("INCREMENT_SECONDS must be at most 1"));
        assert!(read("901", "2").is_err() && read("15", "0").is_err());
    }

    #[test]
    fn history_is_kept_for_a_month_or_as_long_as_is_said_or_not_at_all() {
        let read = |seconds: &str| {
            Config::from_pairs(pairs(&[("SEARCH_IMPORT_HISTORY_SECONDS", seconds)])).map(|read| read.history)
        };
        assert_eq!((read("60"), read("0")), (Ok(Some(Duration::from_secs(60))), Ok(None)));
        assert!(read("-1").is_err() && read("3155760001").is_err());
    }

    #[test]
    fn every_setting_is_known_by_its_name() {
        let names = Config::names();
        for name in ["MONGODB_URI", "MONGODB_DATABASE", "SEARCH_IMPORT_MODE", "SEARCH_IMPORT_OUTBOX_BATCH"] {
            assert!(names.contains(name), "{names:?}");
        }
        assert!(NOT_ON_LAMBDA.iter().all(|name| names.contains(*name)), "{names:?}");
    }

    #[test]
    fn a_key_prefix_leaves_room_for_names() {
        let read = |prefix: &str| Config::from_pairs(pairs(&[("SEARCH_IMPORT_KEY_PREFIX", prefix)]));
        assert!(read(&"x".repeat(621)).is_ok());
        assert!(read(&"x".repeat(622)).unwrap_err().to_string().contains("at most 621 bytes"));
        assert!(read("exports/mine/").unwrap_err().to_string().contains("not below exports/"));
    }

    #[test]
    fn the_share_of_unreadable_records_is_a_percentage() {
        let read = |percent: &str| {
            Config::from_pairs(pairs(&[("SEARCH_IMPORT_MAX_QUARANTINED_PERCENT", percent)]))
                .map(|config| config.max_quarantined_percent)
        };
        assert_eq!((read("0"), read("100")), (Ok(0), Ok(100)));
        assert!(read("101").unwrap_err().to_string().contains("from 0 to 100"));
    }

    #[test]
    fn all_faults_are_reported_together() {
        let faults = Config::from_pairs(pairs(&[
            ("SEARCH_IMPORT_MODE", "maybe"),
            ("SEARCH_IMPORT_MAX_FILE_BYTES", "0"),
            ("SEARCH_IMPORT_CONCURRENCY", "-1"),
        ]))
        .unwrap_err()
        .to_string();
        for name in ["MODE", "MAX_FILE_BYTES", "CONCURRENCY"] {
            assert!(faults.contains(name), "{faults}");
        }
    }
}
