//! The settings of a data directory.

#[cfg(feature = "search")]
use std::time::Duration;

use jiff::SignedDuration;
use messages::QueueSpec;

/// The system whose database the functions without the name of a system open.
pub(crate) const SEARCH_IMPORT: &str = "search-import";

/// The settings of a data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The name of the system, from which the name of the database is derived.
    pub system: &'static str,
    /// The queues, with their receive limits and dead-letter queues.
    pub queues: &'static [QueueSpec],
    /// The retention of the document of an ended partition: 7 days, so that late duplicates find it.
    pub saga_retention: SignedDuration,
    /// The retention of the record of a settled session: 7 days. No client waits that long for an answer, so no commit
    /// is repeated later.
    pub outbox_retention: SignedDuration,
    /// `true` if decisions are stored, which is the default.
    pub history: bool,
}

impl Settings {
    /// Returns the defaults for the search import with these queues.
    #[cfg(feature = "search")]
    pub fn new(queues: &'static [QueueSpec]) -> Self {
        Self::of(SEARCH_IMPORT, queues)
    }

    /// Returns the defaults for a system with these queues.
    pub fn of(system: &'static str, queues: &'static [QueueSpec]) -> Self {
        let week = SignedDuration::from_hours(7 * 24);
        Self { system, queues, saga_retention: week, outbox_retention: week, history: true }
    }

    /// Returns the defaults for the search import with these queues and other retention periods.
    #[cfg(feature = "search")]
    pub fn with_retention(
        queues: &'static [QueueSpec],
        saga_retention: Duration,
        outbox_retention: SignedDuration,
    ) -> Self {
        // A span that cannot be represented never ends.
        let saga_retention = SignedDuration::try_from(saga_retention).unwrap_or(SignedDuration::MAX);
        Self { saga_retention, outbox_retention, ..Self::new(queues) }
    }
}
