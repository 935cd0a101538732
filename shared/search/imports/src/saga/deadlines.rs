//! How long a search waits before it goes on by itself.

use jiff::SignedDuration;

/// The longest time for which the answer to a look through the store is awaited. As a rule it comes at once; but a message
/// that only a later release can read waits for fifteen hours before its queue gives it up.
pub(super) const LOOK: SignedDuration = SignedDuration::from_hours(24);

/// How long a search waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// For its next file, counted from its first message and from each file that arrives. An upload form should not be
    /// valid for longer.
    pub upload: SignedDuration,
    /// For what comes of its files, counted from when the last of them arrived.
    pub parse: SignedDuration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self { upload: SignedDuration::from_mins(60), parse: SignedDuration::from_hours(24) }
    }
}
