//! What is told about each message: by whom it was handled, what was decided, and why.
//!
//! An observation is for people. Nothing depends on its arrival, so observing neither fails nor waits.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::delivery::{Backoff, Delivery, Disposition, LAST_FAULTY_DELIVERY};
use crate::host::Host;
use crate::ids::{MessageId, PartitionKey};
use crate::message::Message;
use crate::payload::ReadError;
use crate::store::chain;
use crate::trace::Traceparent;

/// One line of the decision log, with a verdict of this release; or with what the log says, which may be of a later one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation<V = Verdict> {
    /// When.
    pub at: Timestamp,
    /// By which function.
    pub function: String,
    /// Of which partition; none when the message does not say.
    #[serde(rename = "search_id")]
    pub partition: Option<PartitionKey>,
    /// The message; none when it could not be read.
    pub message_id: Option<MessageId>,
    /// The message's name, such as `Paid`; empty when it could not be read.
    pub message: String,
    /// What was decided.
    pub verdict: V,
    /// Why, or what came of it.
    pub why: String,
    /// Which function sent the message; empty when it could not be read.
    #[serde(default)]
    pub source: String,
    /// The message's own trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traceparent: Option<String>,
    /// When the handling of the message began, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_at: Option<Timestamp>,
    /// How often the message had been received, this time included, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// The state in which the partition was when it was decided, where a state machine was asked and names its states.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
}

impl<V> Observation<V> {
    /// The trace that it belongs to: the one that the message names, or that of its partition.
    pub fn trace(&self) -> Option<u128> {
        let named = self.traceparent.as_deref().and_then(Traceparent::parse).map(|sender| sender.trace);
        named.or_else(|| Some(Traceparent::of(self.partition?, self.message_id?).trace))
    }
}

/// Something that is counted beside the decisions, by its name. Applications add their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Measure(pub &'static str);

impl Measure {
    /// Calls of a store of documents, views or partitions.
    pub const STORAGE_CALLS: Self = Self("StorageCalls");
    /// How long an outbox entry that a sweep found had been due, in seconds.
    pub const OUTBOX_AGE: Self = Self("OutboxAge");
    /// How often the message had been received that comes again and had been received most often, this time included.
    pub const RETRIED_DELIVERIES: Self = Self("RetriedDeliveries");
    /// Outbox entries that were given up: they failed for too long, can never succeed, or cannot be read.
    pub const POISONED_ENTRIES: Self = Self("PoisonedEntries");
    /// Attempts at a partition that another worker had changed in between.
    pub const CONFLICTS: Self = Self("Conflicts");
    /// Attempts at a partition that another worker was inside.
    pub const BUSY_PARTITIONS: Self = Self("BusyPartitions");
    /// Attempts that found the document which they had loaded to be an earlier version.
    pub const STALE_LOADS: Self = Self("StaleLoads");

    /// Its name.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// Takes notes on behalf of one function.
#[derive(Clone)]
pub struct Reporter {
    /// The function's name.
    pub function: &'static str,
    /// Time.
    pub host: Arc<dyn Host>,
    /// Who wants to know.
    pub observer: Arc<dyn Observe>,
    /// When the handling of what it is about began, where that is known.
    pub began_at: Option<Timestamp>,
    /// How often that was received, where that is known.
    pub attempt: Option<u32>,
    /// In which state that found its partition, where a state machine was asked.
    pub state: Option<&'static str>,
}

impl Reporter {
    /// One for what begins now.
    #[must_use]
    pub fn beginning(&self) -> Self {
        Self { began_at: Some(self.host.now()), ..self.clone() }
    }

    /// One for a message that was received this often.
    #[must_use]
    pub fn received(&self, times: u32) -> Self {
        Self { attempt: Some(times), ..self.clone() }
    }

    /// One for a decision that was made in this state of a partition.
    #[must_use]
    pub fn in_state(&self, state: Option<&'static str>) -> Self {
        Self { state, ..self.clone() }
    }

    /// Adds to what is counted.
    pub fn measure(&self, measure: Measure, value: u64) {
        self.observer.measure(measure, value);
    }

    /// Takes note of a decision about a message, or about one that could not be read.
    pub fn note(&self, message: Option<&Message>, verdict: Verdict, why: &str) {
        self.observer.observe(Observation {
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

    /// Takes note that a delivery is wrong in itself, and sends it to the dead letters.
    pub fn reject(&self, message: Option<&Message>, reason: String) -> Disposition {
        self.note(message, Verdict::Rejected, &reason);
        Disposition::DeadLetter { reason }
    }

    /// Takes note that a message could not be handled now, and has it delivered again.
    pub fn retry(&self, message: &Message, backoff: Backoff, received: u32, reason: String) -> Disposition {
        self.again(Some(message), backoff, received, reason)
    }

    /// Takes note that a message failed by itself, worked on alone: its handler panics, or one of its effects cannot be
    /// stored. Has it delivered again, and dead-letters it from delivery [`LAST_FAULTY_DELIVERY`] on.
    pub fn faulty(&self, message: Option<&Message>, received: u32, reason: String) -> Disposition {
        if received >= LAST_FAULTY_DELIVERY {
            return self.received(received).reject(message, reason);
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
        self.received(received).note(message, Verdict::Retried, &reason);
        Disposition::Retry { after: backoff.after(received, self.host.unit_random()), reason }
    }

    /// The message that a delivery brings and what it says, which `read` knows; or what is to become of one that
    /// cannot be read. What a later release knows waits for it; anything else is wrong in itself.
    ///
    /// # Errors
    /// When it cannot be read; with the answer to the delivery.
    pub fn read<T>(
        &self,
        delivery: &Delivery,
        read: impl FnOnce(&Message) -> Result<T, ReadError>,
    ) -> Result<(Message, T), Disposition> {
        let received = self.received(delivery.receive_count);
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

/// What was decided about one copy of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It changed the state, or its handler did its work.
    Handled,
    /// It was processed before, and is dropped.
    Duplicate,
    /// It is expected, but changes nothing.
    Ignored,
    /// It had changed the state before a crash; what was left to do was done.
    Recovered,
    /// It is wrong in itself and goes to the dead-letter queue.
    Rejected,
    /// It could not be handled now and comes again.
    Retried,
    /// It was sent from an outbox.
    Dispatched,
}

impl Verdict {
    /// Its name.
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

/// What was decided, as it was written down.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Noted {
    /// A verdict of this release.
    Known(Verdict),
    /// One of a later release, by its name.
    Later(String),
}

impl Noted {
    /// The verdict, if this release knows it.
    pub fn known(&self) -> Option<Verdict> {
        match self {
            Self::Known(verdict) => Some(*verdict),
            Self::Later(_) => None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        match self {
            Self::Known(verdict) => verdict.name(),
            Self::Later(name) => name,
        }
    }
}

impl PartialEq<Verdict> for Noted {
    fn eq(&self, verdict: &Verdict) -> bool {
        matches!(self, Self::Known(known) if known == verdict)
    }
}

impl From<Observation> for Observation<Noted> {
    fn from(observation: Observation) -> Self {
        Self {
            at: observation.at,
            function: observation.function,
            partition: observation.partition,
            message_id: observation.message_id,
            message: observation.message,
            verdict: Noted::Known(observation.verdict),
            why: observation.why,
            source: observation.source,
            traceparent: observation.traceparent,
            began_at: observation.began_at,
            attempt: observation.attempt,
            state: observation.state,
        }
    }
}

/// Takes note of decisions.
#[async_trait]
pub trait Observe: Send + Sync {
    /// Takes note of one.
    fn observe(&self, observation: Observation);

    /// Adds to what is counted.
    fn measure(&self, _measure: Measure, _value: u64) {}

    /// Brings what it has collected to where it belongs. A function waits for this at the end of each invocation,
    /// because between two of them its process stands still.
    async fn flush(&self) {}
}

#[async_trait]
impl<O: Observe + ?Sized> Observe for Arc<O> {
    fn observe(&self, observation: Observation) {
        (**self).observe(observation);
    }

    fn measure(&self, measure: Measure, value: u64) {
        (**self).measure(measure, value);
    }

    async fn flush(&self) {
        (**self).flush().await;
    }
}

impl Observe for () {
    fn observe(&self, _: Observation) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_of_a_later_release_is_read_by_its_name() {
        let read = |text: &str| serde_json::from_str::<Noted>(text).unwrap();
        assert_eq!(read("\"handled\""), Verdict::Handled);
        let later = read("\"postponed\"");
        assert_eq!((&later, later.name()), (&Noted::Later("postponed".to_owned()), "postponed"));
    }
}
