//! Settings of all programs, which are read once from the environment at start and converted to typed values.
//!
//! All faults are reported together, so that an operator can correct them at once.

mod reader;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use imports::ports::Quota;
use imports::{Deadlines, ProjectId, Settings};
use outbox::Policy;
use uuid::Uuid;

/// Settings without a meaning on Lambda, where no data directory exists, every request names its project, and the queues
/// determine the visibility timeout.
pub const NOT_ON_LAMBDA: [&str; 3] =
    ["SEARCH_IMPORT_DATA_DIR", "SEARCH_IMPORT_PROJECT", "SEARCH_IMPORT_VISIBILITY_SECONDS"];

/// Project of commands that name none.
const DEFAULT_PROJECT: ProjectId = ProjectId::from_uuid(Uuid::nil());

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

/// Addresses of the services of [`BackendKind::Aws`]. A program needs only those that it uses, and an empty value counts as
/// not set. Region, credentials and endpoints are read from the usual variables of AWS programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Services {
    /// `MONGODB_URI`: the address of the database, including credentials.
    pub mongodb_uri: Option<Secret>,
    /// `MONGODB_URI_SECRET_ARN`: the secret of Secrets Manager that contains the address instead.
    pub mongodb_uri_secret: Option<String>,
    /// `MONGODB_URI_SECRET_VERSION`: the id of the version of the secret. Default: the current one.
    pub mongodb_uri_secret_version: Option<String>,
    /// `MONGODB_DATABASE`: the name of the database. Default: `search_import`.
    pub mongodb_database: String,
    /// `SEARCH_IMPORT_MONGODB_POOL_SIZE`: the maximum number of connections of one process to one server. Default: 10. Its
    /// product with the number of processes must be below the limit of the server.
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

/// Default scope of operators.
const OPERATOR_SCOPE: &str = "searches:operate";

/// Settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// `SEARCH_IMPORT_BACKEND`: `embedded` or `aws`. Default: `embedded`.
    pub backend: BackendKind,
    /// Services of the `aws` backend.
    pub services: Services,
    /// `SEARCH_IMPORT_DATA_DIR`: the folder of the embedded stores. Default: `.search-import` in the working directory.
    pub data_dir: PathBuf,
    /// `SEARCH_IMPORT_PROJECT`: the id or the name of the project of commands that name none. Default: one shared project.
    pub project: ProjectId,
    /// `SEARCH_IMPORT_MODE`: `ledger` or `optimistic`. Default: `ledger`.
    pub mode: Mode,
    /// `SEARCH_IMPORT_KEY_PREFIX`: the prefix of the keys of uploads. Default: `uploads/`. A longer prefix reduces the maximum
    /// length of file names, because a key has at most 1,024 bytes.
    pub key_prefix: String,
    /// `SEARCH_IMPORT_MAX_FILE_BYTES`: the maximum size of a file. Default: 1 GiB. At most 5 GB, the limit of a presigned
    /// upload.
    pub max_file_bytes: u64,
    /// `SEARCH_IMPORT_MAX_RECORD_BYTES`: the maximum size of a record. Default: 4 MiB. At most 5 MiB, because text in another
    /// encoding may grow to three times its size in UTF-8, and MongoDB limits documents to 16 MiB
    /// (<https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-BSON-Document-Size>).
    pub max_record_bytes: usize,
    /// `SEARCH_IMPORT_MAX_RECORDS`: the maximum number of records of a file, including unreadable ones. Default: 2,000,000. A
    /// file with more is rejected as a whole.
    pub max_records: u64,
    /// `SEARCH_IMPORT_MAX_QUARANTINED_PERCENT`: the maximum percentage of unreadable records. Default: 50. A file with more is
    /// rejected as a whole.
    pub max_quarantined_percent: u8,
    /// `SEARCH_IMPORT_UPLOAD_VALID_SECONDS`: the validity of an upload form. Default: 3,600.
    pub upload_valid_for: Duration,
    /// Time limits of a search:
    /// - `SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS`: until the next file is uploaded. Default: 3,600. At least the validity of an
    ///   upload form;
    /// - `SEARCH_IMPORT_PARSE_TIMEOUT_SECONDS`: until all files are read, after all of them are uploaded. Default: 86,400.
    pub deadlines: Deadlines,
    /// Limits of a project's unfinished searches:
    /// - `SEARCH_IMPORT_MAX_OPEN_SEARCHES`: their maximum number. Default: 1,000;
    /// - `SEARCH_IMPORT_MAX_OPEN_BYTES`: the maximum announced size of all their files. Default: 1 TiB.
    pub quota: Quota,
    /// `SEARCH_IMPORT_ADMIT_UNTOKENED`: whether a file that was copied to the bucket manually is admitted. Default: `false`.
    pub admit_untokened: bool,
    /// `SEARCH_IMPORT_PROJECTS_CLAIM`: the claim of a caller's token that lists the caller's projects. Default: none, for
    /// callers without tokens, who have access to all projects.
    pub projects_claim: Option<String>,
    /// `SEARCH_IMPORT_OPERATOR_SCOPE`: the scope in the token of an operator. Default: `searches:operate`.
    pub operator_scope: String,
    /// `SEARCH_IMPORT_CONCURRENCY`: the maximum number of searches that a batch processes concurrently. Default: 10.
    pub concurrency: usize,
    /// The outbox:
    /// - `SEARCH_IMPORT_OUTBOX_GIVE_UP_SECONDS`: the time since its first failure after which an entry that fails again is
    ///   exhausted. Default: 86,400;
    /// - `SEARCH_IMPORT_OUTBOX_MAX_DELAY_SECONDS`: the maximum delay between two attempts. Default: 300;
    /// - `SEARCH_IMPORT_OUTBOX_STUCK_SECONDS`: the duration of a claim, after which another worker may take over. Default: 300;
    /// - `SEARCH_IMPORT_OUTBOX_BATCH`: the maximum number of records that a sweep claims at a time. Default: 250;
    /// - `SEARCH_IMPORT_OUTBOX_SEND_TIMEOUT_SECONDS`: the time limit of a call to a queue, after which its messages count as
    ///   not sent. Default: 15. At most the duration of a claim;
    /// - `SEARCH_IMPORT_OUTBOX_RETENTION_SECONDS`: the retention of the records of settled sessions. Default: 604,800.
    pub outbox: Policy,
    /// `SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS`: the time limit of a session's commit, after which the session is abandoned.
    /// Default: 15. At most 900.
    pub session_max_commit: Duration,
    /// `SEARCH_IMPORT_SESSION_INCREMENT_SECONDS`: half the first delay between two checks for the commit, which doubles.
    /// Default: 2. At most the time limit of the commit.
    pub session_increment: Duration,
    /// `SEARCH_IMPORT_VISIBILITY_SECONDS`: the visibility timeout in programs that receive messages themselves, at most
    /// 43,200. Default: 60, and 900 for parse commands. On Lambda the queues determine it.
    pub visibility: Option<Duration>,
    /// `SEARCH_IMPORT_SAGA_RETENTION_SECONDS`: the retention of the documents of ended searches. Default: 604,800 (7 days) in
    /// ledger mode, [`Config::message_lifetime`] in optimistic mode.
    pub saga_retention: Duration,
    /// `SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS`: the maximum lifetime of a message in a queue and its dead-letter queue.
    /// Default: 1,209,600, the limit of SQS
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html>).
    pub message_lifetime: Duration,
    /// `SEARCH_IMPORT_HISTORY_SECONDS`: the retention of the decisions about messages in the database. Default: 2,592,000
    /// (30 days). With 0, which is `None` here, none are stored. A data directory keeps the latest ones of each search instead.
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

/// All faults of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Faults(Vec<String>);

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the configuration is wrong: {}", self.0.join("; "))
    }
}

impl Config {
    /// Returns the settings of the application.
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
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn empty_environment_gives_defaults() {
        assert_eq!(Config::from_pairs([]), Ok(Config::default()));
    }

    #[test]
    fn optimistic_mode_keeps_documents_longer_than_messages() {
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
    fn services_are_read_and_their_secret_is_not_displayed() {
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
    fn outbox_settings_are_read() {
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
    fn upload_timeout_is_at_least_form_validity() {
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
    fn session_increment_is_at_most_its_time_limit() {
        let read = |max: &str, increment: &str| {
            let max = ("SEARCH_IMPORT_SESSION_MAX_COMMIT_SECONDS", max);
            Config::from_pairs(pairs(&[max, ("SEARCH_IMPORT_SESSION_INCREMENT_SECONDS", increment)]))
        };
        assert_eq!(read("30", "30").unwrap().session_increment, Duration::from_secs(30));
        assert!(read("1", "2").unwrap_err().to_string().contains("INCREMENT_SECONDS must be at most 1"));
        assert!(read("901", "2").is_err() && read("15", "0").is_err());
    }

    #[test]
    fn history_retention_is_optional() {
        let read = |seconds: &str| {
            Config::from_pairs(pairs(&[("SEARCH_IMPORT_HISTORY_SECONDS", seconds)])).map(|read| read.history)
        };
        assert_eq!((read("60"), read("0")), (Ok(Some(Duration::from_secs(60))), Ok(None)));
        assert!(read("-1").is_err() && read("3155760001").is_err());
    }

    #[test]
    fn names_contain_every_setting() {
        let names = Config::names();
        for name in ["MONGODB_URI", "MONGODB_DATABASE", "SEARCH_IMPORT_MODE", "SEARCH_IMPORT_OUTBOX_BATCH"] {
            assert!(names.contains(name), "{names:?}");
        }
        assert!(NOT_ON_LAMBDA.iter().all(|name| names.contains(*name)), "{names:?}");
    }

    #[test]
    fn key_prefix_leaves_capacity_for_names() {
        let read = |prefix: &str| Config::from_pairs(pairs(&[("SEARCH_IMPORT_KEY_PREFIX", prefix)]));
        assert!(read(&"x".repeat(621)).is_ok());
        assert!(read(&"x".repeat(622)).unwrap_err().to_string().contains("at most 621 bytes"));
        assert!(read("exports/mine/").unwrap_err().to_string().contains("not below exports/"));
    }

    #[test]
    fn maximum_of_unreadable_records_is_a_percentage() {
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
