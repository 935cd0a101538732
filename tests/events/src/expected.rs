//! The answers of the functions to the sample events, for tests and for developers who try the functions.

use std::fmt;

use imports::queues;
use messages::Queue;
use serde_json::{Value, json};

const FIRST: &str = "096fKKXTRTtl3on89fVO.nfljtsv6qko";
const SECOND: &str = "L4kqtJlcpXroDTDmpUMLUo";
const ENCODED: &str = "Ergebnisse + 50% für «Müller» 検索.ris";
/// The claim of a token that lists its bearer's projects.
const CLAIM: &str = "projects";

/// The result of an event in an installation that contains its data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expected {
    /// No answer. These files are reported to the saga, by name and version.
    Files(&'static [(&'static str, &'static str)]),
    /// A partial batch response.
    Batch {
        /// The places of the records that fail.
        failing: &'static [usize],
        /// The places of those that fail on SQS. A rejected message is moved to the dead-letter queue there, and counts
        /// as handled.
        on_sqs: &'static [usize],
        /// Where messages are sent.
        to: Queue,
        /// The names of those that are sent.
        sends: &'static [&'static str],
    },
    /// An answer of HTTP: its status by the claim that the function reads, where there is one.
    Status(&'static [(Option<&'static str>, u64)]),
    /// No answer, and no message.
    Sweep,
}

/// Where a function works, as far as its answers depend on that.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The claim that it reads.
    pub claim: Option<&'a str>,
    /// Whether its queues are those of SQS.
    pub sqs: bool,
}

const fn batch(
    [failing, on_sqs]: [&'static [usize]; 2],
    to: Queue,
    sends: &'static [&'static str],
) -> Expected {
    Expected::Batch { failing, on_sqs, to, sends }
}

/// Every record of a batch of ten.
const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

use Expected::{Files, Status, Sweep};

/// Every sample event, in alphabetical order.
static EXPECTED: [(&str, Expected); 33] = [
    ("http-bad-manifest", Status(&[(None, 422)])),
    // With a claim: the request has no token.
    ("http-create-search", Status(&[(None, 201), (Some(CLAIM), 404)])),
    ("http-foreign-project", Status(&[(None, 404), (Some(CLAIM), 404)])),
    ("http-hostile-path", Status(&[(None, 400)])),
    ("http-list-searches", Status(&[(None, 200)])),
    // A signed request has an operator's rights only in a deployment without tokens.
    ("http-operator-signed", Status(&[(None, 200), (Some(CLAIM), 403)])),
    // The failure to archive does not exist.
    ("http-operator-with-token", Status(&[(None, 403), (Some(CLAIM), 404)])),
    // Without a claim: the token is ignored.
    ("http-own-project", Status(&[(None, 404), (Some(CLAIM), 200), (Some("groups"), 404)])),
    ("http-unknown-search", Status(&[(None, 404)])),
    ("s3-copy", Files(&[("psycinfo.ris", "")])),
    ("s3-duplicate", Files(&[("psycinfo.ris", FIRST), ("psycinfo.ris", FIRST)])),
    ("s3-encoded-key", Files(&[(ENCODED, "")])),
    ("s3-eventbridge", Files(&[(ENCODED, FIRST)])),
    ("s3-multipart-completed", Files(&[("embase.csv", "")])),
    ("s3-not-an-upload", Files(&[("pubmed.nbib", "")])),
    ("s3-out-of-order", Files(&[("psycinfo.ris", FIRST), ("psycinfo.ris", SECOND)])),
    ("s3-post", Files(&[("psycinfo.ris", "")])),
    ("s3-put", Files(&[("psycinfo.ris", "")])),
    ("s3-removed", Files(&[])),
    ("s3-several-records", Files(&[("psycinfo.ris", ""), ("pubmed.nbib", ""), ("embase.csv", "")])),
    ("s3-test-event", Files(&[])),
    ("s3-versioned", Files(&[("psycinfo.ris", FIRST)])),
    ("schedule", Sweep),
    // Their session is not stored, so each is looked for once more, later.
    ("sqs-control-good", batch([&[], &[]], queues::CONTROL, &["SettleSession"])),
    ("sqs-control-mixed", batch([&[1, 2], &[]], queues::CONTROL, &["SettleSession"])),
    ("sqs-faults-mixed", batch([&[1], &[]], queues::SAGA, &["StartParsingFaulted"])),
    ("sqs-parse-good", batch([&[], &[]], queues::SAGA, &["ReferenceFileParsingCompleted"])),
    ("sqs-parse-hostile", batch([ALL, &[0, 4, 7, 8]], queues::SAGA, &[])),
    ("sqs-parse-mixed", batch([&[1, 2], &[2]], queues::SAGA, &["ReferenceFileParsingCompleted"])),
    ("sqs-saga-good", batch([&[], &[]], queues::PARSE, &["StartParsing", "StartParsing"])),
    ("sqs-saga-hostile", batch([ALL, &[0, 4, 8]], queues::PARSE, &[])),
    ("sqs-saga-mixed", batch([&[1, 3], &[3]], queues::PARSE, &["StartParsing", "StartParsing"])),
    ("sqs-uploads-mixed", batch([&[2, 3], &[]], queues::SAGA, &["SearchUploadSaved", "SearchUploadSaved"])),
];

impl Expected {
    /// Returns the expected result of a sample event; none if no sample has this name.
    pub fn of(name: &str) -> Option<&'static Self> {
        EXPECTED.iter().find_map(|(sample, expected)| (*sample == name).then_some(expected))
    }

    /// The names of the samples that something is expected of, and that begin with `prefix`.
    pub fn names(prefix: &str) -> impl Iterator<Item = &'static str> {
        EXPECTED.iter().map(|(name, _)| *name).filter(move |name| name.starts_with(prefix))
    }

    /// The status of an answer of HTTP by a function that reads this claim; none when it depends on who asks.
    pub fn status(&self, claim: Option<&str>) -> Option<u64> {
        let Status(statuses) = self else { return None };
        statuses.iter().find_map(|(read, status)| (*read == claim).then_some(*status))
    }

    /// The places of the records of a batch that fail.
    fn failing(&self, at: Surroundings<'_>) -> &'static [usize] {
        match self {
            Self::Batch { on_sqs, .. } if at.sqs => on_sqs,
            Self::Batch { failing, .. } => failing,
            _ => &[],
        }
    }

    /// Whether this is what a function answers to the event.
    pub fn is_answered_by(&self, event: &Value, answer: &Value, at: Surroundings<'_>) -> bool {
        match self {
            Files(_) | Sweep => answer.is_null(),
            Self::Batch { .. } => {
                let failure =
                    |place: &usize| json!({ "itemIdentifier": event["Records"][place]["messageId"] });
                answer["batchItemFailures"] == self.failing(at).iter().map(failure).collect::<Value>()
            }
            Status(_) => self.status(at.claim).is_none_or(|status| answer["statusCode"] == status),
        }
    }

    /// In words.
    pub fn told(&self, at: Surroundings<'_>) -> impl fmt::Display + use<> {
        match self {
            Files([]) => "null, and no message".to_owned(),
            Files(files) => {
                let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
                format!("null, and SearchUploadSaved in queue saga for {}", names.join(", "))
            }
            Sweep => "null; outboxes are swept".to_owned(),
            Self::Batch { to, sends, .. } => {
                let failing = match self.failing(at) {
                    [] => "no failures".to_owned(),
                    places => format!("failures for records {places:?}, counted from 0"),
                };
                match sends {
                    [] => format!("{failing}, and no message"),
                    names => format!("{failing}, and {} in queue {}", names.join(", "), to.name()),
                }
            }
            Status(_) => match self.status(at.claim) {
                Some(status) => format!("status {status}"),
                None => "whatever the caller's projects say".to_owned(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_every_sample_event_something_is_expected() {
        assert_eq!(Expected::names("").collect::<Vec<_>>(), crate::all(""));
    }
}
