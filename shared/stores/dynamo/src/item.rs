//! Typed access to the attributes of an item.

use std::collections::HashMap;
use std::str::FromStr;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use messages::StoreError;

use crate::error::{Limit, MAX_ITEM_BYTES, MAX_KEY_BYTES, MalformedItem};
use crate::names::attributes::{DELETED, EXPIRES, KEEP_UNTIL, KEY, REVISION, STAMP};

pub(crate) type Item = HashMap<String, AttributeValue>;

/// Returns an item with a key and nothing else.
pub(crate) fn new(key: &str) -> Item {
    HashMap::from([(KEY.to_owned(), text(key))])
}

pub(crate) fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

pub(crate) fn number(value: impl Into<i128>) -> AttributeValue {
    AttributeValue::N(value.into().to_string())
}

/// Returns a time without loss: DynamoDB's numbers have 38 digits.
pub(crate) fn nanos(at: Timestamp) -> AttributeValue {
    number(at.as_nanosecond())
}

pub(crate) fn set(item: &mut Item, name: &str, value: AttributeValue) {
    item.insert(name.to_owned(), value);
}

pub(crate) fn str_of<'a>(item: &'a Item, name: &'static str) -> Result<&'a str, MalformedItem> {
    item.get(name).and_then(|value| value.as_s().ok()).map(String::as_str).ok_or(MalformedItem(name))
}

pub(crate) fn parsed<T: FromStr>(item: &Item, name: &'static str) -> Result<T, MalformedItem> {
    str_of(item, name)?.parse().map_err(|_| MalformedItem(name))
}

/// Returns a number, or `None` if the attribute is absent.
pub(crate) fn number_of<T: FromStr>(item: &Item, name: &'static str) -> Result<Option<T>, MalformedItem> {
    let Some(value) = item.get(name) else { return Ok(None) };
    value.as_n().ok().and_then(|text| text.parse().ok()).map(Some).ok_or(MalformedItem(name))
}

pub(crate) fn time_of(item: &Item, name: &'static str) -> Result<Option<Timestamp>, MalformedItem> {
    let nanos: Option<i128> = number_of(item, name)?;
    nanos.map(Timestamp::from_nanosecond).transpose().map_err(|_| MalformedItem(name))
}

/// Returns the number of writes of an item.
pub(crate) fn revision(item: &Item) -> Result<u64, MalformedItem> {
    number_of(item, REVISION)?.ok_or(MalformedItem(REVISION))
}

/// Returns `true` if the attribute is `true`.
pub(crate) fn is(item: &Item, name: &str) -> bool {
    item.get(name).is_some_and(|value| value == &AttributeValue::Bool(true))
}

/// Returns `true` if the item is what remains of a deleted item.
pub(crate) fn is_deleted(item: &Item) -> bool {
    is(item, DELETED)
}

/// Returns the stamp of an item; empty if it has none.
pub(crate) fn stamp(item: &Item) -> &str {
    str_of(item, STAMP).unwrap_or_default()
}

/// Sets the second from which TTL may delete the item, rounded up.
pub(crate) fn expire(item: &mut Item, at: Option<Timestamp>) {
    match at {
        Some(at) => {
            let second = at.as_second().saturating_add(i64::from(at.subsec_nanosecond() > 0));
            set(item, EXPIRES, number(second));
        }
        None => drop(item.remove(EXPIRES)),
    }
}

/// Returns `true` if the retention of the item has passed.
pub(crate) fn has_expired(item: &Item, now: Timestamp) -> Result<bool, MalformedItem> {
    Ok(time_of(item, KEEP_UNTIL)?.is_some_and(|until| until <= now))
}

/// Returns the size of an item as DynamoDB counts it, rounded up
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html>).
pub(crate) fn size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + size_of(value)).sum()
}

fn size_of(value: &AttributeValue) -> usize {
    match value {
        AttributeValue::S(text) => text.len(),
        AttributeValue::N(digits) => digits.len() / 2 + 2,
        AttributeValue::L(values) => 3 + values.iter().map(|value| 1 + size_of(value)).sum::<usize>(),
        AttributeValue::M(fields) => 3 + size(fields) + fields.len(),
        _ => 1,
    }
}

/// Checks the limits of an item.
///
/// # Errors
/// Returns an error that names the limit.
pub(crate) fn check(item: &Item, doing: &str) -> Result<(), StoreError> {
    let key = str_of(item, KEY).unwrap_or_default();
    let bytes = size(item);
    let limit = if key.len() > MAX_KEY_BYTES {
        Limit::KeySize(key.len())
    } else if bytes > MAX_ITEM_BYTES {
        Limit::ItemSize { key: key.to_owned(), bytes }
    } else {
        return Ok(());
    };
    Err(StoreError::unusable(doing, limit))
}

/// Converts a value of serde to JSON text.
pub(crate) fn json(value: &impl serde::Serialize, doing: &str) -> Result<AttributeValue, StoreError> {
    serde_json::to_string(value).map(AttributeValue::S).map_err(|error| StoreError::unusable(doing, error))
}

/// Parses JSON text.
pub(crate) fn from_json<T: serde::de::DeserializeOwned>(
    item: &Item,
    name: &'static str,
    doing: &str,
) -> Result<T, StoreError> {
    let text = str_of(item, name).map_err(|error| StoreError::unusable(doing, error))?;
    serde_json::from_str(text).map_err(|error| StoreError::unusable(doing, error))
}

/// The result of reading a stored item, as an error of a call.
pub(crate) fn readable<T>(read: Result<T, MalformedItem>, doing: &str) -> Result<T, StoreError> {
    read.map_err(|error| StoreError::unusable(doing, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_item_is_refused_with_its_limit() {
        let mut item = new("saga#1");
        set(&mut item, "content", text("x".repeat(MAX_ITEM_BYTES)));
        let error = check(&item, "storing").unwrap_err();
        assert!(
            !error.is_retryable() && error.chain().contains("409600 bytes for an item"),
            "{}",
            error.chain()
        );
        let error = check(&new(&"k".repeat(MAX_KEY_BYTES + 1)), "storing").unwrap_err();
        assert!(error.chain().contains("2048 bytes for a key"), "{}", error.chain());
        assert!(check(&new("saga#1"), "storing").is_ok());
    }

    #[test]
    fn expiry_is_rounded_up() {
        let mut item = new("saga#1");
        expire(&mut item, Some(Timestamp::from_nanosecond(1_000_000_001).unwrap()));
        assert_eq!(item.get(EXPIRES), Some(&number(2)));
        expire(&mut item, None);
        assert_eq!(item.get(EXPIRES), None);
    }
}
