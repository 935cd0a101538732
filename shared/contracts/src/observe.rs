//! What is told about each message: by whom it was handled, what was decided, and why.
//!
//! An observation is for people. Nothing depends on its arrival, so observing neither fails nor waits.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::ids::{MessageId, SearchId};

/// One line of the decision log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// When.
    pub at: Timestamp,
    /// By which function.
    pub function: String,
    /// Of which search; none when the message does not say.
    pub search_id: Option<SearchId>,
    /// The message; none when it could not be read.
    pub message_id: Option<MessageId>,
    /// The message's name, such as `SearchUploadSaved`; empty when it could not be read.
    pub message: String,
    /// What was decided.
    pub verdict: Verdict,
    /// Why, or what came of it.
    pub why: String,
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

/// Takes note of decisions.
pub trait Observe: Send + Sync {
    /// Takes note of one.
    fn observe(&self, observation: Observation);
}

impl<O: Observe + ?Sized> Observe for std::sync::Arc<O> {
    fn observe(&self, observation: Observation) {
        (**self).observe(observation);
    }
}

impl Observe for () {
    fn observe(&self, _: Observation) {}
}
