//! The trace context of messages: W3C Trace Context (<https://www.w3.org/TR/trace-context/#traceparent-header>),
//! carried in the CloudEvents extension `traceparent`.
//!
//! All ids are derived and none is random: the trace id of a partition is the partition's key, and the span id of the
//! handling of a message is the lower half of the message's id. Messages of one saga that arrive independently
//! therefore share a trace, and a repeated effect has the same parent.

use std::fmt;

use crate::ids::{MessageId, PartitionKey};

/// A span as the parent of other spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    /// The trace; never 0.
    pub trace: u128,
    /// The span; never 0.
    pub span: u64,
}

impl Traceparent {
    /// Returns the span in which a message is handled, in the trace of its partition.
    pub fn of(partition: PartitionKey, message: MessageId) -> Self {
        Self { trace: partition.as_uuid().as_u128().max(1), span: span_of(message) }
    }

    /// Parses the header; returns none for an unknown version or form.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_once('-')?;
        let (trace, rest) = rest.split_once('-')?;
        let (span, flags) = rest.split_once('-')?;
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if version != "00" || !is_hex(trace, 32) || !is_hex(span, 16) || !is_hex(flags, 2) {
            return None;
        }
        let (trace, span) = (u128::from_str_radix(trace, 16).ok()?, u64::from_str_radix(span, 16).ok()?);
        (trace != 0 && span != 0).then_some(Self { trace, span })
    }

    /// Returns the span in which `message` is handled, in this trace.
    pub fn then(self, message: MessageId) -> Self {
        Self { span: span_of(message), ..self }
    }
}

/// A UUID's lower half begins with its variant, so it is never 0.
fn span_of(message: MessageId) -> u64 {
    message.as_uuid().as_u64_pair().1.max(1)
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-01", self.trace, self.span)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_traceparent_reads_back_as_what_it_was_written_from() {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(0x0199_b6d0_7d5e_7a3c_8f21_6a1f_0c9e_4b11));
        let message = MessageId::from_uuid(Uuid::from_u128(0x0199_b6d0_7d61_7d00_b000_0000_0000_0010));
        let parent = Traceparent::of(partition, message);
        assert_eq!(parent.to_string(), "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01");
        assert_eq!(Traceparent::parse(&parent.to_string()), Some(parent));
    }

    #[test]
    fn what_the_standard_forbids_is_none() {
        let good = "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01";
        assert!(Traceparent::parse(good).is_some());
        for (from, to) in
            [("00-0", "ff-0"), ("0199b", "0199B"), ("b000000000000010", "0000000000000000"), ("-01", "")]
        {
            assert_eq!(Traceparent::parse(&good.replacen(from, to, 1)), None, "{from} -> {to}");
        }
        assert_eq!(Traceparent::parse("00-1-2-01"), None);
    }
}
