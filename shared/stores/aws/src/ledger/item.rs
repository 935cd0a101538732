//! A ledger item as DynamoDB keeps it.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::types::AttributeValue;
use dedup::ledger::Item;
use jiff::Timestamp;
use messages::{AttemptId, Token};

/// The key of the ledger's table.
pub const PARTITION: &str = "partition_id";
/// The attempt inside.
pub(crate) const OWNER: &str = "owner";
/// The time at which the holder's lease ends.
pub(crate) const LEASE: &str = "lease_until";
/// The number of claims.
pub(crate) const FENCE: &str = "fence";
/// The messages still admitted.
pub(crate) const TOKENS: &str = "tokens";
/// The attribute of both tables with the expiry of an item, in seconds since 1970.
pub const EXPIRES: &str = "expires_at";

/// A stored item that this system has not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attribute \"{0}\" is missing or malformed")]
pub struct MalformedItem(pub &'static str);

type Attributes = HashMap<String, AttributeValue>;

pub(crate) fn read(attributes: &Attributes) -> Result<Item, MalformedItem> {
    Ok(Item {
        holder: holder(attributes)?,
        fence: number(attributes, FENCE)?.unwrap_or(0),
        tokens: tokens(attributes)?,
        expires_at: expires_at(attributes)?,
    })
}

fn holder(attributes: &Attributes) -> Result<Option<(AttemptId, Timestamp)>, MalformedItem> {
    let Some(owner) = attributes.get(OWNER) else { return Ok(None) };
    let attempt = owner.as_s().ok().and_then(|text| text.parse().ok()).ok_or(MalformedItem(OWNER))?;
    let until: i128 = number(attributes, LEASE)?.ok_or(MalformedItem(LEASE))?;
    let until = Timestamp::from_nanosecond(until).map_err(|_| MalformedItem(LEASE))?;
    Ok(Some((attempt, until)))
}

fn tokens(attributes: &Attributes) -> Result<BTreeSet<Token>, MalformedItem> {
    let Some(tokens) = attributes.get(TOKENS) else { return Ok(BTreeSet::new()) };
    let tokens = tokens.as_ss().map_err(|_| MalformedItem(TOKENS))?;
    tokens.iter().map(|text| Token::parse(text).map_err(|_| MalformedItem(TOKENS))).collect()
}

/// Reads the expiry of an item of either table.
pub(crate) fn expires_at(attributes: &Attributes) -> Result<Timestamp, MalformedItem> {
    let second = number(attributes, EXPIRES)?.ok_or(MalformedItem(EXPIRES))?;
    Timestamp::from_second(second).map_err(|_| MalformedItem(EXPIRES))
}

fn number<T: std::str::FromStr>(
    attributes: &Attributes,
    name: &'static str,
) -> Result<Option<T>, MalformedItem> {
    let Some(value) = attributes.get(name) else { return Ok(None) };
    value.as_n().ok().and_then(|text| text.parse().ok()).map(Some).ok_or(MalformedItem(name))
}

/// Returns an expiry for TTL, in whole seconds, rounded up.
pub(crate) fn ttl(at: Timestamp) -> AttributeValue {
    let rounded_up = at.as_second().saturating_add(i64::from(at.subsec_nanosecond() > 0));
    // The last representable second has no later second that could be read again.
    AttributeValue::N(rounded_up.min(Timestamp::MAX.as_second()).to_string())
}

/// Returns the seconds of a timestamp, rounded down. Rounding down does not change comparisons with a whole second:
/// that second is before or at the timestamp if and only if it is before or at the result.
pub(crate) fn seconds(at: Timestamp) -> AttributeValue {
    let second = if at.subsec_nanosecond() < 0 { at.as_second().saturating_sub(1) } else { at.as_second() };
    AttributeValue::N(second.to_string())
}

/// A moment without loss. DynamoDB's numbers have 38 digits.
pub(crate) fn nanoseconds(at: Timestamp) -> AttributeValue {
    AttributeValue::N(at.as_nanosecond().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attributes(pairs: &[(&str, AttributeValue)]) -> Attributes {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    #[test]
    fn unclaimed_item_needs_only_expiry() {
        let item = read(&attributes(&[(EXPIRES, AttributeValue::N("9".into()))])).unwrap();
        let expires_at = Timestamp::from_second(9).unwrap();
        assert_eq!(item, Item { holder: None, fence: 0, tokens: BTreeSet::new(), expires_at });
    }

    #[test]
    fn foreign_attribute_is_named() {
        let text = AttributeValue::S("x".into());
        let number = AttributeValue::N("9".into());
        for (name, value) in [
            (OWNER, text.clone()),
            (FENCE, text.clone()),
            (TOKENS, AttributeValue::Ss(vec!["x:1".into()])),
            (EXPIRES, text),
        ] {
            let item = attributes(&[(EXPIRES, number.clone()), (name, value)]);
            assert_eq!(read(&item), Err(MalformedItem(name)));
        }
        assert_eq!(read(&attributes(&[])), Err(MalformedItem(EXPIRES)));
    }

    #[test]
    fn expiry_is_rounded_up_and_query_time_down() {
        let at: Timestamp = "2026-01-01T00:00:00.000000001Z".parse().unwrap();
        assert_eq!(ttl(at), AttributeValue::N("1767225601".into()));
        assert_eq!(seconds(at), AttributeValue::N("1767225600".into()));
        assert_eq!(nanoseconds(at), AttributeValue::N("1767225600000000001".into()));
        let before: Timestamp = "1969-12-31T23:59:59.5Z".parse().unwrap();
        let last = attributes(&[(EXPIRES, ttl(Timestamp::MAX))]);
        assert_eq!(expires_at(&last).unwrap().as_second(), Timestamp::MAX.as_second());
        assert_eq!(seconds(before), AttributeValue::N("-1".into()));
        assert_eq!(ttl(before), AttributeValue::N("0".into()));
    }
}
