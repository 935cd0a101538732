//! Settings as text, one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::time::Duration;

use imports::ports::Quota;
use imports::{Deadlines, ProjectId};
use jiff::SignedDuration;
use outbox::Policy;

use super::{Config, Mode, Secret, Services};

/// More than a century is a slip of the hand.
const MAX_SECONDS: u64 = 3_155_760_000;

fn span(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

/// Reads settings, and remembers which were asked for and what was wrong with them.
#[derive(Default)]
pub(super) struct Reader {
    pub(super) pairs: BTreeMap<String, String>,
    /// The name of every setting that was looked for.
    pub(super) asked: BTreeSet<String>,
    pub(super) faults: Vec<String>,
}

impl Reader {
    pub(super) fn services(&mut self, default: Services) -> Services {
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

    /// The delays are those of SQS, which waits for 15 minutes at most
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>).
    pub(super) fn session(&mut self, default: &Config) -> (Duration, Duration) {
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

    pub(super) fn outbox(&mut self, default: Policy) -> Policy {
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

    /// Whoever has a form that is still valid may upload with it.
    pub(super) fn deadlines(&mut self, upload_valid_for: Duration, default: Deadlines) -> Deadlines {
        let upload = self.seconds("UPLOAD_TIMEOUT_SECONDS", default.upload.unsigned_abs());
        let parse = self.seconds("PARSE_TIMEOUT_SECONDS", default.parse.unsigned_abs());
        Deadlines { upload: span(upload.max(upload_valid_for)), parse: span(parse) }
    }

    pub(super) fn quota(&mut self, default: Quota) -> Quota {
        Quota {
            searches: self.read("MAX_OPEN_SEARCHES", default.searches, |n| *n > 0, "a number, at least 1"),
            bytes: self.read("MAX_OPEN_BYTES", default.bytes, |n| *n > 0, "a number of bytes, at least 1"),
        }
    }

    /// At most what SQS allows
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>).
    pub(super) fn visibility(&mut self) -> Option<Duration> {
        let seconds = "a number of seconds from 1 to 43200";
        let visibility = self.read("VISIBILITY_SECONDS", 0, |n| (1..=43_200).contains(n), seconds);
        (visibility > 0).then(|| Duration::from_secs(visibility))
    }

    pub(super) fn project(&mut self, default: ProjectId) -> ProjectId {
        let Some(text) = self.text("SEARCH_IMPORT_PROJECT") else { return default };
        ProjectId::meant_by(&text).unwrap_or_else(|error| {
            self.faults.push(format!("SEARCH_IMPORT_PROJECT names no project: the name {error}"));
            default
        })
    }

    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        self.asked.insert(name.to_owned());
        self.pairs.get(name).filter(|text| !text.trim().is_empty()).cloned()
    }

    pub(super) fn seconds(&mut self, name: &str, default: Duration) -> Duration {
        let valid = |seconds: &u64| (1..=MAX_SECONDS).contains(seconds);
        Duration::from_secs(self.read(name, default.as_secs(), valid, "a number of seconds, at least 1"))
    }

    /// Without a ledger only the document tells that its search has ended, so it has to outlive every message: one
    /// that came later would begin the search anew.
    pub(super) fn retention(
        &mut self,
        mode: Mode,
        message_lifetime: Duration,
        default: Duration,
    ) -> Duration {
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

    /// None for 0.
    pub(super) fn history(&mut self, default: Option<Duration>) -> Option<Duration> {
        let must_be = "a number of seconds, or 0 for no history";
        let valid = |seconds: &u64| (0..=MAX_SECONDS).contains(seconds);
        let default = default.map_or(0, |kept| kept.as_secs());
        let seconds = self.read("HISTORY_SECONDS", default, valid, must_be);
        (seconds > 0).then(|| Duration::from_secs(seconds))
    }

    pub(super) fn read<T: FromStr>(
        &mut self,
        name: &str,
        default: T,
        valid: impl Fn(&T) -> bool,
        must_be: &str,
    ) -> T {
        let name = format!("SEARCH_IMPORT_{name}");
        self.asked.insert(name.clone());
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
