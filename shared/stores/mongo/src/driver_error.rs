//! Classification and description of the driver's errors.

use std::fmt;
use std::time::Duration;

use mongodb::error::{
    Error, ErrorKind, RETRYABLE_ERROR, RETRYABLE_WRITE_ERROR, SYSTEM_OVERLOADED_ERROR,
    TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT, WriteFailure,
};

/// Text of an error if no server answers.
pub(crate) const NO_SERVER_ANSWERS: &str = "no MongoDB server answers";
/// Code of a duplicate key. The text of the error differs between versions, so only the code is compared.
pub(crate) const DUPLICATE_KEY: i32 = 11000;
/// Code of a collection that exists already.
pub(crate) const NAMESPACE_EXISTS: i32 = 48;
/// Code of a collection that does not exist.
pub(crate) const NAMESPACE_NOT_FOUND: i32 = 26;

/// Codes of retryable failures: elections and shutdowns, networks, time limits, locks and conflicts, aborted
/// transactions, and stale routing (<https://github.com/mongodb/mongo/blob/master/src/mongo/base/error_codes.yml>).
/// They include a duplicate key: callers that expect it handle it before, and elsewhere it means that a concurrent
/// write was faster, which the next attempt will read. They also include what an operator corrects: missing rights (13),
/// blocked writes (371, as during a migration to another cluster), and a server or a cluster of Atlas without space (14031
/// and 8000, <https://www.mongodb.com/docs/atlas/reference/faq/storage/>).
const RETRYABLE_CODES: [i32; 49] = [
    6, 7, 13, 18, 24, 43, 46, 50, 63, 64, 89, 91, 100, 112, 117, 133, 134, 136, 150, 175, 189, 202, 225, 237,
    246, 251, 262, 267, 290, 314, 317, 358, 365, 371, 384, 402, 462, 8000, 9001, 10058, 10107, 11000, 11600,
    11601, 11602, 13388, 13435, 13436, 14031,
];

const RETRYABLE_LABELS: [&str; 5] = [
    RETRYABLE_WRITE_ERROR,
    TRANSIENT_TRANSACTION_ERROR,
    UNKNOWN_TRANSACTION_COMMIT_RESULT,
    RETRYABLE_ERROR,
    SYSTEM_OVERLOADED_ERROR,
];

/// Returns whether an operation that failed with this code may succeed if it is repeated.
pub(crate) fn is_retryable_code(code: i32) -> bool {
    RETRYABLE_CODES.contains(&code)
}

/// Returns whether an operation that failed with this error may succeed if it is repeated.
pub(crate) fn is_retryable(error: &Error) -> bool {
    if RETRYABLE_LABELS.iter().any(|label| error.contains_label(label)) {
        return true;
    }
    match error.kind.as_ref() {
        // The driver reports a refused login of a new connection only by this kind. An operator corrects the credentials.
        ErrorKind::Authentication { .. }
        | ErrorKind::Io(_)
        | ErrorKind::ConnectionPoolCleared { .. }
        | ErrorKind::ServerSelection { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::Write(WriteFailure::WriteConcernError(_)) => true,
        ErrorKind::InsertMany(error) if error.write_concern_error.is_some() => true,
        _ => codes(error).into_iter().any(is_retryable_code),
    }
}

/// Returns the server's codes in an error.
fn codes(error: &Error) -> Vec<i32> {
    match error.kind.as_ref() {
        ErrorKind::Command(error) => vec![error.code],
        ErrorKind::Write(WriteFailure::WriteError(error)) => vec![error.code],
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => vec![error.code],
        ErrorKind::InsertMany(error) => error.write_errors.iter().flatten().map(|error| error.code).collect(),
        _ => Vec::new(),
    }
}

/// Returns whether an error consists of exactly this code.
pub(crate) fn is_code(error: &Error, code: i32) -> bool {
    codes(error) == [code]
}

/// Text of the driver if it found no server at all. It has another text if it found no primary.
const NO_SERVERS: &str = "No available servers";

/// Displays a driver's error in one line. The driver's own text contains labels, causes, the last state of each server
/// and the server's whole reply, in varying order. This text is the same for the same cause, so that failures can be
/// counted by cause. The state of each server is part of the error of a program that starts
/// ([`crate::ConnectError`]).
pub(crate) struct DriverErrorText<'a>(pub(crate) &'a Error);

impl fmt::Display for DriverErrorText<'_> {
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
                f.write_str("the connection failed: another call found the server unavailable")
            }
            ErrorKind::ServerSelection { message, .. } if message.contains(NO_SERVERS) => {
                f.write_str(NO_SERVER_ANSWERS)
            }
            ErrorKind::ServerSelection { .. } => f.write_str("no MongoDB server takes writes"),
            kind => write!(f, "{kind}"),
        }
    }
}

/// Returns the text of a call without a reply within its time limit.
pub(crate) fn timeout_text(limit: Duration) -> String {
    format!("no answer within {} ms", limit.as_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_and_elections_are_retryable() {
        for code in [112, 10107, 11602, 91, 189, 50, 64, 13, 371, 402, 8000, 14031] {
            assert!(is_retryable_code(code), "{code}");
        }
        for code in [121, 2, 9, 14, 52, 10334] {
            assert!(!is_retryable_code(code), "{code}");
        }
        assert!(RETRYABLE_CODES.is_sorted(), "for the reader of the list");
    }

    #[test]
    fn network_failure_is_retryable() {
        let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
        assert!(is_retryable(&Error::from(reset)));
    }
}
