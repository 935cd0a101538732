//! The contents of records.

use messages::StoreError;
use outbox::Record;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the content of a record, or the default value without a record.
///
/// # Errors
/// Returns an error that begins with `doing` if the content is not of this type.
pub(crate) fn or_default<T: DeserializeOwned + Default>(
    record: Option<Record>,
    doing: impl FnOnce() -> String,
) -> Result<T, StoreError> {
    let Some(record) = record else { return Ok(T::default()) };
    T::deserialize(record.body).map_err(|error| StoreError::unusable(doing(), error))
}

/// Returns the content of a new record.
///
/// # Errors
/// Returns an error that begins with `doing` if the value cannot be serialized.
pub(crate) fn of(value: &impl Serialize, doing: &str) -> Result<Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::unusable(doing, error))
}
