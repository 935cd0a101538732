//! Decisions about messages: the function, the decision and the reason.
//!
//! Observations are for operators. No guarantee depends on them, so observing neither fails nor waits.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::delivery::{Backoff, DEADLINE_NEAR, Delivery, Disposition, LAST_FAULTY_DELIVERY};
use crate::host::Host;
use crate::ids::{MessageId, PartitionKey};
use crate::message::Message;
use crate::payload::ReadError;
use crate::store::chain;
use crate::trace::Traceparent;

/// A line of the decision log. `V` is the verdict of this version, or the recorded one, which may be of a newer
/// version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRecord<V = Verdict> {
    /// The time.
    pub at: Timestamp,
    /// The function that decided.
    pub function: String,
    /// The partition; `None` if the message names none.
    #[serde(rename = "search_id")]
    pub partition: Option<PartitionKey>,
    /// The id of the message; `None` if the message could not be read.
    pub message_id: Option<MessageId>,
    /// The message's name, such as `Paid`; empty if it could not be read.
    pub message: String,
    /// The verdict.
    pub verdict: V,
    /// The reason or the result.
    pub why: String,
    /// The function that sent the message; empty if it could not be read.
    #[serde(default)]
    pub source: String,
    /// The message's own trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// The time at which the handling of the message began, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    /// The receive count of the message, including this delivery, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The state of the partition at the decision, if a state machine decided and names its states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl<V> DecisionRecord<V> {
    /// Returns the trace that the decision belongs to: the trace that the message names, or the trace of its partition.
    pub fn trace(&self) -> Option<u128> {
        let named = self.traceparent.as_deref().and_then(Traceparent::parse).map(|sender| sender.trace);
        named.or_else(|| Some(Traceparent::of(self.partition?, self.message_id?).trace))
    }
}

/// A metric in addition to the decisions, identified by its name. Applications may add their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Metric(pub &'static str);

impl Metric {
    /// Calls of the stores of documents, views and partitions.
    pub const STORAGE_CALLS: Self = Self("StorageCalls");
    /// The time in seconds for which an outbox entry was due when a sweep found it.
    pub const OUTBOX_AGE: Self = Self("OutboxAge");
    /// The maximum receive count of the retried messages, including this delivery.
    pub const RETRIED_DELIVERIES: Self = Self("RetriedDeliveries");
    /// Exhausted outbox entries: they failed for too long, can never succeed, or cannot be read.
    pub const POISONED_ENTRIES: Self = Self("PoisonedEntries");
    /// Attempts at a partition that another worker changed concurrently.
    pub const CONFLICTS: Self = Self("Conflicts");
    /// Attempts at a partition that another worker held.
    pub const BUSY_PARTITIONS: Self = Self("BusyPartitions");
    /// Attempts whose loaded document was outdated.
    pub const STALE_LOADS: Self = Self("StaleLoads");

    /// Returns its name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// Reports the decisions of one function.
#[derive(Clone)]
pub struct Reporter {
    /// The function's name.
    pub function: &'static str,
    /// The clock.
    pub host: Arc<dyn Host>,
    /// The observer that receives the decisions.
    pub observer: Arc<dyn DecisionSink>,
    /// The time at which the handling began, if known.
    pub began_at: Option<Timestamp>,
    /// The receive count of the message, if known.
    pub attempt: Option<u32>,
    /// The state of the partition, if a state machine decided.
    pub state: Option<&'static str>,
}

impl Reporter {
    /// Returns a reporter for handling that begins now.
    #[must_use]
    pub fn started_now(&self) -> Self {
        Self { began_at: Some(self.host.now()), ..self.clone() }
    }

    /// Returns a reporter for a message with this receive count.
    #[must_use]
    pub fn with_receive_count(&self, times: u32) -> Self {
        Self { attempt: Some(times), ..self.clone() }
    }

    /// Returns a reporter for a decision in this state of a partition.
    #[must_use]
    pub fn in_state(&self, state: Option<&'static str>) -> Self {
        Self { state, ..self.clone() }
    }

    /// Adds to a metric.
    pub fn measure(&self, measure: Metric, value: u64) {
        self.observer.measure(measure, value);
    }

    /// Records a decision about a message; `None` if it could not be read.
    pub fn note(&self, message: Option<&Message>, verdict: Verdict, why: &str) {
        self.observer.observe(DecisionRecord {
            at: self.host.now(),
            function: self.function.to_owned(),
            partition: message.map(|message| message.partition),
            message_id: message.map(|message| message.id),
            message: message.map_or_else(String::new, |message| message.body.name.clone()),
            verdict,
            why: why.to_owned(),
            source: message.map_or_else(String::new, |message| message.source.clone()),
            traceparent: message.and_then(|message| message.traceparent.clone()),
            began_at: self.began_at,
            attempt: self.attempt,
            state: self.state.map(str::to_owned),
        });
    }

    /// Records that a message is malformed, and dead-letters it.
    pub fn reject(&self, message: Option<&Message>, reason: String) -> Disposition {
        self.note(message, Verdict::Rejected, &reason);
        Disposition::DeadLetter { reason }
    }

    /// Records that a message could not be handled now, and retries it.
    pub fn retry(&self, message: &Message, backoff: Backoff, received: u32, reason: String) -> Disposition {
        self.again(Some(message), backoff, received, reason)
    }

    /// Records that the deadline of the function is near, and retries the message without a delay in the next
    /// invocation: the message is not at fault.
    pub fn retry_late(&self, message: &Message, received: u32) -> Disposition {
        self.retry(message, Backoff::NONE, received, DEADLINE_NEAR.to_owned())
    }

    /// Records that a message could not be handled now, and retries it after a delay that the failed service asked for.
    pub fn retry_after(
        &self,
        message: &Message,
        after: Duration,
        received: u32,
        reason: String,
    ) -> Disposition {
        self.with_receive_count(received).note(Some(message), Verdict::Retried, &reason);
        Disposition::Retry { after, reason }
    }

    /// Records that a message failed although it was handled alone: its handler panics, or one of its effects cannot be
    /// stored. Retries it, and dead-letters it from delivery [`LAST_FAULTY_DELIVERY`] on.
    pub fn faulty(&self, message: Option<&Message>, received: u32, reason: String) -> Disposition {
        if received >= LAST_FAULTY_DELIVERY {
            return self.with_receive_count(received).reject(message, reason);
        }
        self.again(message, Backoff::FAILURE, received, reason)
    }

    fn again(
        &self,
        message: Option<&Message>,
        backoff: Backoff,
        received: u32,
        reason: String,
    ) -> Disposition {
        self.with_receive_count(received).note(message, Verdict::Retried, &reason);
        Disposition::Retry { after: backoff.after(received, self.host.unit_random()), reason }
    }

    /// Returns the message of a delivery and its content, parsed by `read`. A message of a newer version waits for the
    /// upgrade; any other unreadable message is dead-lettered.
    ///
    /// # Errors
    /// Returns an error if it cannot be read; the error is the answer to the delivery.
    pub fn read<T>(
        &self,
        delivery: &Delivery,
        read: impl FnOnce(&Message) -> Result<T, ReadError>,
    ) -> Result<(Message, T), Disposition> {
        let received = self.with_receive_count(delivery.receive_count);
        let message =
            Message::decode(&delivery.body).map_err(|error| received.reject(None, chain(&error)))?;
        match read(&message) {
            Ok(said) => Ok((message, said)),
            Err(error) if error.awaits_upgrade() => {
                Err(self.retry(&message, Backoff::UPGRADE, delivery.receive_count, chain(&error)))
            }
            Err(error) => Err(received.reject(Some(&message), chain(&error))),
        }
    }
}

/// The decision about a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The message changed the state, or its handler completed.
    Handled,
    /// The message was processed before.
    Duplicate,
    /// The message is expected, but changes nothing.
    Ignored,
    /// The message had changed the state before a crash; the remaining steps were completed.
    Recovered,
    /// The message is malformed, and is dead-lettered.
    Rejected,
    /// The message could not be handled now, and is retried.
    Retried,
    /// The message was sent from an outbox.
    Dispatched,
}

impl Verdict {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Duplicate => "duplicate",
            Self::Ignored => "ignored",
            Self::Recovered => "recovered",
            Self::Rejected => "rejected",
            Self::Retried => "retried",
            Self::Dispatched => "dispatched",
        }
    }
}

/// A recorded decision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RecordedVerdict {
    /// A verdict of this version.
    Known(Verdict),
    /// A verdict of a newer version, by its name.
    Later(String),
}

impl RecordedVerdict {
    /// Returns the verdict if this version knows it.
    pub fn known(&self) -> Option<Verdict> {
        match self {
            Self::Known(verdict) => Some(*verdict),
            Self::Later(_) => None,
        }
    }

    /// Returns its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(verdict) => verdict.name(),
            Self::Later(name) => name,
        }
    }
}

impl PartialEq<Verdict> for RecordedVerdict {
    fn eq(&self, verdict: &Verdict) -> bool {
        matches!(self, Self::Known(known) if known == verdict)
    }
}

impl From<DecisionRecord> for DecisionRecord<RecordedVerdict> {
    fn from(observation: DecisionRecord) -> Self {
        Self {
            at: observation.at,
            function: observation.function,
            partition: observation.partition,
            message_id: observation.message_id,
            message: observation.message,
            verdict: RecordedVerdict::Known(observation.verdict),
            why: observation.why,
            source: observation.source,
            traceparent: observation.traceparent,
            began_at: observation.began_at,
            attempt: observation.attempt,
            state: observation.state,
        }
    }
}

/// Receives decisions.
#[async_trait]
pub trait DecisionSink: Send + Sync {
    /// Receives a decision.
    fn observe(&self, observation: DecisionRecord);

    /// Adds to a metric.
    fn measure(&self, _measure: Metric, _value: u64) {}

    /// Delivers the collected decisions and metrics. A function waits for this at the end of each invocation, because
    /// Lambda freezes its process in between.
    async fn flush(&self) {}
}

#[async_trait]
impl<O: DecisionSink + ?Sized> DecisionSink for Arc<O> {
    fn observe(&self, observation: DecisionRecord) {
        (**self).observe(observation);
    }

    fn measure(&self, measure: Metric, value: u64) {
        (**self).measure(measure, value);
    }

    async fn flush(&self) {
        (**self).flush().await;
    }
}

impl DecisionSink for () {
    fn observe(&self, _: DecisionRecord) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_verdict_is_read_by_name() {
        let read = |text: &str| serde_json::from_str::<RecordedVerdict>(text).unwrap();
        assert_eq!(read("\"handled\""), Verdict::Handled);
        let later = read("\"postponed\"");
        assert_eq!((&later, later.name()), (&RecordedVerdict::Later("postponed".to_owned()), "postponed"));
    }
}
