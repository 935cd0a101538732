//! What goes wrong, whether trying again is of use, and what the caller hears of it.

use std::fmt;
use std::time::Duration;

use imports::DamagedRecord;
use messages::store::chain;
use messages::{PartitionKey, StoreError};
use mongodb::bson::Bson;
use mongodb::error::{
    Error, ErrorKind, RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR, SYSTEM_OVERLOADED_ERROR,
    TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

use crate::connect::ConnectError;

/// The text of a failure when no server answers.
const NO_ANSWER: &str = "no MongoDB server answers";
/// A unique key is taken. Recognised by this number, never by the text, which differs between versions.
pub(crate) const DUPLICATE_KEY: i32 = 11000;
/// The collection exists.
pub(crate) const NAMESPACE_EXISTS: i32 = 48;
/// The collection does not exist.
pub(crate) const NAMESPACE_NOT_FOUND: i32 = 26;

/// Codes of failures that pass by themselves: elections and shutdowns, networks, time limits, locks and
/// conflicts, transactions that were aborted, and stale routing
/// (<https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>). A duplicate key is among them:
/// where it means something it is an answer and does not get here, and elsewhere somebody was faster, which the
/// next attempt will see. So are refused credentials and missing rights (13 and 18): an operator puts them right.
const PASSING: [i32; 44] = [
    6, 7, 13, 18, 24, 43, 46, 50, 63, 64, 89, 91, 100, 112, 117, 133, 134, 136, 150, 175, 189, 202, 225, 237,
    246, 251, 262, 267, 290, 314, 317, 358, 384, 462, 9001, 10058, 10107, 11000, 11600, 11601, 11602, 13388,
    13435, 13436,
];

/// A failure inside a call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The driver or the server. It is no source of this: all that is said of it is said here.
    #[error("{}", Described(.0))]
    Driver(Error),
    /// The first connection failed. The text of this fault has the whole reason.
    #[error("{}", told(.0.as_ref()))]
    NotConnected(Box<dyn std::error::Error + Send + Sync>),
    /// The server refused one statement of a batch.
    #[error("MongoDB refused a statement with code {code}: {message}")]
    Statement {
        /// Its code.
        code: i32,
        /// Its text.
        message: String,
    },
    /// The writes were made, but a majority did not confirm them: a failover may undo them.
    #[error("no majority confirmed the write: code {code}: {message}")]
    WriteConcern {
        /// Its code.
        code: i32,
        /// Its text.
        message: String,
    },
    /// Nothing came back.
    #[error("no answer within {} ms", .0.as_millis())]
    NoAnswer(Duration),
    /// Several writes were made in one call, and what is stored does not show whether this one was.
    #[error(
        "it is not known whether partition {0} was stored: an earlier version was read than the one it follows"
    )]
    Undecided(PartitionKey),
    /// What came back is not an answer to what was asked.
    #[error("MongoDB's answer cannot be understood: {0}")]
    Answer(String),
    /// What is stored is not what it should be.
    #[error("document {id} of {collection} is not {what}: {why}")]
    Foreign {
        /// The collection.
        collection: &'static str,
        /// The document.
        id: String,
        /// What it should be.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// One record of a file is not what it should be.
    #[error("study {record} cannot be read; the others can")]
    Study {
        /// Its number.
        record: u64,
        /// The number of records of the page that come before it.
        before: usize,
        /// What is wrong.
        source: Box<Fault>,
    },
    /// It cannot be stored.
    #[error("it cannot be written as BSON: {0}")]
    Encode(String),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl Fault {
    /// What is stored is not what it should be.
    pub(crate) fn foreign(
        collection: &'static str,
        id: Option<&Bson>,
        what: &'static str,
        why: &str,
    ) -> Self {
        let id = id.map_or_else(
            || "without id".to_owned(),
            |id| crate::value::uuid(id).map_or_else(|| cut(&id.to_string()), |id| id.to_string()),
        );
        Self::Foreign { collection, id, what, why: cut(why) }
    }

    /// It cannot be stored.
    pub(crate) fn encode(error: impl fmt::Display) -> Self {
        Self::Encode(error.to_string())
    }

    /// As the error of a port; `doing` says what failed.
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> StoreError {
        match self {
            Self::Study { record, before, source } => {
                StoreError::unusable(doing, DamagedRecord { record, before, source })
            }
            fault if fault.may_pass() => StoreError::unavailable(doing, fault),
            fault => StoreError::unusable(doing, fault),
        }
    }

    /// Whether another try may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Driver(error) => driver_may_pass(error),
            Self::Statement { code, .. } => PASSING.contains(code),
            Self::WriteConcern { .. } | Self::NotConnected(_) | Self::NoAnswer(_) | Self::Undecided(_) => {
                true
            }
            Self::Answer(_) | Self::Foreign { .. } | Self::Study { .. } | Self::Encode(_) => false,
        }
    }
}

/// The text of a failed connection. An outage has the same text before and after the first connection.
fn told(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref() {
        Some(ConnectError::Unreachable(_)) => NO_ANSWER.to_owned(),
        _ => chain(error),
    }
}

/// Foreign texts may be as long as a document.
fn cut(text: &str) -> String {
    const SHOWN: usize = 200;
    if text.chars().count() <= SHOWN {
        text.to_owned()
    } else {
        text.chars().take(SHOWN).chain(['…']).collect()
    }
}

const PASSING_LABELS: [&str; 5] = [
    RETRYABLE_WRITE_ERROR,
    TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT,
    RETRYABLE_ERROR,
    SYSTEM_OVERLOADED_ERROR,
];

fn driver_may_pass(error: &Error) -> bool {
    if PASSING_LABELS.iter().any(|label| error.contains_label(label)) {
        return true;
    }
    match error.kind.as_ref() {
        ErrorKind::Io(_)
        | ErrorKind::ConnectionPoolCleared { .. }
        | ErrorKind::ServerSelection { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::Write(WriteFailure::WriteConcernError(_)) => true,
        ErrorKind::InsertMany(error) if error.write_concern_error.is_some() => true,
        _ => codes(error).iter().any(|code| PASSING.contains(code)),
    }
}

/// The server's codes in an error.
fn codes(error: &Error) -> Vec<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(error) => vec![error.code],
        ErrorKind::Write(WriteFailure::WriteError(error)) => vec![error.code],
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => vec![error.code],
        ErrorKind::InsertMany(error) => error.write_errors.iter().flatten().map(|error| error.code).collect(),
        _ => Vec::new(),
    }
}

/// Whether the error is exactly this code of the server.
pub(crate) fn is_code(error: &Error, code: i32) -> bool {
    codes(error) == [code]
}

/// What the driver says when it has not found a single server, as against one that is no primary.
const NO_SERVERS: &str = "No available servers";

/// A driver's error in one line. Its own `Display` repeats labels, causes, what each server said last and the whole answer
/// of the server, in any order. Here the same cause always has the same words, so that what fails of it can be counted; what
/// each server said is in the error of a program that starts ([`crate::ConnectError`]).
pub(crate) struct Described<'a>(pub(crate) &'a Error);

impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.kind.as_ref() {
            ErrorKind::Command(error) => write!(f, "MongoDB answered {error}"),
            ErrorKind::Write(WriteFailure::WriteError(error)) => {
                write!(f, "MongoDB refused the write with code {}: {}", error.code, error.message)
            }
            ErrorKind::Write(WriteFailure::WriteConcernError(error)) => {
                write!(f, "no majority confirmed the write: code {}: {}", error.code, error.message)
            }
            ErrorKind::InsertMany(many) => match (many.write_errors.as_deref(), &many.write_concern_error) {
                (Some([first, ..]), _) => {
                    write!(f, "MongoDB refused a document with code {}: {}", first.code, first.message)
                }
                (_, Some(error)) => {
                    write!(f, "no majority confirmed the write: code {}: {}", error.code, error.message)
                }
                _ => f.write_str("MongoDB refused the documents"),
            },
            ErrorKind::Io(error) => write!(f, "the connection failed: {error}"),
            ErrorKind::ConnectionPoolCleared { .. } => {
                f.write_str("the connection failed: another call has found the server gone")
            }
            ErrorKind::ServerSelection { message, .. } if message.contains(NO_SERVERS) => {
                f.write_str(NO_ANSWER)
            }
            ErrorKind::ServerSelection { .. } => f.write_str("no MongoDB server takes writes"),
            kind => write!(f, "{kind}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_or_an_election_may_pass_and_a_validation_failure_does_not() {
        let statement = |code| Fault::Statement { code, message: String::new() };
        for code in [112, 10107, 11602, 91, 189, 50, 64, 13] {
            assert!(statement(code).may_pass(), "{code}");
        }
        for code in [121, 2, 9, 14, 52, 10334] {
            assert!(!statement(code).may_pass(), "{code}");
        }
        assert!(PASSING.is_sorted(), "so that one can find a number in it");
    }

    #[test]
    fn an_unconfirmed_write_may_pass() {
        let fault = Fault::WriteConcern { code: 100, message: "not enough nodes".to_owned() };
        assert!(fault.while_doing("storing").is_retryable());
    }

    #[test]
    fn a_network_failure_may_pass() {
        let cut = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(Fault::Driver(Error::from(cut)).may_pass());
    }

    #[test]
    fn what_is_foreign_is_named_and_its_text_is_bounded() {
        let fault = Fault::foreign("pmStudy", Some(&Bson::Int32(7)), "a study", &"x".repeat(5_000));
        let text = fault.to_string();
        assert!(text.starts_with("document 7 of pmStudy is not a study: xxx") && text.len() < 300, "{text}");
        assert!(!fault.may_pass());
    }
}
