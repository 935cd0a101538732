//! Message attributes: information about a message that is available without reading its body.

use std::collections::HashMap;

use aws_sdk_sqs::types::MessageAttributeValue;
use serde::Deserialize;

/// The largest message, attributes included, and the largest batch, in bytes
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>).
pub(crate) const MAX_BYTES: usize = 1024 * 1024;
/// The reason why a message is in a dead-letter queue.
pub const DEAD_LETTER_REASON: &str = "dead_letter_reason";
/// The maximum length of a reason, which suffices for an operator. Longer reasons are truncated.
const MAX_REASON_CHARS: usize = 1_000;

/// The names and values of attributes of type text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Attributes(Vec<(&'static str, String)>);

#[derive(Deserialize)]
struct Envelope {
    #[serde(rename = "type")]
    kind: Option<String>,
    traceparent: Option<String>,
}

impl Attributes {
    /// Returns the type and the trace of a message, both from its envelope. A body without an envelope has no
    /// attributes.
    pub(crate) fn of(body: &str) -> Self {
        let Ok(envelope) = serde_json::from_str::<Envelope>(body) else { return Self::default() };
        let pairs = [("type", envelope.kind), ("traceparent", envelope.traceparent)];
        let present = pairs.into_iter().filter_map(|(name, value)| Some((name, sendable(&value?)?)));
        Self(present.collect()).fitting(body)
    }

    /// Returns these attributes with the reason why the message is dead-lettered.
    pub(crate) fn with_reason(mut self, reason: &str, body: &str) -> Self {
        self.0.extend(sendable(reason).map(|reason| (DEAD_LETTER_REASON, reason)));
        self.fitting(body)
    }

    /// Returns no attributes if they would exceed the maximum size of a message: the message must arrive, the
    /// attributes need not.
    fn fitting(self, body: &str) -> Self {
        if body.len() + self.bytes() > MAX_BYTES { Self::default() } else { self }
    }

    /// Returns the size that the attributes add to a message: name, type and value of each.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.len() + "String".len() + value.len()).sum()
    }

    /// Returns the attributes as the AWS client represents them.
    pub(crate) fn values(self) -> Option<HashMap<String, MessageAttributeValue>> {
        let value =
            |text| MessageAttributeValue::builder().data_type("String").string_value(text).build().ok();
        let values: HashMap<_, _> =
            self.0.into_iter().filter_map(|(name, text)| Some((name.to_owned(), value(text)?))).collect();
        (!values.is_empty()).then_some(values)
    }
}

/// Returns a text of limited length without the characters that SQS refuses, or `None` if nothing remains, because SQS
/// also refuses empty values
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html>).
fn sendable(text: &str) -> Option<String> {
    let allowed = |c: &char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    let text: String = text.chars().filter(allowed).take(MAX_REASON_CHARS).collect();
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(attributes: &Attributes) -> Vec<(&str, &str)> {
        attributes.0.iter().map(|(name, value)| (*name, value.as_str())).collect()
    }

    #[test]
    fn attributes_have_type_and_trace() {
        let attributes =
            Attributes::of(r#"{"type": "search-import.X.v1", "traceparent": "00-1-2-01", "id": 3}"#);
        assert_eq!(pairs(&attributes), [("type", "search-import.X.v1"), ("traceparent", "00-1-2-01")]);
        assert_eq!(attributes.bytes(), 4 + 6 + 18 + 11 + 6 + 9);
    }

    #[test]
    fn other_bodies_have_no_attributes() {
        for body in ["junk", "{}", "[1]", r#"{"type": ""}"#, r#"{"type": 7}"#] {
            assert_eq!(Attributes::of(body), Attributes::default(), "{body}");
        }
    }

    #[test]
    fn reason_is_sanitized_and_truncated() {
        let reason = format!("\u{0}bad\u{1} {}", "x".repeat(2_000));
        let attributes = Attributes::of("junk").with_reason(&reason, "junk");
        let [(name, value)] = pairs(&attributes)[..] else { panic!("{attributes:?}") };
        assert!(name == DEAD_LETTER_REASON && value.starts_with("bad x") && value.len() == 1_000);
        assert_eq!(Attributes::of("junk").with_reason("", "junk"), Attributes::default());
    }

    #[test]
    fn largest_message_has_no_attributes() {
        let body = "x".repeat(MAX_BYTES);
        assert_eq!(Attributes::of(&body).with_reason("why", &body), Attributes::default());
    }
}
