//! Conversion of single values to and from BSON.
//!
//! # Times
//! A BSON date has a resolution of milliseconds, but a claim is identified by its exact end. A time that is
//! compared with a time in a worker's memory is therefore stored as a 64-bit number of nanoseconds, which round-trips
//! exactly and sorts in the order of time (years 1677 to 2262; other times are clamped). Dates are stored only for
//! MongoDB's TTL monitor.

use jiff::{SignedDuration, Timestamp};
use messages::{MessageId, PartitionKey, SessionId};
use mongodb::bson::{self, Binary, Bson, DateTime, Document, doc, spec::BinarySubtype};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::Error as _;
use serde_json::Value;
use uuid::Uuid;

/// Conversion of an id to a BSON UUID.
pub(crate) trait Key {
    /// Returns the stored form of the id.
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
key!(PartitionKey, SessionId, MessageId);
key!(saga::failures::FailureId, saga::failures::OperationId);

/// Returns the size of a first batch with all documents of a query, which the server otherwise limits to 101 documents.
/// A reply has at most 16 MiB in any case.
pub(crate) fn batch_size(limit: usize) -> u32 {
    u32::try_from(limit).unwrap_or(u32::MAX)
}

/// The inverse of [`Key::key`].
pub(crate) fn uuid(value: &Bson) -> Option<Uuid> {
    match value {
        Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes }) => Uuid::from_slice(bytes).ok(),
        _ => None,
    }
}

/// Converts a time to its exact stored form.
pub(crate) fn nanos(at: Timestamp) -> i64 {
    let nanos = at.as_nanosecond();
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}

/// The inverse of [`nanos`].
pub(crate) fn timestamp(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX)
}

/// Converts a time to a date, rounded up so that nothing expires early.
pub(crate) fn date(at: Timestamp) -> DateTime {
    let whole = at.as_millisecond();
    let exact = Timestamp::from_millisecond(whole).is_ok_and(|rounded| rounded >= at);
    DateTime::from_millis(if exact { whole } else { whole.saturating_add(1) })
}

/// Returns the latest date whose retention has passed at `now`.
pub(crate) fn expired_until(now: Timestamp, retention: SignedDuration) -> DateTime {
    let now = i64::try_from(now.as_nanosecond().div_euclid(1_000_000)).unwrap_or(i64::MIN);
    let retention = i64::try_from(retention.as_millis()).unwrap_or(i64::MAX);
    DateTime::from_millis(now.saturating_sub(retention))
}

/// Converts a count to its stored form. Counts above the maximum, which do not occur in practice, are clamped.
pub(crate) fn int(count: impl TryInto<i64>) -> i64 {
    count.try_into().unwrap_or(i64::MAX)
}

/// Wraps a value as a literal of an update pipeline. Otherwise a text like `$ROOT` in a reviewer's file would be
/// evaluated as an expression.
pub(crate) fn literal(value: impl Into<Bson>) -> Bson {
    Bson::Document(doc! { "$literal": value.into() })
}

/// Serializes a value to BSON in its JSON form: ids and times as text, enums as serde writes them.
///
/// `bson` and the driver take an object such as `{"$numberLong": "5"}` for extended JSON
/// (<https://www.mongodb.com/docs/manual/reference/mongodb-extended-json/>), and write and read a number. The names of
/// such fields are therefore escaped.
pub(crate) fn to_bson<T: Serialize>(value: &T) -> Result<Bson, bson::error::Error> {
    escaped(serde_json::to_value(value).map_err(bson::error::Error::custom)?)
}

/// The inverse of [`to_bson`].
pub(crate) fn from_bson<T: DeserializeOwned>(value: Bson) -> Result<T, String> {
    let value = if is_escaped(&value) { unescaped(value) } else { value };
    bson::deserialize_from_bson(value).map_err(|error| error.to_string())
}

/// The character in front of a name that begins with `$` or with itself.
const ESCAPE: char = '\u{ff04}';

/// Returns `true` if the name of a field has to be escaped.
pub(crate) fn needs_escape(name: &str) -> bool {
    name.starts_with(['$', ESCAPE])
}

/// Converts JSON to BSON. The depth is bounded by the parser of the JSON, or by the type of the value.
fn escaped(value: Value) -> Result<Bson, bson::error::Error> {
    Ok(match value {
        Value::Null => Bson::Null,
        Value::Bool(value) => Bson::Boolean(value),
        Value::String(text) => Bson::String(text),
        Value::Array(items) => Bson::Array(items.into_iter().map(escaped).collect::<Result<_, _>>()?),
        Value::Object(fields) => {
            let mut document = Document::new();
            for (name, value) in fields {
                let name = if needs_escape(&name) { format!("{ESCAPE}{name}") } else { name };
                document.insert(name, escaped(value)?);
            }
            Bson::Document(document)
        }
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Bson::Int64(number),
            (None, Some(float)) if number.is_f64() => Bson::Double(float),
            (None, _) => return Err(bson::error::Error::custom(format!("{number} has more than 64 bits"))),
        },
    })
}

/// Returns `true` if the name of a field is escaped.
fn is_escaped(value: &Bson) -> bool {
    match value {
        Bson::Array(items) => items.iter().any(is_escaped),
        Bson::Document(fields) => {
            fields.iter().any(|(name, value)| name.starts_with(ESCAPE) || is_escaped(value))
        }
        _ => false,
    }
}

/// Restores the names of fields.
fn unescaped(value: Bson) -> Bson {
    match value {
        Bson::Array(items) => Bson::Array(items.into_iter().map(unescaped).collect()),
        Bson::Document(fields) => {
            let restored = fields.into_iter().map(|(name, value)| match name.strip_prefix(ESCAPE) {
                Some(escaped) if needs_escape(escaped) => (escaped.to_owned(), unescaped(value)),
                _ => (name, unescaped(value)),
            });
            Bson::Document(restored.collect())
        }
        value => value,
    }
}

/// Returns a required field.
pub(crate) fn field<'a>(document: &'a Document, name: &str) -> Result<&'a Bson, String> {
    document.get(name).ok_or_else(|| format!("it has no {name}"))
}

/// Reads an integer.
pub(crate) fn int_field(document: &Document, name: &str) -> Result<i64, String> {
    match field(document, name)? {
        Bson::Int64(number) => Ok(*number),
        Bson::Int32(number) => Ok((*number).into()),
        _ => Err(format!("its {name} is not a whole number")),
    }
}

/// Reads an integer in the range of `T`.
pub(crate) fn count_field<T: TryFrom<i64>>(document: &Document, name: &str) -> Result<T, String> {
    T::try_from(int_field(document, name)?).map_err(|_| format!("its {name} is out of range"))
}

/// Reads a boolean.
pub(crate) fn bool_field(document: &Document, name: &str) -> Result<bool, String> {
    field(document, name)?.as_bool().ok_or_else(|| format!("its {name} is neither true nor false"))
}

/// Reads a UUID.
pub(crate) fn uuid_field(document: &Document, name: &str) -> Result<Uuid, String> {
    uuid(field(document, name)?).ok_or_else(|| format!("its {name} is not a UUID"))
}

pub(crate) fn serde_field<T: DeserializeOwned>(document: &Document, name: &str) -> Result<T, String> {
    from_bson(field(document, name)?.clone()).map_err(|why| format!("its {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: i128) -> Timestamp {
        Timestamp::from_nanosecond(nanos).unwrap()
    }

    #[test]
    fn stored_time_round_trips_to_the_nanosecond() {
        for nanos_of in [0, -1, 1_767_225_600_123_456_789] {
            assert_eq!(timestamp(nanos(at(nanos_of))), at(nanos_of));
        }
        assert_eq!(nanos(Timestamp::MAX), i64::MAX);
        assert_eq!(nanos(Timestamp::MIN), i64::MIN);
        assert_eq!(nanos(timestamp(nanos(Timestamp::MAX))), i64::MAX, "a claim without end round-trips too");
    }

    #[test]
    fn date_is_never_earlier_than_time() {
        assert_eq!(date(at(5_000_000)).timestamp_millis(), 5);
        assert_eq!(date(at(5_000_001)).timestamp_millis(), 6);
        assert_eq!(date(at(-5_000_001)).timestamp_millis(), -5);
    }

    #[test]
    fn expiry_is_not_before_end_of_retention() {
        let ended = at(1_000_000_500);
        let retention = SignedDuration::from_secs(10);
        assert!(date(ended) > expired_until(at(11_000_000_499), retention));
        assert!(date(ended) <= expired_until(at(11_001_000_000), retention));
    }

    #[test]
    fn names_of_extended_json_round_trip() {
        let value = serde_json::json!({
            "$numberLong": "5", "\u{ff04}": { "$oid": [{ "\u{ff04}$date": 0.5 }] }, "\u{ff04}5": null, "a$": -1,
        });
        let stored = to_bson(&value).unwrap();
        let names: Vec<&String> = stored.as_document().unwrap().keys().collect();
        assert_eq!(names, ["\u{ff04}$numberLong", "a$", "\u{ff04}\u{ff04}", "\u{ff04}\u{ff04}5"]);
        assert_eq!(from_bson::<Value>(stored).unwrap(), value);
        assert!(to_bson(&u64::MAX).is_err());
    }

    #[test]
    fn id_round_trips() {
        let id = Uuid::from_u128(77);
        assert_eq!(uuid(&id.key()), Some(id));
        assert_eq!(uuid(&Bson::String(id.to_string())), None);
    }
}
