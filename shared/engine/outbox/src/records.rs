//! An application's own data, for code that serves requests: read while a session is open, written with its commit.
//!
//! The reads of a session are checked when it commits: if another session has changed one of the records in between,
//! the commit is refused. Therefore, the decision of a request holds for the data that it has read, without locks that
//! an abandoned request could leave.

use std::borrow::Cow;

use async_trait::async_trait;
use jiff::{RoundMode, SignedDuration, Timestamp, TimestampRound, Unit};
use messages::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The key of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The kind of record, such as `stock`.
    pub kind: String,
    /// The id within the kind.
    pub id: String,
}

impl Key {
    /// Creates a key.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", shortened(&self.kind), shortened(&self.id))
    }
}

/// Returns the beginning of a part of a key, so that no error repeats a key of any length.
fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

/// The maximum length of the kind, and of the id, in an error.
const MAX_SHOWN_CHARACTERS: usize = 200;

/// A record as readers see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of writes.
    pub revision: u64,
    /// The content.
    pub body: Value,
}

/// The time for which a store keeps a record that was removed or has expired. Its revision is counted on if the record is
/// written again within this time, so a session that has read an earlier content cannot mistake the new one for it. A
/// session has to commit within this time after a read.
pub const KEPT_AFTER_EXPIRY: SignedDuration = SignedDuration::from_hours(7 * 24);

/// A record as stored, also one that was removed or has expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    /// The number of writes; a removal is one of them.
    pub revision: u64,
    /// The content; `None` if the record was removed.
    pub body: Option<Value>,
    /// The time from which the record counts as absent, in whole seconds; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl StoredRecord {
    /// Returns the record, unless it was removed or has expired at `now`.
    #[must_use]
    pub fn at(self, now: Timestamp) -> Option<Record> {
        let Self { revision, body, expires_at } = self;
        body.filter(|_| expires_at.is_none_or(|end| now < end)).map(|body| Record { revision, body })
    }
}

/// A write of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The record.
    pub key: Key,
    /// The new content; `None` to remove the record.
    pub body: Option<Value>,
    /// The time from which the record counts as absent, in whole seconds; `None` if it does not expire.
    pub expires_at: Option<Timestamp>,
}

impl Write {
    /// Creates the write of a record that does not expire.
    pub fn new(key: Key, body: impl Into<Value>) -> Self {
        Self { key, body: Some(body.into()), expires_at: None }
    }

    /// Creates the removal of a record.
    pub fn removal(key: Key, now: Timestamp) -> Self {
        Self { key, body: None, expires_at: None }.until(now)
    }

    /// Adds the time from which the record counts as absent, rounded up to a second.
    #[must_use]
    pub fn until(self, at: Timestamp) -> Self {
        Self { expires_at: Some(up_to_second(at)), ..self }
    }
}

/// Rounds a time up to a second, because some stores cannot hold more precise expiries.
fn up_to_second(at: Timestamp) -> Timestamp {
    let round = TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Ceil);
    at.round(round).unwrap_or(at)
}

/// A record that belongs to an instance of a saga: no session and no other instance may write it, but any session may
/// read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedRecord {
    /// The record.
    #[serde(flatten)]
    pub key: Key,
    /// The version of the instance's document with which the write was staged.
    pub revision: u64,
    /// The new content. It is ignored if the record is removed.
    pub body: Value,
    /// The time of the removal; `None` if the record is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<Timestamp>,
}

impl OwnedRecord {
    /// Returns the record as it is stored.
    #[must_use]
    pub fn stored(&self) -> StoredRecord {
        StoredRecord {
            revision: self.revision,
            body: self.removed_at.is_none().then(|| self.body.clone()),
            expires_at: self.removed_at.map(up_to_second),
        }
    }
}

/// The maximum length of a record's key in bytes. With this limit, the key of an item on DynamoDB stays within 2,048
/// bytes (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html>).
pub const MAX_KEY_BYTES: usize = 1_024;

/// Returns the reason why some store cannot hold a record; `None` if all stores can. A transition has no store that could
/// refuse the record, so the reason has to be known before the state changes.
pub fn unsupported_record(key: &Key, body: &Value) -> Option<&'static str> {
    if key.kind.len() + key.id.len() > MAX_KEY_BYTES {
        return Some("the key is longer than 1,024 bytes");
    }
    unsupported_json(body)
}

/// The maximum number of arrays and objects that contain each other in a value. MongoDB stores documents of 100 levels
/// (<https://www.mongodb.com/docs/manual/reference/limits/>), and `serde_json` reads 127. The rest is for the fields that
/// contain the value.
pub const MAX_LEVELS: usize = 90;

/// Returns the reason why some store cannot hold a value, or its reader could not parse it; `None` if all stores can.
pub fn unsupported_json(value: &Value) -> Option<&'static str> {
    let (mut reason, mut values) = (None, vec![(value, 1)]);
    while let Some((value, level)) = values.pop() {
        match value {
            Value::Array(_) | Value::Object(_) if level > MAX_LEVELS => {
                reason = Some("it has more than 90 levels");
            }
            Value::Array(items) => values.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(fields) if fields.keys().any(|name| name.contains('\0')) => {
                reason = Some("the name of a field contains a zero character");
            }
            Value::Object(fields) => values.extend(fields.values().map(|field| (field, level + 1))),
            Value::Number(number) if number.as_u64().is_some_and(|number| i64::try_from(number).is_err()) => {
                reason = Some("a number is larger than 64 bits with a sign can represent");
            }
            Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    reason
}

/// A read of a record by a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordRead {
    /// The record.
    pub key: Key,
    /// The revision that was read, also of a record that counts as absent; 0 if the store had none.
    pub revision: u64,
}

/// Reads records.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// Returns a record as the latest commit left it, also one that was removed or has expired, until the store has
    /// deleted it.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn stored_record(&self, key: &Key) -> Result<Option<StoredRecord>, StoreError>;

    /// Returns a record that is written without an expiry, unless it was removed.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        // The earliest time precedes any expiry.
        Ok(self.stored_record(key).await?.and_then(|stored| stored.at(Timestamp::MIN)))
    }
}

/// Writes records without a session, for data that no message depends on.
#[async_trait]
pub trait WriteRecords: Send + Sync {
    /// Stores the next revision of a record unconditionally. Commits of sessions that have read an earlier revision are
    /// then refused.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The record may have been stored.
    async fn write_record(&self, write: &Write) -> Result<(), StoreError>;

    /// Stores or removes a record of an instance, unless it has reached this revision: effects may be repeated, and may be
    /// performed in another order than they were staged.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The record may have been stored.
    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn record_that_some_store_refuses_is_unsupported() {
        let key = Key::new("receipt", "17");
        for body in [json!({ "a": [1, { "b": "x\0" }] }), json!(i64::MAX), json!(-1.5), Value::Null] {
            assert_eq!(unsupported_record(&key, &body), None, "{body}");
        }
        for body in [json!([{ "a": i64::MAX as u64 + 1 }]), json!({ "a": { "b\0": 1 } })] {
            assert!(unsupported_record(&key, &body).is_some(), "{body}");
        }
        let nested = |levels: usize| (1..levels).fold(json!([]), |inner, _| json!([inner]));
        assert_eq!(unsupported_json(&nested(MAX_LEVELS)), None);
        assert!(unsupported_json(&nested(MAX_LEVELS + 1)).is_some());
        let long = Key::new("k", "ä".repeat(100_000)).to_string();
        assert!(long.starts_with("k/ää") && long.ends_with("ä…") && long.chars().count() < 210);
        assert_eq!(unsupported_record(&Key::new("k", "x".repeat(MAX_KEY_BYTES - 1)), &Value::Null), None);
        assert!(unsupported_record(&Key::new("k", "x".repeat(MAX_KEY_BYTES)), &Value::Null).is_some());
    }
}
