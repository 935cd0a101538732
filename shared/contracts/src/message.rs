//! Everything that travels through a queue: CloudEvents 1.0, JSON, structured mode
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).
//!
//! The extension attributes are `correlationid` (the search), `causationid` (the message that led to this
//! one), `token` (permission to process it) and `traceparent` (W3C Trace Context).

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{FileId, MessageId, ProjectId, SearchId, SessionId, TimeoutId, Token};
use crate::job::Counts;
use crate::manifest::Manifest;
use crate::trace::Traceparent;

/// The largest body read, in bytes: what an SQS message may hold
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
/// Checked before a byte of it is parsed. Our own messages stay far below.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

const SPEC_VERSION: &str = "1.0";
const TYPE_PREFIX: &str = "search-import.";
const TYPE_SUFFIX: &str = ".v1";

/// One logical message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its id; copies of one message share it.
    pub id: MessageId,
    /// Which function sent it, such as `notify-upload`.
    pub source: String,
    /// When what it tells happened.
    pub time: Timestamp,
    /// The search it belongs to.
    pub correlation_id: SearchId,
    /// The message whose handling led to this one.
    pub causation_id: Option<MessageId>,
    /// Permission to process it, where its consumer asks for one.
    pub token: Option<Token>,
    /// The trace it belongs to.
    pub traceparent: Option<String>,
    /// What it says.
    pub body: Body,
}

/// What a message says. The variant's name is the CloudEvents type between `search-import.` and `.v1`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum Body {
    /// A search was announced.
    SearchUploadStarted(SearchUploadStarted),
    /// A file of a search was stored.
    SearchUploadSaved(SearchUploadSaved),
    /// A file was read to its end.
    ReferenceFileParsingCompleted(ReferenceFileParsingCompleted),
    /// A file was refused or could not be read.
    ReferenceFileFaulted(ReferenceFileFaulted),
    /// A parse command never succeeded.
    StartParsingFaulted(StartParsingFaulted),
    /// The files of a search did not arrive in time.
    UploadTimeout(UploadTimeout),
    /// A search was withdrawn by whoever announced it.
    SearchWithdrawn(SearchWithdrawn),
    /// Command: read one file.
    StartParsing(StartParsing),
    /// Command: bring a transactional session to its end.
    SettleSession(SettleSession),
    /// Every file of a search was read.
    SearchImportCompleted(SearchImportEnded),
    /// A search failed.
    SearchImportFailed(SearchImportEnded),
}

/// See [`Body::SearchUploadStarted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchUploadStarted {
    /// The review.
    pub project_id: ProjectId,
    /// What is to come.
    pub manifest: Manifest,
}

/// See [`Body::SearchUploadSaved`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchUploadSaved {
    /// The review, from the object's key.
    pub project_id: ProjectId,
    /// The file, from the object's key.
    pub file_id: FileId,
    /// The file's name, from the object's key.
    pub file_name: String,
    /// Where its bytes are.
    pub object: ObjectRef,
    /// The object's user metadata as stored, at most 2 KB by S3's limit; read by
    /// [`crate::UploadMetadata::from_map`].
    pub metadata: BTreeMap<String, String>,
}

/// One stored object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectRef {
    /// The bucket.
    pub bucket: String,
    /// The key, decoded.
    pub key: String,
    /// Its version, in a bucket that keeps versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// See [`Body::ReferenceFileParsingCompleted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceFileParsingCompleted {
    /// The file.
    pub file_id: FileId,
    /// What was found in it.
    pub counts: Counts,
}

/// See [`Body::ReferenceFileFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceFileFaulted {
    /// The file.
    pub file_id: FileId,
    /// Why, in words for the reviewer.
    pub reason: String,
}

/// See [`Body::StartParsingFaulted`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartParsingFaulted {
    /// The file.
    pub file_id: FileId,
    /// Why, in words for the reviewer.
    pub reason: String,
}

/// See [`Body::UploadTimeout`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UploadTimeout {
    /// Which scheduled timeout this is; one that is not the saga's current one is ignored.
    pub timeout_id: TimeoutId,
}

/// See [`Body::SearchWithdrawn`]. It may overtake the announcement, and so says itself what was announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchWithdrawn {
    /// The review.
    pub project_id: ProjectId,
    /// What was announced.
    pub manifest: Manifest,
}

/// See [`Body::StartParsing`]. It carries all that the parser needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartParsing {
    /// The review.
    pub project_id: ProjectId,
    /// The file.
    pub file_id: FileId,
    /// Its name, for the reviewer.
    pub file_name: String,
    /// Its place among the search's files, from 0; studies are listed in this order.
    pub position: u32,
    /// Where its bytes are.
    pub object: ObjectRef,
    /// The token that the reply must carry. Exactly one reply per file is admitted, whichever it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_token: Option<Token>,
}

/// See [`Body::SettleSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettleSession {
    /// The session.
    pub session_id: SessionId,
    /// How much longer to wait for the session's record, in milliseconds.
    pub remaining_ms: u64,
    /// The delay before the previous look, in milliseconds.
    pub increment_ms: u64,
    /// How often the record was looked for before; 0 at first.
    pub attempt: u32,
    /// Whatever the opener of the session attached.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// See [`Body::SearchImportCompleted`] and [`Body::SearchImportFailed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchImportEnded {
    /// The review.
    pub project_id: ProjectId,
    /// Studies stored for all files together.
    pub studies: u64,
    /// Why it failed, in words for the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Where a message is sent. Each is a queue with a dead-letter queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Destination {
    /// To `run-saga`.
    Saga,
    /// To `parse-references`.
    Parse,
    /// To `dispatch-outbox`.
    Control,
    /// To whoever wants to know how an import ended.
    Events,
}

impl Destination {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Saga, Self::Parse, Self::Control, Self::Events];

    /// Its name, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Saga => "saga",
            Self::Parse => "parse",
            Self::Control => "control",
            Self::Events => "events",
        }
    }
}

impl Body {
    /// The variant's name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SearchUploadStarted(_) => "SearchUploadStarted",
            Self::SearchUploadSaved(_) => "SearchUploadSaved",
            Self::ReferenceFileParsingCompleted(_) => "ReferenceFileParsingCompleted",
            Self::ReferenceFileFaulted(_) => "ReferenceFileFaulted",
            Self::StartParsingFaulted(_) => "StartParsingFaulted",
            Self::UploadTimeout(_) => "UploadTimeout",
            Self::SearchWithdrawn(_) => "SearchWithdrawn",
            Self::StartParsing(_) => "StartParsing",
            Self::SettleSession(_) => "SettleSession",
            Self::SearchImportCompleted(_) => "SearchImportCompleted",
            Self::SearchImportFailed(_) => "SearchImportFailed",
        }
    }

    /// Where a message that says this belongs.
    pub fn destination(&self) -> Destination {
        match self {
            Self::SearchUploadStarted(_)
            | Self::SearchUploadSaved(_)
            | Self::ReferenceFileParsingCompleted(_)
            | Self::ReferenceFileFaulted(_)
            | Self::StartParsingFaulted(_)
            | Self::UploadTimeout(_)
            | Self::SearchWithdrawn(_) => Destination::Saga,
            Self::StartParsing(_) => Destination::Parse,
            Self::SettleSession(_) => Destination::Control,
            Self::SearchImportCompleted(_) | Self::SearchImportFailed(_) => Destination::Events,
        }
    }
}

/// The envelope as it is on the wire.
#[derive(Serialize, Deserialize)]
struct Wire {
    specversion: String,
    id: MessageId,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    datacontenttype: String,
    correlationid: SearchId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causationid: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    data: Value,
}

impl Message {
    /// The trace of what its handling leads to.
    pub fn traceparent_of_effects(&self) -> Traceparent {
        match self.traceparent.as_deref().and_then(Traceparent::parse) {
            Some(parent) => parent.then(self.id),
            None => Traceparent::of(self.correlation_id, self.id),
        }
    }

    /// The message as the body of a queue's message.
    ///
    /// # Errors
    /// When it cannot be represented, or would be larger than [`MAX_BODY_BYTES`].
    pub fn encode(&self) -> Result<String, EncodeError> {
        let tagged = serde_json::to_value(&self.body)?;
        let data = tagged.get("data").cloned().unwrap_or(Value::Null);
        let wire = Wire {
            specversion: SPEC_VERSION.to_owned(),
            id: self.id,
            source: format!("/search-import/{}", self.source),
            kind: format!("{TYPE_PREFIX}{}{TYPE_SUFFIX}", self.body.name()),
            time: self.time,
            datacontenttype: "application/json".to_owned(),
            correlationid: self.correlation_id,
            causationid: self.causation_id,
            token: self.token.as_ref().map(Token::to_string),
            traceparent: self.traceparent.clone(),
            data,
        };
        let text = serde_json::to_string(&wire)?;
        if text.len() > MAX_BODY_BYTES { Err(EncodeError::TooLarge(text.len())) } else { Ok(text) }
    }

    /// Reads the body of a queue's message.
    ///
    /// # Errors
    /// What is wrong with it; none of the reasons goes away by trying again.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        if text.len() > MAX_BODY_BYTES {
            return Err(DecodeError::TooLarge(text.len()));
        }
        let value: Value = serde_json::from_str(text).map_err(DecodeError::NotJson)?;
        if value.get("specversion").and_then(Value::as_str) != Some(SPEC_VERSION) {
            return Err(DecodeError::NotCloudEvent);
        }
        let wire: Wire = serde_json::from_value(value).map_err(DecodeError::Envelope)?;
        let name = wire
            .kind
            .strip_prefix(TYPE_PREFIX)
            .and_then(|rest| rest.strip_suffix(TYPE_SUFFIX))
            .filter(|name| TYPES.contains(name))
            .ok_or_else(|| DecodeError::UnknownType(shorten(&wire.kind)))?;
        let tagged = serde_json::json!({ "type": name, "data": wire.data });
        let body = serde_json::from_value(tagged)
            .map_err(|source| DecodeError::Data { kind: name.to_owned(), source })?;
        let token = wire.token.map(|text| Token::parse(&text)).transpose().map_err(|_| DecodeError::Token)?;
        if token.as_ref().is_some_and(|token| !token.is_for(wire.correlationid)) {
            return Err(DecodeError::ForeignToken(wire.correlationid));
        }
        Ok(Self {
            id: wire.id,
            source: wire.source.trim_start_matches("/search-import/").to_owned(),
            time: wire.time,
            correlation_id: wire.correlationid,
            causation_id: wire.causationid,
            token,
            traceparent: wire.traceparent,
            body,
        })
    }
}

/// The names of all bodies, as [`Body::name`] gives them.
pub const TYPES: [&str; 11] = [
    "SearchUploadStarted",
    "SearchUploadSaved",
    "ReferenceFileParsingCompleted",
    "ReferenceFileFaulted",
    "StartParsingFaulted",
    "UploadTimeout",
    "SearchWithdrawn",
    "StartParsing",
    "SettleSession",
    "SearchImportCompleted",
    "SearchImportFailed",
];

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

/// Why a message cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// Not representable as JSON.
    #[error("the message cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// Over the queue's limit.
    #[error("the message has {0} bytes, more than the {MAX_BODY_BYTES} that a queue takes")]
    TooLarge(usize),
}

/// Why a received body is not one of our messages. None of the reasons goes away by trying again.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Over the limit; not parsed at all.
    #[error("the body has {0} bytes, more than the {MAX_BODY_BYTES} allowed")]
    TooLarge(usize),
    /// Not JSON.
    #[error("the body is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but no CloudEvent of version 1.0.
    #[error("the body is not a CloudEvent of version {SPEC_VERSION}")]
    NotCloudEvent,
    /// A CloudEvent that lacks what ours have, the correlation id for one.
    #[error("the envelope is incomplete or malformed")]
    Envelope(#[source] serde_json::Error),
    /// A type that is none of ours.
    #[error("the type \"{0}\" is unknown")]
    UnknownType(String),
    /// Our type with other data.
    #[error("the data of {kind} is malformed")]
    Data {
        /// The type.
        kind: String,
        /// What is wrong.
        #[source]
        source: serde_json::Error,
    },
    /// A token of another system.
    #[error("the token is malformed")]
    Token,
    /// A token that was made for another partition.
    #[error("the token is not one of search {0}")]
    ForeignToken(SearchId),
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn message(body: Body) -> Message {
        Message {
            id: MessageId::from_uuid(Uuid::from_u128(1)),
            source: "run-saga".into(),
            time: "2026-01-02T03:04:05Z".parse().unwrap(),
            correlation_id: SearchId::from_uuid(Uuid::from_u128(2)),
            causation_id: Some(MessageId::from_uuid(Uuid::from_u128(3))),
            token: Some(Token::minted_at_entry(SearchId::from_uuid(Uuid::from_u128(2)), Uuid::from_u128(4))),
            traceparent: None,
            body,
        }
    }

    fn timeout() -> Body {
        Body::UploadTimeout(UploadTimeout { timeout_id: TimeoutId::from_uuid(Uuid::from_u128(5)) })
    }

    #[test]
    fn a_message_reads_back_as_what_it_was_written_from() {
        let message = message(timeout());
        assert_eq!(Message::decode(&message.encode().unwrap()).unwrap(), message);
    }

    #[test]
    fn the_envelope_has_the_attributes_that_cloudevents_requires() {
        let wire: Value = serde_json::from_str(&message(timeout()).encode().unwrap()).unwrap();
        assert_eq!(wire["specversion"], "1.0");
        assert_eq!(wire["type"], "search-import.UploadTimeout.v1");
        assert_eq!(wire["source"], "/search-import/run-saga");
        assert_eq!(wire["correlationid"], "00000000-0000-0000-0000-000000000002");
        assert!(wire["id"].is_string() && wire["data"].is_object());
    }

    #[test]
    fn every_hostile_body_is_refused_with_its_own_reason() {
        let good = message(timeout()).encode().unwrap();
        let with = |from: &str, to: &str| Message::decode(&good.replacen(from, to, 1)).unwrap_err();
        assert!(matches!(Message::decode("\u{0}junk").unwrap_err(), DecodeError::NotJson(_)));
        assert!(matches!(Message::decode(&"[".repeat(100_000)).unwrap_err(), DecodeError::NotJson(_)));
        assert!(matches!(Message::decode("{}").unwrap_err(), DecodeError::NotCloudEvent));
        assert!(matches!(
            Message::decode(&"x".repeat(MAX_BODY_BYTES + 1)).unwrap_err(),
            DecodeError::TooLarge(_)
        ));
        assert!(matches!(with("correlationid", "other"), DecodeError::Envelope(_)));
        assert!(matches!(with("UploadTimeout", "Unheard"), DecodeError::UnknownType(_)));
        assert!(matches!(with("timeout_id", "other"), DecodeError::Data { .. }));
        assert!(matches!(with("\"s:", "\"zz:"), DecodeError::Token));
        assert!(matches!(with("\"s:000000000002:", "\"s:000000000003:"), DecodeError::ForeignToken(_)));
    }
}
