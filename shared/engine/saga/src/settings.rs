//! The runner's numbers.

use std::time::Duration;

use jiff::SignedDuration;
use messages::Backoff;

/// The runner's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a claim lasts at most. Longer than any attempt should take; a worker that outlives it does no
    /// harm, it only works in vain.
    pub lease: SignedDuration,
    /// The most partitions that are worked on side by side, at least 1.
    pub concurrency: usize,
    /// The waits before the retries after a concurrency conflict.
    pub conflict_delays: Vec<Duration>,
    /// How often a busy partition is tried again in place, after up to [`Settings::busy_wait`] each time.
    pub busy_tries: u32,
    /// The longest wait for a busy partition, before it is tried again in place.
    pub busy_wait: Duration,
    /// When to deliver a message again whose partition stayed busy.
    pub busy_visibility: Backoff,
    /// When to deliver a message again after a failure of a store.
    pub failure_visibility: Backoff,
    /// The most tokens of a partition to which an attempt may add what it mints. More than a partition awaits at a time:
    /// what is beyond that was left by attempts that do not know whether they stored anything.
    pub room: usize,
    /// The most tokens that an attempt leaves to be removed by a later one, which saves giving the partition back. A saga
    /// of a few messages comes to its end within that; and the messages that they admitted are remembered as long.
    pub keep: usize,
    /// Whether messages from outside without a token are admitted. Then only states, not tokens, recognise their
    /// duplicates. Optimistic mode needs it.
    pub admit_untokened: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            lease: SignedDuration::from_secs(30),
            concurrency: 10,
            conflict_delays: [100, 200, 500].map(Duration::from_millis).to_vec(),
            busy_tries: 5,
            busy_wait: Duration::from_millis(50),
            // The lease of a worker that died inside is over after the fifth wait. A partition stays busy for longer only
            // where nobody can give it back, as without the permission; then the receipts have to last.
            busy_visibility: Backoff { first: Duration::from_secs(1), most: Backoff::FAILURE.most },
            failure_visibility: Backoff::FAILURE,
            room: 200,
            keep: 16,
            admit_untokened: false,
        }
    }
}
