//! The form of messages in queues: CloudEvents 1.0, JSON, structured mode
//! (<https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md>).
//!
//! The type is `{system}.{name}.v{version}`. The extension attributes are `correlationid` (the partition),
//! `causationid` (the message that led to this one), `token` (permission to process it), `replytoken` (the token that
//! an answer must carry), `replyto` (the queue and the partition of the answer, if it is another one), `timer` (the
//! timer that sent it) and `traceparent` (W3C Trace Context).

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, schema_for};
use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, PartitionKey, Token};
use crate::json::Json;
use crate::reply_address::ReplyAddress;
use crate::trace::Traceparent;

/// The maximum size of a body in bytes: the limit of an SQS message
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>). It is checked
/// before the body is parsed.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

const SPEC_VERSION: &str = "1.0";

/// A logical message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The id of the message; duplicates of a message share it.
    pub id: MessageId,
    /// The function that sent the message, such as `run-saga`.
    pub source: String,
    /// The time of the fact that the message reports.
    pub time: Timestamp,
    /// The partition that the message belongs to.
    pub partition: PartitionKey,
    /// The message whose handling caused this one.
    pub causation_id: Option<MessageId>,
    /// The permission to process the message, if the consumer requires one.
    pub token: Option<Token>,
    /// The token that a reply must carry. Exactly one reply is admitted.
    pub reply_token: Option<Token>,
    /// The destination of a reply; `None` if it is the partition of this message.
    pub reply_to: Option<ReplyAddress>,
    /// The name of the timer that sent the message, if any.
    pub timer: Option<String>,
    /// The trace that the message belongs to.
    pub traceparent: Option<String>,
    /// The content of the message.
    pub body: Body,
}

/// The content of a message, unparsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The system that the message belongs to, such as `shop`.
    pub system: String,
    /// The message's name, such as `Paid`.
    pub name: String,
    /// The version of the message's data, from 1.
    pub version: u16,
    /// The data of the message.
    pub data: Json,
}

/// The envelope in its wire form.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Wire {
    specversion: String,
    id: MessageId,
    source: String,
    #[serde(rename = "type")]
    kind: String,
    time: Timestamp,
    datacontenttype: String,
    correlationid: PartitionKey,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    causationid: Option<MessageId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    replytoken: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    // The schema describes messages for other programs, and these are never requests between sagas.
    #[schemars(skip)]
    replyto: Option<ReplyAddress>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    timer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[schemars(with = "serde_json::Value")]
    data: Json,
}

impl Message {
    /// Returns the JSON Schema of all messages: a CloudEvent.
    pub fn schema() -> Schema {
        schema_for!(Wire)
    }

    /// Creates a message from outside the system: it has no cause and no token.
    pub fn new(id: MessageId, source: &str, partition: PartitionKey, time: Timestamp, body: Body) -> Self {
        Self {
            id,
            source: source.to_owned(),
            time,
            partition,
            causation_id: None,
            token: None,
            reply_token: None,
            reply_to: None,
            timer: None,
            traceparent: Some(Traceparent::of(partition, id.derive(0)).to_string()),
            body,
        }
    }

    /// Returns the message with the trace of the request that sends it, if there is such a request; see
    /// [`crate::trace::continued`].
    #[must_use]
    pub fn in_trace_of_request(self) -> Self {
        let parent = crate::trace::parent().map(|parent| parent.to_string());
        Self { traceparent: parent.or(self.traceparent), ..self }
    }

    /// Creates a message that the handling of this one causes, in its partition and its trace.
    #[must_use]
    pub fn caused_message(&self, id: MessageId, source: &str, time: Timestamp, body: Body) -> Self {
        Self {
            causation_id: Some(self.id),
            traceparent: Some(self.traceparent_of_effects().to_string()),
            ..Self::new(id, source, self.partition, time, body)
        }
    }

    /// Returns the message in another partition, such as that of another saga. The trace is continued.
    #[must_use]
    pub fn in_partition(self, partition: PartitionKey) -> Self {
        Self { partition, ..self }
    }

    /// Returns the partition that a reply goes to.
    pub fn reply_partition(&self) -> PartitionKey {
        self.reply_to.as_ref().map_or(self.partition, |address| address.partition)
    }

    /// Returns the trace context of the messages that a handler of this message sends.
    pub fn traceparent_of_effects(&self) -> Traceparent {
        match self.traceparent.as_deref().and_then(Traceparent::parse) {
            Some(parent) => parent.then(self.id),
            None => Traceparent::of(self.partition, self.id),
        }
    }

    /// Encodes the message as the body of a queue's message.
    ///
    /// # Errors
    /// Returns an error if the message cannot be represented, or exceeds [`MAX_BODY_BYTES`].
    pub fn encode(&self) -> Result<String, EncodeError> {
        let Body { system, name, version, data } = &self.body;
        let wire = Wire {
            specversion: SPEC_VERSION.to_owned(),
            id: self.id,
            source: format!("/{system}/{}", self.source),
            kind: format!("{system}.{name}.v{version}"),
            time: self.time,
            datacontenttype: "application/json".to_owned(),
            correlationid: self.partition,
            causationid: self.causation_id,
            token: self.token.as_ref().map(Token::to_string),
            replytoken: self.reply_token.as_ref().map(Token::to_string),
            replyto: self.reply_to.clone(),
            timer: self.timer.clone(),
            traceparent: self.traceparent.clone(),
            data: data.clone(),
        };
        let text = escape_noncharacters(serde_json::to_string(&wire)?);
        if text.len() > MAX_BODY_BYTES { Err(EncodeError::TooLarge(text.len())) } else { Ok(text) }
    }

    /// Decodes the envelope of a queue's message; its content stays unparsed.
    ///
    /// # Errors
    /// Returns an error if the text is malformed; a retry does not help.
    pub fn decode(text: &str) -> Result<Self, DecodeError> {
        if text.len() > MAX_BODY_BYTES {
            return Err(DecodeError::TooLarge(text.len()));
        }
        let wire = wire(text)?;
        let (system, name, version) =
            type_parts(&wire.kind).ok_or_else(|| DecodeError::UnknownType(shorten(&wire.kind)))?;
        let token_of = |partition: PartitionKey, text: Option<String>| {
            let token = text.map(|text| Token::parse(&text)).transpose().map_err(|_| DecodeError::Token)?;
            match token {
                Some(token) if !token.is_for(partition) => Err(DecodeError::ForeignToken(partition)),
                token => Ok(token),
            }
        };
        let replies_to = wire.replyto.as_ref().map_or(wire.correlationid, |address| address.partition);
        let function = wire.source.strip_prefix('/').and_then(|rest| rest.strip_prefix(system));
        let source = function.and_then(|rest| rest.strip_prefix('/')).unwrap_or(&wire.source);
        Ok(Self {
            id: wire.id,
            source: source.to_owned(),
            time: wire.time,
            partition: wire.correlationid,
            causation_id: wire.causationid,
            token: token_of(wire.correlationid, wire.token)?,
            reply_token: token_of(replies_to, wire.replytoken)?,
            reply_to: wire.replyto,
            timer: wire.timer,
            traceparent: wire.traceparent,
            body: Body { system: system.to_owned(), name: name.to_owned(), version, data: wire.data },
        })
    }
}

/// Escapes the two characters that SQS refuses and JSON does not escape. They occur only in texts
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>).
fn escape_noncharacters(text: String) -> String {
    match text.contains(['\u{fffe}', '\u{ffff}']) {
        true => text.replace('\u{fffe}', r"\ufffe").replace('\u{ffff}', r"\uffff"),
        false => text,
    }
}

/// Parses the envelope. On failure the body is parsed again with a slower parser that reports the reason.
fn wire(text: &str) -> Result<Wire, DecodeError> {
    if let Ok(wire) = serde_json::from_str::<Wire>(text)
        && wire.specversion == SPEC_VERSION
    {
        return Ok(wire);
    }
    let value: serde_json::Value = serde_json::from_str(text).map_err(DecodeError::NotJson)?;
    if value.get("specversion").and_then(|version| version.as_str()) != Some(SPEC_VERSION) {
        return Err(DecodeError::NotCloudEvent);
    }
    serde_json::from_value(value).map_err(DecodeError::Envelope)
}

/// Splits a type into system, name and version.
fn type_parts(kind: &str) -> Option<(&str, &str, u16)> {
    let (rest, version) = kind.rsplit_once(".v")?;
    let (system, name) = rest.rsplit_once('.')?;
    let version = version.parse().ok().filter(|version| *version > 0)?;
    (!system.is_empty() && !name.is_empty()).then_some((system, name, version))
}

fn shorten(text: &str) -> String {
    text.chars().take(100).collect()
}

/// The reason why a message cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The message cannot be represented in JSON.
    #[error("the message cannot be written as JSON")]
    Json(#[from] serde_json::Error),
    /// The message exceeds the limit of queues.
    #[error("the message has {0} bytes, more than the {MAX_BODY_BYTES} that a queue accepts")]
    TooLarge(usize),
}

/// The reason why a received body is not a message. Retrying does not help.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The body exceeds the limit, and was not parsed.
    #[error("the body has {0} bytes, more than the {MAX_BODY_BYTES} allowed")]
    TooLarge(usize),
    /// The body is not JSON.
    #[error("the body is not JSON")]
    NotJson(#[source] serde_json::Error),
    /// JSON, but not a CloudEvent of version 1.0.
    #[error("the body is not a CloudEvent of version {SPEC_VERSION}")]
    NotCloudEvent,
    /// A CloudEvent without an attribute that is required here, such as the partition in `correlationid`.
    #[error("the envelope is incomplete or malformed")]
    Envelope(#[source] serde_json::Error),
    /// A type that is not of the form `{system}.{name}.v{version}`.
    #[error("the type \"{0}\" is unknown")]
    UnknownType(String),
    /// A token of another system.
    #[error("the token is malformed")]
    Token,
    /// A token of another partition.
    #[error("the token is not one of partition {0}")]
    ForeignToken(PartitionKey),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Queue;
    use serde_json::json;
    use uuid::Uuid;

    fn message() -> Message {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(2));
        let body = Body {
            system: "shop".into(),
            name: "Paid".into(),
            version: 3,
            data: json!({ "cents": 100 }).into(),
        };
        Message {
            causation_id: Some(MessageId::from_uuid(Uuid::from_u128(3))),
            token: Some(Token::minted_at_entry(partition, Uuid::from_u128(4))),
            reply_token: Some(Token::minted_at_entry(partition, Uuid::from_u128(5))),
            timer: Some("payment".into()),
            ..Message::new(
                MessageId::from_uuid(Uuid::from_u128(1)),
                "run-saga",
                partition,
                "2026-01-02T03:04:05Z".parse().unwrap(),
                body,
            )
        }
    }

    #[test]
    fn body_has_only_characters_that_queues_accept() {
        let mut message = message();
        message.body.data = json!({ "name": "a\u{ffff}\u{fffe}\u{0}\\" }).into();
        let text = message.encode().unwrap();
        assert!(!text.contains(['\u{fffe}', '\u{ffff}', '\u{0}']), "{text}");
        assert_eq!(Message::decode(&text).unwrap(), message);
    }

    #[test]
    fn message_round_trips() {
        assert_eq!(Message::decode(&message().encode().unwrap()).unwrap(), message());
    }

    #[test]
    fn reply_token_belongs_to_partition_of_reply() {
        let other = PartitionKey::from_uuid(Uuid::from_u128(9));
        let reply_to = Some(ReplyAddress { queue: Queue::named("orders"), partition: other });
        let reply_token = Some(Token::minted_at_entry(other, Uuid::from_u128(5)));
        let request = Message { reply_to, reply_token: reply_token.clone(), ..message() };
        assert_eq!(Message::decode(&request.encode().unwrap()).unwrap(), request);
        assert_eq!((request.reply_partition(), message().reply_partition()), (other, message().partition));
        let without = Message { reply_token, ..message() };
        assert!(matches!(Message::decode(&without.encode().unwrap()), Err(DecodeError::ForeignToken(_))));
    }

    #[test]
    fn envelope_has_required_cloudevents_attributes() {
        let wire: serde_json::Value = serde_json::from_str(&message().encode().unwrap()).unwrap();
        assert_eq!(wire["specversion"], "1.0");
        assert_eq!(wire["type"], "shop.Paid.v3");
        assert_eq!(wire["source"], "/shop/run-saga");
        assert_eq!(wire["correlationid"], "00000000-0000-0000-0000-000000000002");
        assert!(wire["id"].is_string() && wire["data"].is_object());
    }

    #[test]
    fn unknown_name_or_version_is_decoded() {
        let good = message().encode().unwrap();
        let read = |to| Message::decode(&good.replacen("shop.Paid.v3", to, 1)).map(|message| message.body);
        assert_eq!(read("shop.Refunded.v9").unwrap().version, 9);
        assert_eq!(read("net.shop.Paid.v1").unwrap().system, "net.shop");
        for malformed in ["Paid.v1", "shop.Paid", "shop.Paid.v0", "shop.Paid.v99999", ".Paid.v1", "shop..v1"]
        {
            assert!(matches!(read(malformed), Err(DecodeError::UnknownType(_))), "{malformed}");
        }
    }

    #[test]
    fn hostile_bodies_are_refused_with_reason() {
        let good = message().encode().unwrap();
        let with = |from: &str, to: &str| Message::decode(&good.replacen(from, to, 1)).unwrap_err();
        assert!(matches!(Message::decode("\u{0}junk").unwrap_err(), DecodeError::NotJson(_)));
        assert!(matches!(Message::decode(&"[".repeat(100_000)).unwrap_err(), DecodeError::NotJson(_)));
        assert!(matches!(Message::decode("{}").unwrap_err(), DecodeError::NotCloudEvent));
        assert!(matches!(
            Message::decode(&"x".repeat(MAX_BODY_BYTES + 1)).unwrap_err(),
            DecodeError::TooLarge(_)
        ));
        assert!(matches!(with("correlationid", "other"), DecodeError::Envelope(_)));
        assert!(matches!(with("\"s:", "\"zz:"), DecodeError::Token));
        assert!(matches!(with("\"s:000000000002:", "\"s:000000000003:"), DecodeError::ForeignToken(_)));
    }
}
