//! The trace context of messages: W3C Trace Context (<https://www.w3.org/TR/trace-context/#traceparent-header>),
//! carried in the CloudEvents extension `traceparent`.
//!
//! A message that a request sends continues the trace of that request, see [`continued`]. Otherwise all ids are derived
//! and none is random: the trace id of a partition is the partition's key, and the span id of the
//! handling of a message is the lower half of the message's id. Messages of one saga that arrive independently
//! therefore share a trace, and a repeated effect has the same parent.

use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;

use crate::ids::{MessageId, PartitionKey};

thread_local! {
    /// The parent of the messages that the polled future sends.
    static PARENT: Cell<Option<Traceparent>> = const { Cell::new(None) };
}

/// Runs a future whose sessions and direct sends continue the trace of a request. Tasks that the future spawns do not
/// continue it. Without a parent, messages begin the traces of their partitions.
pub async fn continued<F: Future>(parent: Option<Traceparent>, future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _restore = Restore(PARENT.replace(parent));
        future.as_mut().poll(context)
    })
    .await
}

/// Returns the parent of the messages that the current future sends; see [`continued`].
pub fn parent() -> Option<Traceparent> {
    PARENT.get()
}

/// Restores the previous parent, even if the future panics.
struct Restore(Option<Traceparent>);

impl Drop for Restore {
    fn drop(&mut self) {
        PARENT.set(self.0);
    }
}

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

    /// Returns the parent that the headers of a request name. Several headers are ambiguous, and count as none.
    pub fn of_headers<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        match (values.next(), values.next()) {
            (Some(value), None) => Self::parse(std::str::from_utf8(value).ok()?),
            _ => None,
        }
    }

    /// Parses the header; returns none for an invalid form. Later versions may append fields, which are ignored, as the
    /// standard requires.
    pub fn parse(text: &str) -> Option<Self> {
        let (version, rest) = text.split_once('-')?;
        let (trace, rest) = rest.split_once('-')?;
        let (span, rest) = rest.split_once('-')?;
        let flags = match rest.split_once('-') {
            Some((flags, _)) if version != "00" => flags,
            _ => rest,
        };
        let is_hex = |text: &str, digits| {
            text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        if !is_hex(version, 2)
            || version == "ff"
            || !is_hex(trace, 32)
            || !is_hex(span, 16)
            || !is_hex(flags, 2)
        {
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
    fn traceparent_round_trips() {
        let partition = PartitionKey::from_uuid(Uuid::from_u128(0x0199_b6d0_7d5e_7a3c_8f21_6a1f_0c9e_4b11));
        let message = MessageId::from_uuid(Uuid::from_u128(0x0199_b6d0_7d61_7d00_b000_0000_0000_0010));
        let parent = Traceparent::of(partition, message);
        assert_eq!(parent.to_string(), "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01");
        assert_eq!(Traceparent::parse(&parent.to_string()), Some(parent));
    }

    #[test]
    fn forbidden_traceparent_is_rejected() {
        let good = "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01";
        assert!(Traceparent::parse(good).is_some());
        for (from, to) in
            [("00-0", "ff-0"), ("0199b", "0199B"), ("b000000000000010", "0000000000000000"), ("-01", "")]
        {
            assert_eq!(Traceparent::parse(&good.replacen(from, to, 1)), None, "{from} -> {to}");
        }
        assert_eq!(Traceparent::parse("00-1-2-01"), None);
        assert_eq!(Traceparent::parse(&format!("{good}-extra")), None);
    }

    #[test]
    fn newer_traceparent_versions_are_accepted() {
        let good = "00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01";
        let parent = Traceparent::parse(good);
        assert_eq!(Traceparent::parse(&good.replacen("00-", "01-", 1)), parent);
        assert_eq!(Traceparent::parse(&format!("{}-extra", good.replacen("00-", "01-", 1))), parent);
    }

    #[test]
    fn malformed_headers_name_no_parent() {
        let good = b"00-0199b6d07d5e7a3c8f216a1f0c9e4b11-b000000000000010-01".as_slice();
        assert!(Traceparent::of_headers([good].into_iter()).is_some());
        assert_eq!(Traceparent::of_headers([good, good].into_iter()), None);
        assert_eq!(Traceparent::of_headers([].into_iter()), None);
        for wrong in
            [b"".as_slice(), b"\xff\xfe", b"00-", b"00-\xc3\xa9-b000000000000010-01", &[b'0'; 100_000]]
        {
            assert_eq!(Traceparent::of_headers([wrong].into_iter()), None);
        }
    }

    #[test]
    fn polled_future_determines_parent() {
        use std::pin::Pin;
        use std::task::{Context, Poll, Waker};

        let named = |span| Some(Traceparent { trace: 1, span });
        let paused =
            |span| {
                let mut is_first = true;
                Box::pin(continued(
                    named(span),
                    poll_fn(move |_| {
                        if std::mem::take(&mut is_first) { Poll::Pending } else { Poll::Ready(parent()) }
                    }),
                ))
            };
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |future: &mut Pin<Box<dyn Future<Output = Option<Traceparent>>>>| {
            future.as_mut().poll(&mut context)
        };
        let mut first: Pin<Box<dyn Future<Output = _>>> = paused(1);
        let mut second: Pin<Box<dyn Future<Output = _>>> = paused(2);
        assert_eq!((poll(&mut first), poll(&mut second)), (Poll::Pending, Poll::Pending));
        assert_eq!(parent(), None);
        assert_eq!((poll(&mut second), poll(&mut first)), (Poll::Ready(named(2)), Poll::Ready(named(1))));
        assert_eq!(parent(), None);
    }
}
