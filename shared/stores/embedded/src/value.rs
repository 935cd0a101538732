//! How values look in a column.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::Fault;

/// Nanoseconds since 1970: exact, so that what is read equals what was written. Times after the year 2262 count
/// as the last moment that fits.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The inverse of [`nanos`].
pub(crate) fn timestamp(nanos: i64) -> Timestamp {
    // Every number of nanoseconds that fits into 64 bits is a time between the years 1677 and 2262.
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// A later time, or the last there is.
pub(crate) fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}

/// A count on its way into a column; none of ours comes near the limit.
pub(crate) fn int(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A limit on the number of rows.
pub(crate) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// A count on its way out of a column.
pub(crate) fn uint(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}

/// As JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<String, Fault> {
    Ok(serde_json::to_string(value)?)
}

/// From JSON.
pub(crate) fn from_json<T: DeserializeOwned>(text: &str) -> Result<T, Fault> {
    Ok(serde_json::from_str(text)?)
}

/// From a text column: an id, say.
pub(crate) fn parse<T: FromStr>(what: &'static str, text: &str) -> Result<T, Fault> {
    text.parse().map_err(|_| Fault::Malformed { what, text: text.to_owned() })
}

/// Names joined for an error's text, the first few of them.
pub(crate) fn some_of<T: Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let count = items.len();
    let mut text = items.take(SHOWN).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        text.push_str(&format!(" and {} more", count - SHOWN));
    }
    text
}
