//! Single values to and from BSON.
//!
//! # Times
//! A BSON date keeps milliseconds, and a claim is recognised by its exact end. So a time that is compared with one
//! that a worker holds in memory is stored as a whole number of nanoseconds in 64 bits, which gives back exactly
//! what was stored and sorts as time does (years 1677 to 2262; beyond that the ends stand in). A date is stored
//! only where MongoDB's TTL monitor reads it.

use imports::FileId;
use jiff::{SignedDuration, Timestamp};
use messages::{MessageId, PartitionKey, SessionId};
use mongodb::bson::{self, Binary, Bson, DateTime, Document, doc, spec::BinarySubtype};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::fault::Fault;

/// An id as a BSON UUID.
pub(crate) trait Key {
    /// As stored.
    fn key(&self) -> Bson;
}

impl Key for Uuid {
    fn key(&self) -> Bson {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: self.as_bytes().to_vec() })
    }
}

macro_rules! key {
    ($($id:ty),*) => { $(impl Key for $id { fn key(&self) -> Bson { self.as_uuid().key() } })* };
}
key!(PartitionKey, SessionId, MessageId, FileId, imports::StudyId);
key!(saga::failures::FailureId, saga::failures::OperationId);

/// The inverse of [`Key::key`].
pub(crate) fn uuid(value: &Bson) -> Option<Uuid> {
    match value {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes }) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
}

/// A time as stored where it must come back exactly.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The inverse of [`nanos`].
pub(crate) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// A time as a date, rounded up: what expires by it never does so early.
pub(crate) fn date(at: Timestamp) -> DateTime {
    let whole = at.as_millisecond();
    let exact = Timestamp::from_millisecond(whole).is_ok_and(|rounded| rounded >= at);
    DateTime::from_millis(if exact { whole } else { whole.saturating_add(1) })
}

/// What has a date up to this has been kept for its retention by `now`.
pub(crate) fn expired_until(now: Timestamp, retention: SignedDuration) -> DateTime {
    let now = i64::try_from(now.as_nanosecond().div_euclid(1_000_000)).unwrap_or(i64::MIN);
    let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_millis(now.saturating_sub(retention))
}

/// A count as stored; none of ours comes near the limit.
pub(crate) fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// A value that an update pipeline takes as it is. Without it, a name like `$ROOT` from a reviewer's file would be
/// an expression.
pub(crate) fn literal(value: impl Into<Bson>) -> Bson {
    Bson::Document(doc! { "$literal": value.into() })
}

/// As BSON, in the form that JSON has: ids and times as text, enums as serde writes them.
pub(crate) fn to_bson<T: Serialize>(value: &T) -> Result<Bson, Fault> {
    bson::serialize_to_bson(value).map_err(Fault::encode)
}

/// The inverse of [`to_bson`].
pub(crate) fn from_bson<T: DeserializeOwned>(value: Bson) -> Result<T, String> {
    bson::deserialize_from_bson(value).map_err(|error| error.to_string())
}

/// A field that has to be there.
pub(crate) fn field<'a>(document: &'a Document, name: &str) -> Result<&'a Bson, String> {
    document.get(name).ok_or_else(|| format!("it has no {name}"))
}

/// A whole number.
pub(crate) fn int_field(document: &Document, name: &str) -> Result<i64, String> {
    match field(document, name)? {
        Bson::Int64(number) => Ok(*number),
        Bson::Int32(number) => Ok((*number).into()),
        _ => Err(format!("its {name} is not a whole number")),
    }
}

/// A whole number that is not negative.
pub(crate) fn count_field<T: TryFrom<i64>>(document: &Document, name: &str) -> Result<T, String> {
    T::try_from(int_field(document, name)?).map_err(|_| format!("its {name} is out of range"))
}

/// A truth value.
pub(crate) fn bool_field(document: &Document, name: &str) -> Result<bool, String> {
    field(document, name)?.as_bool().ok_or_else(|| format!("its {name} is neither true nor false"))
}

/// A UUID.
pub(crate) fn uuid_field(document: &Document, name: &str) -> Result<Uuid, String> {
    uuid(field(document, name)?).ok_or_else(|| format!("its {name} is not a UUID"))
}

/// A value that serde reads.
pub(crate) fn serde_field<T: DeserializeOwned>(document: &Document, name: &str) -> Result<T, String> {
    from_bson(field(document, name)?.clone()).map_err(|why| format!("its {name}: {why}"))
}

/// Names joined for an error's text, the first few of them.
pub(crate) fn some_of<T: std::fmt::Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let count = items.len();
    let mut text = items.take(SHOWN).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        text.push_str(&format!(" and {} more", count - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i128) -> Timestamp {
        Timestamp::from_nanosecond(nanos).unwrap()
    }

    #[test]
    fn a_stored_time_comes_back_to_the_nanosecond() {
        for nanos_of in [0, -1, 1_767_225_600_123_456_789] {
            assert_eq!(timestamp(nanos(at(nanos_of))), at(nanos_of));
        }
        assert_eq!(nanos(Timestamp::MAX), i64::MAX);
        assert_eq!(nanos(Timestamp::MIN), i64::MIN);
        assert_eq!(
            nanos(timestamp(nanos(Timestamp::MAX))),
            i64::MAX,
            "a claim without end is recognised too"
        );
    }

    #[test]
    fn a_date_is_never_earlier_than_the_time() {
        assert_eq!(date(at(5_000_000)).timestamp_millis(), 5);
        assert_eq!(date(at(5_000_001)).timestamp_millis(), 6);
        assert_eq!(date(at(-5_000_001)).timestamp_millis(), -5);
    }

    #[test]
    fn what_expires_does_so_when_its_retention_has_passed_and_not_before() {
        let ended = at(1_000_000_500);
        let retention = SignedDuration::from_secs(10);
        assert!(date(ended) > expired_until(at(11_000_000_499), retention));
        assert!(date(ended) <= expired_until(at(11_001_000_000), retention));
    }

    #[test]
    fn an_id_comes_back() {
        let id = Uuid::from_u128(77);
        assert_eq!(uuid(&id.key()), Some(id));
        assert_eq!(uuid(&Bson::String(id.to_string())), None);
    }
}
