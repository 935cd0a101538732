//! The updates of the ledger as expressions: pure functions that express the semantics of [`dedup::ledger::Item`] in
//! DynamoDB's language.
//!
//! Each change comes in two forms. The first form is for an item that is absent or has not expired. An expired item
//! counts as absent, so none of its attributes may be kept, but one update cannot both replace an item and add to it.
//! Therefore the second form, `…_afresh`, writes every attribute on the condition that the item is absent or expired.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use dedup::ledger::ITEM_LIFETIME;
use dedup::{Claim, ClaimCondition, Release};
use jiff::Timestamp;
use messages::{PartitionKey, Token};

use crate::ledger::item::{self, EXPIRES, FENCE, LEASE, OWNER, PARTITION, TOKENS};

/// Placeholders for all names, since some of them are reserved words
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ReservedWords.html>).
const NAMES: [(&str, &str); 6] = [
    ("#partition", PARTITION),
    ("#owner", OWNER),
    ("#lease", LEASE),
    ("#fence", FENCE),
    ("#tokens", TOKENS),
    ("#expires", EXPIRES),
];

const ALIVE: &str = "#expires > :second";
const ABSENT: &str = "attribute_not_exists(#partition)";
const ABSENT_OR_EXPIRED: &str = "(attribute_not_exists(#partition) OR #expires <= :second)";

/// One conditional update.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Update {
    pub(crate) partition: PartitionKey,
    pub(crate) update: String,
    pub(crate) condition: String,
    pub(crate) values: HashMap<String, AttributeValue>,
}

impl Update {
    fn new(partition: PartitionKey, update: &[String], condition: impl Into<String>) -> Self {
        let update: Vec<&str> =
            update.iter().map(String::as_str).filter(|clause| !clause.is_empty()).collect();
        Self { partition, update: update.join(" "), condition: condition.into(), values: HashMap::new() }
    }

    fn value(mut self, name: &str, value: AttributeValue) -> Self {
        // A value that no expression uses is refused.
        if self.update.contains(name) || self.condition.contains(name) {
            self.values.insert(name.to_owned(), value);
        }
        self
    }

    /// The names that the expressions use; any other is refused.
    pub(crate) fn names(&self) -> HashMap<String, String> {
        let used = |name: &str| self.update.contains(name) || self.condition.contains(name);
        let names = NAMES.iter().filter(|(placeholder, _)| used(placeholder));
        names.map(|(placeholder, name)| ((*placeholder).to_owned(), (*name).to_owned())).collect()
    }

    fn claiming(self, claim: &Claim) -> Self {
        let until = claim.now.checked_add(claim.lease).unwrap_or(Timestamp::MAX);
        let token = match &claim.requires {
            ClaimCondition::TokenPresent(token) => token.to_string(),
            ClaimCondition::ItemExists | ClaimCondition::Always => String::new(),
        };
        self.value(":attempt", AttributeValue::S(claim.attempt.to_string()))
            .value(":until", item::nanoseconds(until))
            .value(":now", item::nanoseconds(claim.now))
            .value(
                ":finished",
                AttributeValue::S(claim.supersedes.map(|attempt| attempt.to_string()).unwrap_or_default()),
            )
            .value(":fence", AttributeValue::N(claim.fence.to_string()))
            .value(":next", AttributeValue::N(claim.next_fence().to_string()))
            .value(":required", AttributeValue::S(token))
            .value(":tokens", set(&claim.new_tokens))
            .value(":latest", item::seconds(claim.max_expiry()))
            .value(":capacity", AttributeValue::N(claim.max_tokens.to_string()))
            .touching(claim.now, claim.expires_at())
    }

    fn touching(self, now: Timestamp, expires_at: Timestamp) -> Self {
        self.value(":second", item::seconds(now)).value(":expires", item::ttl(expires_at))
    }

    fn granting(self, now: Timestamp) -> Self {
        self.touching(now, now.checked_add(ITEM_LIFETIME).unwrap_or(Timestamp::MAX))
    }
}

fn set<'a>(tokens: impl IntoIterator<Item = &'a Token>) -> AttributeValue {
    // A set with the same element twice is refused.
    let mut tokens: Vec<_> = tokens.into_iter().map(Token::to_string).collect();
    tokens.sort_unstable();
    tokens.dedup();
    AttributeValue::Ss(tokens)
}

/// Returns a clause that needs tokens; DynamoDB has no empty sets.
fn with_tokens(tokens: &[Token], clause: &str) -> String {
    if tokens.is_empty() { String::new() } else { clause.to_owned() }
}

/// Returns the condition under which a claim need not wait for another attempt.
fn free(claim: &Claim) -> String {
    let finished = claim.supersedes.map_or("", |_| " OR #owner = :finished");
    format!("(attribute_not_exists(#owner) OR #lease <= :now OR #owner = :attempt{finished})")
}

/// Returns the condition that the item has the fence of the claim, and does not expire later than the caller expects.
/// The fence moves with each claim, so a second copy of the request fails.
fn at_fence(claim: &Claim) -> &'static str {
    match claim.fence {
        0 => "attribute_not_exists(#fence) AND #expires <= :latest",
        _ => "#fence = :fence AND #expires <= :latest",
    }
}

/// A claim of an item that is absent or has not expired.
pub(crate) fn claim(claim: &Claim) -> Update {
    let room =
        with_tokens(&claim.new_tokens, " AND (attribute_not_exists(#tokens) OR size(#tokens) <= :capacity)");
    let (free, fence) = (free(claim), at_fence(claim));
    let alive = format!("{ALIVE} AND {free} AND {fence}{room}");
    let condition = match claim.requires {
        ClaimCondition::TokenPresent(_) => format!("contains(#tokens, :required) AND {alive}"),
        // An absent item has the fence 0.
        ClaimCondition::Always if claim.fence == 0 => format!("{ABSENT} OR ({alive})"),
        ClaimCondition::ItemExists | ClaimCondition::Always => alive,
    };
    let update = vec![
        "SET #owner = :attempt, #lease = :until, #expires = :expires, #fence = :next".to_owned(),
        with_tokens(&claim.new_tokens, "ADD #tokens :tokens"),
    ];
    Update::new(claim.partition, &update, condition).claiming(claim)
}

/// Returns a claim of an item without capacity for more tokens.
pub(crate) fn claim_without_tokens(request: &Claim) -> Update {
    claim(&Claim { new_tokens: Vec::new(), ..request.clone() })
}

/// Returns an unconditional claim that replaces an expired item.
pub(crate) fn claim_afresh(claim: &Claim) -> Update {
    let tokens = if claim.new_tokens.is_empty() { " REMOVE #tokens" } else { ", #tokens = :tokens" };
    let update =
        format!("SET #owner = :attempt, #lease = :until, #expires = :expires, #fence = :next{tokens}");
    Update::new(claim.partition, &[update], ABSENT_OR_EXPIRED).claiming(claim)
}

/// Returns the release of a partition, conditional on its holder and its fence.
pub(crate) fn release(release: &Release) -> Update {
    let expires_at = release.expires_at();
    let mut update = vec![expires_at.map_or("", |_| "SET #expires = :expires").to_owned()];
    if release.ended {
        update.push("REMOVE #owner, #lease, #tokens".to_owned());
    } else {
        update.push("REMOVE #owner, #lease".to_owned());
        if !release.remove.is_empty() {
            update.push("DELETE #tokens :removed".to_owned());
        }
    }
    Update::new(release.partition, &update, "#owner = :attempt AND #fence = :fence")
        .value(":attempt", AttributeValue::S(release.attempt.to_string()))
        .value(":fence", AttributeValue::N(release.fence.to_string()))
        .value(":removed", set(&release.remove))
        .touching(release.now, expires_at.unwrap_or(release.now))
}

/// Builds a grant that creates an absent item, or extends an item that has not expired. The grant moves the item's
/// expiry to a later time. It does not affect the attempt that holds the lease.
///
/// The client repeats a request that was not answered in time. The first request, or a claim of the partition, has made
/// the item last at least as long, so a copy that arrives later is refused and never restores a used token.
pub(crate) fn grant(partition: PartitionKey, tokens: &[Token], now: Timestamp) -> Update {
    let update = vec!["SET #expires = :expires".to_owned(), with_tokens(tokens, "ADD #tokens :tokens")];
    Update::new(partition, &update, format!("{ABSENT} OR ({ALIVE} AND #expires < :expires)"))
        .value(":tokens", set(tokens))
        .granting(now)
}

/// Builds a grant to an item that does not expire before the new tokens. A token is used in a claim, which changes the
/// fence, so a copy that arrives later is refused.
pub(crate) fn grant_within(partition: PartitionKey, tokens: &[Token], now: Timestamp, fence: u64) -> Update {
    let at = if fence == 0 { "attribute_not_exists(#fence)" } else { "#fence = :fence" };
    Update::new(partition, &["ADD #tokens :tokens".to_owned()], format!("#expires >= :expires AND {at}"))
        .value(":tokens", set(tokens))
        .value(":fence", AttributeValue::N(fence.to_string()))
        .granting(now)
}

/// Returns the removal of tokens from an item that has not expired.
pub(crate) fn revoke(partition: PartitionKey, tokens: &[Token], now: Timestamp) -> Update {
    Update::new(partition, &["DELETE #tokens :removed".to_owned()], ALIVE)
        .value(":removed", set(tokens))
        .value(":second", item::seconds(now))
}

/// Returns a grant that creates an item or replaces an expired one.
pub(crate) fn grant_afresh(partition: PartitionKey, tokens: &[Token], now: Timestamp) -> Update {
    let update = vec![
        format!("SET #expires = :expires{}", with_tokens(tokens, ", #tokens = :tokens")),
        format!("REMOVE #owner, #lease, #fence{}", if tokens.is_empty() { ", #tokens" } else { "" }),
    ];
    Update::new(partition, &update, ABSENT_OR_EXPIRED).value(":tokens", set(tokens)).granting(now)
}

#[cfg(test)]
mod tests;
