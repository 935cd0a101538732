//! An application's own data, for code that serves requests: read while a session is open, written with its commit.
//!
//! The reads of a session are checked when it commits: if another session has changed one of the records in between,
//! the commit is refused. Therefore, the decision of a request holds for the data that it has read, without locks that
//! an abandoned request could leave.

use async_trait::async_trait;
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
        write!(f, "{}/{}", self.kind, self.id)
    }
}

/// A record as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The number of writes.
    pub revision: u64,
    /// The content.
    pub body: Value,
}

/// A write of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The record.
    pub key: Key,
    /// The new content.
    pub body: Value,
}

/// A record that belongs to an instance of a saga: no session and no other instance writes it, but any session may read
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnedRecord {
    /// The record.
    #[serde(flatten)]
    pub key: Key,
    /// The version of the instance's document with which the write was staged.
    pub revision: u64,
    /// The new content.
    pub body: Value,
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
    let (mut reason, mut values) = (None, vec![body]);
    while let Some(value) = values.pop() {
        match value {
            Value::Array(items) => values.extend(items),
            Value::Object(fields) if fields.keys().any(|name| name.contains('\0')) => {
                reason = Some("the name of a field contains a zero character");
            }
            Value::Object(fields) => values.extend(fields.values()),
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
    /// The revision that was read; 0 if there was none.
    pub revision: u64,
}

/// Reads records.
#[async_trait]
pub trait ReadRecords: Send + Sync {
    /// Returns a record as the latest commit left it.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn record(&self, key: &Key) -> Result<Option<Record>, StoreError>;
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

    /// Stores a record of an instance, unless it has reached this revision: effects may be repeated, and may be performed
    /// in another order than they were staged.
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
        assert_eq!(unsupported_record(&Key::new("k", "x".repeat(MAX_KEY_BYTES - 1)), &Value::Null), None);
        assert!(unsupported_record(&Key::new("k", "x".repeat(MAX_KEY_BYTES)), &Value::Null).is_some());
    }
}
