//! The expected responses of the functions to the sample events, for tests and for trying out the functions.

use std::fmt;

use imports::queues;
use messages::Queue;
use serde_json::{Value, json};

const FIRST: &str = "096fKKXTRTtl3on89fVO.nfljtsv6qko";
const SECOND: &str = "L4kqtJlcpXroDTDmpUMLUo";
const ENCODED: &str = "Ergebnisse + 50% für «Müller» 検索.ris";
/// The claim of a token that lists its bearer's projects.
const CLAIM: &str = "projects";

/// The expected result of an event in an installation that contains its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExpectedResult {
    /// No response. These files are reported to the saga, by name and version.
    Files(&'static [(&'static str, &'static str)]),
    /// A partial batch response.
    Batch {
        /// The indices of the records that fail.
        failing: &'static [usize],
        /// The indices of the records that fail on SQS. Rejected records are moved to the dead-letter queue there and
        /// count as processed.
        on_sqs: &'static [usize],
        /// The queue to which messages are sent.
        to: Queue,
        /// The names of the messages sent.
        sends: &'static [&'static str],
    },
    /// An HTTP response: its status by the claim that the function reads, if any.
    Status(&'static [(Option<&'static str>, u64)]),
    /// No response and no messages.
    Sweep,
}

/// The parts of a function's environment that its responses depend on.
#[derive(Debug, Clone, Copy, Default)]
pub struct Surroundings<'a> {
    /// The claim that the function reads.
    pub claim: Option<&'a str>,
    /// `true` if the function uses SQS queues.
    pub sqs: bool,
}

const fn batch(
    [failing, on_sqs]: [&'static [usize]; 2],
    to: Queue,
    sends: &'static [&'static str],
) -> ExpectedResult {
    ExpectedResult::Batch { failing, on_sqs, to, sends }
}

/// Every record of a batch of ten.
const ALL: &[usize] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

use ExpectedResult::{Files, Status, Sweep};

/// Every sample event, in alphabetical order.
static EXPECTED: [(&str, ExpectedResult); 33] = [
    ("http-bad-manifest", Status(&[(None, 422)])),
    // With a claim, the request fails because it names no caller.
    ("http-create-search", Status(&[(None, 201), (Some(CLAIM), 404)])),
    ("http-foreign-project", Status(&[(None, 404), (Some(CLAIM), 404)])),
    ("http-hostile-path", Status(&[(None, 400)])),
    ("http-list-searches", Status(&[(None, 200)])),
    // A signed request may use the operator API only if the deployment requires no tokens.
    ("http-operator-signed", Status(&[(None, 200), (Some(CLAIM), 403)])),
    // The failure to archive does not exist.
    ("http-operator-with-token", Status(&[(None, 403), (Some(CLAIM), 404)])),
    // Without a claim, the content of the token is not read.
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
    // The sessions of these messages are not stored, so each is checked again later.
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

impl ExpectedResult {
    /// Returns the expected result of the sample event with this name; `None` if there is no such sample.
    pub fn of(name: &str) -> Option<&'static Self> {
        EXPECTED.iter().find_map(|(sample, expected)| (*sample == name).then_some(expected))
    }

    /// Returns the names of the samples with expected results that start with `prefix`.
    pub fn names(prefix: &str) -> impl Iterator<Item = &'static str> {
        EXPECTED.iter().map(|(name, _)| *name).filter(move |name| name.starts_with(prefix))
    }

    /// Returns the status of the HTTP response by a function that reads this claim; `None` if it depends on the caller.
    pub fn status(&self, claim: Option<&str>) -> Option<u64> {
        let Status(statuses) = self else { return None };
        statuses.iter().find_map(|(read, status)| (*read == claim).then_some(*status))
    }

    /// Returns the indices of the records of a batch that fail.
    fn failing(&self, at: Surroundings<'_>) -> &'static [usize] {
        match self {
            Self::Batch { on_sqs, .. } if at.sqs => on_sqs,
            Self::Batch { failing, .. } => failing,
            _ => &[],
        }
    }

    /// Returns `true` if `answer` is the expected response to the event.
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

    /// Describes the expected result.
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
