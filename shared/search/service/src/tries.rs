//! The retries of sessions that a concurrent request has changed.

/// The maximum number of attempts at a session.
pub(crate) const MAX_TRIES: usize = 5;
