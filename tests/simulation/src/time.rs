//! The simulated time, in milliseconds since the start of a schedule.

use std::time::Duration;

use jiff::Timestamp;

/// The start of every schedule: 1 January 2026.
const START_SECOND: i64 = 1_767_225_600;

/// Converts milliseconds since the start of a schedule to a time.
pub(crate) fn timestamp(ms: u64) -> Timestamp {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(START_SECOND.saturating_mul(1_000).saturating_add(ms))
        .unwrap_or(Timestamp::MAX)
}

/// Converts a time to milliseconds since the start of a schedule.
pub(crate) fn millis(at: Timestamp) -> u64 {
    let ms = at.as_millisecond().saturating_sub(START_SECOND * 1_000);
    // Round up, so that the time is not reached too early.
    let fraction = i64::from(at.as_nanosecond() % 1_000_000 != 0);
    u64::try_from(ms.saturating_add(fraction)).unwrap_or(0)
}

/// Converts a duration to milliseconds.
pub(crate) fn span(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
