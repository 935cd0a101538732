//! What may be set.

use std::time::Duration;

use jiff::SignedDuration;
use messages::QueueSpec;

/// What may be set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The queues there are, how often each delivers a message, and where it puts what it gives up.
    pub queues: &'static [QueueSpec],
    /// How long the document of a partition that has ended stays: 7 days, so that late duplicates meet it.
    pub saga_retention: SignedDuration,
    /// How long the record of a session stays once it is settled: 7 days. A commit that is repeated later than that
    /// does not exist; no client waits that long for an answer.
    pub outbox_retention: SignedDuration,
    /// Whether decisions are kept: they are.
    pub history: bool,
}

impl Settings {
    /// The defaults for these queues.
    pub fn new(queues: &'static [QueueSpec]) -> Self {
        let week = SignedDuration::from_hours(7 * 24);
        Self { queues, saga_retention: week, outbox_retention: week, history: true }
    }

    /// The defaults for these queues, but for how long what has ended stays.
    pub fn with_retention(
        queues: &'static [QueueSpec],
        saga_retention: Duration,
        outbox_retention: SignedDuration,
    ) -> Self {
        // A span beyond what can be represented is as good as for ever.
        let saga_retention = SignedDuration::try_from(saga_retention).unwrap_or(SignedDuration::MAX);
        Self { saga_retention, outbox_retention, ..Self::new(queues) }
    }
}
