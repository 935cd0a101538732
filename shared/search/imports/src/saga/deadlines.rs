//! The time limits after which a search continues or ends by itself.

use jiff::SignedDuration;

/// The maximum time to wait for the result of a bucket scan. The result usually arrives immediately, but a message
/// that only a newer version can read waits for 14 to 28 hours before it is dead-lettered.
pub(super) const MAX_SCAN_TIME: SignedDuration = SignedDuration::from_hours(24);

/// The time limits of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// The time to wait for the next file, from the first message and from each arriving file. An upload form should
    /// not be valid for longer.
    pub upload: SignedDuration,
    /// The time to wait for the results of all files, from the arrival of the last one.
    pub parse: SignedDuration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { upload: SignedDuration::from_mins(60), parse: SignedDuration::from_hours(24) }
    }
}
