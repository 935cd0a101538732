//! The settings of the runner.

use std::time::Duration;

use jiff::SignedDuration;
use messages::Backoff;

/// The runner's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The duration of a claim. It should exceed the duration of any attempt; a worker that outlives its claim does no
    /// harm, but its work is wasted.
    pub lease: SignedDuration,
    /// The maximum number of partitions that are worked on concurrently, at least 1.
    pub concurrency: usize,
    /// The delays before the retries after a concurrency conflict.
    pub conflict_delays: Vec<Duration>,
    /// The maximum number of retries in place for a busy partition, with a delay of up to [`Settings::busy_wait`]
    /// before each.
    pub busy_tries: u32,
    /// The maximum delay before a busy partition is retried in place.
    pub busy_wait: Duration,
    /// The delay before a message is redelivered whose partition stayed busy.
    pub busy_visibility: Backoff,
    /// The delay before a message is redelivered after a store has failed.
    pub failure_visibility: Backoff,
    /// The maximum number of tokens of a partition to which an attempt may add its own. It exceeds the number of
    /// messages that a partition awaits at a time: further tokens were left by attempts whose write has an unknown
    /// outcome.
    pub max_tokens: usize,
    /// The maximum number of tokens that an attempt leaves for a later one to remove, which saves the call to release
    /// the partition. A saga of a few messages ends within this limit. The ids of the admitted messages are kept as
    /// long.
    pub max_leftover: usize,
    /// `true` to admit messages of clients without a token. Then only states, not tokens, detect their duplicates. The
    /// optimistic mode needs it.
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
            // After a worker has died, its lease expires within the fifth delay. A partition remains busy for longer
            // only if no worker can release it, for example because a permission is missing. In this case, the receive
            // count has to suffice.
            busy_visibility: Backoff { first: Duration::from_secs(1), max: Backoff::FAILURE.max },
            failure_visibility: Backoff::FAILURE,
            max_tokens: 200,
            max_leftover: 16,
            admit_untokened: false,
        }
    }
}
