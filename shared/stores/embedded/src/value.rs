//! The representation of values in columns.

use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// Returns nanoseconds since 1970: exact, so that a value is read as it was written. Times after the year 2262 are
/// clamped.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The inverse of [`nanos`].
pub(crate) fn timestamp(nanos: i64) -> Timestamp {
    // Every number of nanoseconds that fits into 64 bits is a time between the years 1677 and 2262.
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// Returns a later time, clamped to the maximum.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// Converts a count to a column value; no count of this system approaches the limit.
pub(crate) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a maximum number of rows.
pub(crate) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Converts a column value to a count.
pub(crate) fn uint(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    Ok(serde_json::to_string(value)?)
}

/// Deserializes a value from JSON.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    Ok(serde_json::from_str(text)?)
}

/// Parses a text column, such as an id.
pub(crate) fn parse<T: FromStr>(what: &'static str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Fault::Malformed { what, text: text.to_owned() })
}
