//! Errors of a call, and their translation to the errors of the ports.

use std::fmt;
use std::time::Duration;

use messages::store::chain;
use messages::{PartitionKey, StoreError};
use mongodb::bson::Bson;
use mongodb::error::Error;

use crate::connect::ConnectError;
use crate::driver_error::{self, DriverErrorText, NO_SERVER_ANSWERS, timeout_text};
use crate::names::collection_name;
use crate::value::uuid;

#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The driver or the server failed. The driver's error is not a source, because its text is included here.
    #[error("{}", DriverErrorText(.0))]
    Driver(Error),
    /// The first connection failed. The text contains the whole reason.
    #[error("{}", connection_text(.0.as_ref()))]
    NotConnected(Box<dyn std::error::Error + Send + Sync>),
    /// The server rejected one statement of a batch.
    #[error("MongoDB refused a statement with code {code}: {message}")]
    Statement {
        /// Code of the error.
        code: i32,
        /// Text of the error.
        message: String,
    },
    /// A majority did not confirm the writes, so a failover may roll them back.
    #[error("no majority confirmed the write: code {code}: {message}")]
    WriteConcern {
        /// Code of the error.
        code: i32,
        /// Text of the error.
        message: String,
    },
    /// The call exceeded its time limit.
    #[error("{}", timeout_text(*.0))]
    Timeout(Duration),
    /// The outcome of one of several writes is unknown, because the stored document does not show it.
    #[error(
        "the outcome of storing partition {0} is unknown: the version that was read precedes its base version"
    )]
    UnknownOutcome(PartitionKey),
    /// The reply does not have the expected form.
    #[error("MongoDB's answer cannot be understood: {0}")]
    InvalidReply(String),
    /// A stored document does not have the expected form.
    #[error("document {id} of {collection} is not {what}: {why}")]
    Unreadable {
        /// Collection.
        collection: String,
        /// Id of the document.
        id: String,
        /// Expected content.
        what: &'static str,
        /// Reason.
        why: String,
    },
    /// One item of a page does not have the expected form, and the error of the port describes it.
    #[cfg(feature = "search")]
    #[error("{0}")]
    DamagedItem(messages::store::Source),
    /// A value cannot be serialized.
    #[error("it cannot be written as BSON: {0}")]
    Encode(String),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<mongodb::bson::error::Error> for CallError {
    fn from(error: mongodb::bson::error::Error) -> Self {
        Self::encode(error)
    }
}

impl CallError {
    /// Returns the error of a stored document that is not `what`.
    pub(crate) fn unreadable(collection: &str, id: Option<&Bson>, what: &'static str, why: &str) -> Self {
        let id = id.map_or_else(
            || "without id".to_owned(),
            |id| uuid(id).map_or_else(|| truncate(&id.to_string()), |id| id.to_string()),
        );
        Self::Unreadable { collection: collection.to_owned(), id, what, why: truncate(why) }
    }

    /// Returns the error of a value that cannot be serialized.
    pub(crate) fn encode(error: impl fmt::Display) -> Self {
        Self::Encode(error.to_string())
    }

    /// Returns the error with the name that the collection has in the database of the system.
    pub(crate) fn of_system(self, system: &str) -> Self {
        match self {
            Self::Unreadable { collection, id, what, why } => {
                Self::Unreadable { collection: collection_name(system, &collection), id, what, why }
            }
            other => other,
        }
    }

    /// Converts this error to the error of a port. `doing` describes the operation that failed.
    pub(crate) fn while_doing(self, doing: impl Into<String>) -> StoreError {
        match self {
            #[cfg(feature = "search")]
            Self::DamagedItem(damage) => StoreError::unusable(doing, damage),
            error if error.is_retryable() => StoreError::unavailable(doing, error),
            error => StoreError::unusable(doing, error),
        }
    }

    /// Returns whether the call may succeed if it is repeated.
    pub(crate) fn is_retryable(&self) -> bool {
        match self {
            Self::Driver(error) => driver_error::is_retryable(error),
            Self::Statement { code, .. } => driver_error::is_retryable_code(*code),
            Self::WriteConcern { .. }
            | Self::NotConnected(_)
            | Self::Timeout(_)
            | Self::UnknownOutcome(_) => true,
            Self::InvalidReply(_) | Self::Unreadable { .. } | Self::Encode(_) => false,
            #[cfg(feature = "search")]
            Self::DamagedItem(_) => false,
        }
    }
}

/// Returns the text of a failed connection. An outage has the same text before and after the first connection.
fn connection_text(error: &(dyn std::error::Error + Send + Sync + 'static)) -> String {
    match error.downcast_ref() {
        Some(ConnectError::Unreachable(_)) => NO_SERVER_ANSWERS.to_owned(),
        _ => chain(error),
    }
}

/// Truncates a text from a document, which may be as long as the document.
fn truncate(text: &str) -> String {
    const MAX_CHARS: usize = 200;
    if text.chars().count() <= MAX_CHARS {
        text.to_owned()
    } else {
        text.chars().take(MAX_CHARS).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unconfirmed_write_is_retryable() {
        let error = CallError::WriteConcern { code: 100, message: "not enough nodes".to_owned() };
        assert!(error.while_doing("storing").is_retryable());
    }

    #[test]
    fn unreadable_document_is_named_with_bounded_text() {
        let error = CallError::unreadable("pmStudy", Some(&Bson::Int32(7)), "a study", &"x".repeat(5_000));
        let text = error.to_string();
        assert!(text.starts_with("document 7 of pmStudy is not a study: xxx") && text.len() < 300, "{text}");
        assert!(!error.is_retryable());
    }
}
