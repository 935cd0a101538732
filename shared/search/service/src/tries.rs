//! The retries of sessions that a concurrent request has changed.

use std::time::Duration;

use messages::Backoff;

/// The maximum number of attempts at a session.
pub(crate) const MAX_TRIES: usize = 5;
/// The delay before the next attempt, with its random part. Without it, concurrent requests meet again.
pub(crate) const PAUSE: Backoff =
    Backoff { first: Duration::from_millis(10), max: Duration::from_millis(10) };
