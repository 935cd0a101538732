//! What a transition answers.

use contracts::message::StartParsing;
use contracts::{Body, Job, TimeoutId};
use jiff::Timestamp;

use crate::state::State;

/// What is to become of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// The state changes, and the effects are stored with it in one write.
    Advance {
        /// The state from now on.
        next: Box<State>,
        /// What is to be done, in this order.
        effects: Vec<Effect>,
        /// Why, for the decision log.
        note: String,
    },
    /// Nothing changes. Not an error: duplicates and latecomers are expected.
    Ignore {
        /// Why, for the decision log.
        reason: String,
    },
    /// The message is wrong in itself. It is never tried again but kept in the dead-letter queue.
    Reject {
        /// Why, for the decision log and the operator.
        reason: String,
    },
}

impl Decision {
    pub(crate) fn ignore(reason: impl Into<String>) -> Self {
        Self::Ignore { reason: reason.into() }
    }
}

/// What a transition wants done, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Show the import's reader this state. Safe to repeat, guarded by the job's revision.
    WriteJob(Box<Job>),
    /// Have one file read. The shell fills in the reply token.
    StartParsing(StartParsing),
    /// Tell the world.
    Publish(Box<Body>),
    /// Send `UploadTimeout` at a later time, unless cancelled before.
    ScheduleTimeout {
        /// Its name; the event will carry it.
        timeout_id: TimeoutId,
        /// When it is due.
        due_at: Timestamp,
    },
    /// Forget a scheduled timeout.
    CancelTimeout {
        /// Its name.
        timeout_id: TimeoutId,
    },
}

impl Effect {
    /// Whether performing it needs a token of its own, because it makes somebody answer this search.
    pub fn needs_token(&self) -> bool {
        matches!(self, Self::StartParsing(_) | Self::ScheduleTimeout { .. })
    }

    /// Its name, for tables and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::WriteJob(_) => "write job",
            Self::StartParsing(_) => "start parsing",
            Self::Publish(body) => body.name(),
            Self::ScheduleTimeout { .. } => "schedule timeout",
            Self::CancelTimeout { .. } => "cancel timeout",
        }
    }
}
