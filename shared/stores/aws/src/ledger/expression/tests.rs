//! The expressions of claims, releases and grants, without a server.

use std::collections::BTreeSet;

use jiff::SignedDuration;
use messages::AttemptId;
use uuid::Uuid;

use super::*;

fn token(n: u128) -> Token {
    Token::minted_at_entry(PartitionKey::from_uuid(Uuid::nil()), Uuid::from_u128(n))
}

fn request(requires: ClaimCondition, mint: Vec<Token>) -> Claim {
    Claim {
        partition: PartitionKey::from_uuid(Uuid::from_u128(1)),
        attempt: AttemptId::from_uuid(Uuid::from_u128(2)),
        now: Timestamp::from_second(1_000).unwrap(),
        lease: SignedDuration::from_secs(30),
        supersedes: None,
        requires,
        new_tokens: mint,
        max_tokens: 200,
        fence: 7,
        above: 7,
        until: Timestamp::from_second(1_000).unwrap(),
    }
}

fn giving_back(remove: &[Token], ended: bool) -> Release {
    Release {
        partition: PartitionKey::from_uuid(Uuid::from_u128(1)),
        attempt: AttemptId::from_uuid(Uuid::from_u128(2)),
        fence: 7,
        remove: remove.iter().cloned().collect(),
        ended,
        until: None,
        now: Timestamp::from_second(1_000).unwrap(),
    }
}

/// All updates.
fn all() -> Vec<Update> {
    let partition = PartitionKey::from_uuid(Uuid::from_u128(1));
    let now = Timestamp::from_second(1_000).unwrap();
    let mut all = Vec::new();
    for tokens in [vec![], vec![token(1), token(2)]] {
        for requires in
            [ClaimCondition::TokenPresent(token(9)), ClaimCondition::ItemExists, ClaimCondition::Always]
        {
            let finished = Some(AttemptId::from_uuid(Uuid::from_u128(3)));
            all.push(claim(&request(requires.clone(), tokens.clone())));
            all.push(claim(&Claim { supersedes: finished, ..request(requires.clone(), tokens.clone()) }));
            all.push(claim(&Claim { fence: 0, above: 0, ..request(requires.clone(), tokens.clone()) }));
            all.push(claim_afresh(&Claim { fence: 0, ..request(requires, tokens.clone()) }));
        }
        all.push(release(&Release { until: Some(now), ..giving_back(&tokens, false) }));
        all.push(release(&giving_back(&tokens, true)));
        all.push(grant(partition, &tokens, now));
        all.push(grant_afresh(partition, &tokens, now));
    }
    all.extend([0, 3].map(|fence| grant_within(partition, &[token(1)], now, fence)));
    all.push(release(&giving_back(&[token(1)], false)));
    all
}

fn placeholders(text: &str, sign: char) -> BTreeSet<String> {
    let word = |text: &str| text.chars().take_while(char::is_ascii_lowercase).collect::<String>();
    text.split(sign).skip(1).map(|rest| format!("{sign}{}", word(rest))).collect()
}

#[test]
fn exactly_the_used_placeholders_are_bound() {
    for update in all() {
        let text = format!("{} {}", update.update, update.condition);
        assert_eq!(placeholders(&text, '#'), update.names().into_keys().collect(), "{text}");
        assert_eq!(placeholders(&text, ':'), update.values.clone().into_keys().collect(), "{text}");
    }
}

#[test]
fn sets_are_nonempty_and_new_items_expire() {
    for update in all() {
        let empty = |value: &AttributeValue| value.as_ss().is_ok_and(Vec::is_empty);
        assert!(!update.values.values().any(empty), "{update:?}");
        let sets_expiry = update.update.contains("#expires = :expires");
        assert!(sets_expiry || !update.condition.contains("attribute_not_exists(#partition)"), "{update:?}");
        if let Some(expires) = update.values.get(":expires") {
            assert_eq!(*expires, AttributeValue::N((1_000 + 30 * 86_400).to_string()));
        }
    }
}

#[test]
fn claim_extends_expiry_beyond_awaited_messages() {
    let until = Timestamp::from_second(100 * 86_400).unwrap();
    let update = claim(&Claim { until, ..request(ClaimCondition::ItemExists, vec![]) });
    assert_eq!(update.values[":expires"], AttributeValue::N((130 * 86_400).to_string()));
    let update = release(&Release { until: Some(until), ..giving_back(&[], false) });
    assert_eq!(update.values[":expires"], AttributeValue::N((130 * 86_400).to_string()));
}

#[test]
fn claim_names_the_moved_fence() {
    let named = |fence, above| {
        let update = claim(&Claim { fence, above, ..request(ClaimCondition::Always, vec![]) });
        (update.condition, update.values[":next"].as_n().unwrap().clone())
    };
    let free = "(attribute_not_exists(#owner) OR #lease <= :now OR #owner = :attempt)";
    assert_eq!(
        named(7, 7),
        (format!("#expires > :second AND {free} AND #fence = :fence AND #expires <= :latest"), "8".into())
    );
    let first = format!(
        "attribute_not_exists(#partition) OR (#expires > :second AND {free} AND attribute_not_exists(#fence) \
         AND #expires <= :latest)"
    );
    assert_eq!(named(0, 0), (first.clone(), "1".into()));
    assert_eq!(named(0, 7), (first, "9".into()), "the item was forgotten");
}

#[test]
fn expressions_stay_below_size_limit() {
    let many: Vec<Token> = (0..1_000).map(token).collect();
    let update = claim(&request(ClaimCondition::TokenPresent(token(1)), many));
    assert!(update.update.len() + update.condition.len() < 500, "{update:?}");
}

#[test]
fn claim_requires_token_and_free_live_item() {
    let update = claim(&request(ClaimCondition::TokenPresent(token(9)), vec![token(1)]));
    assert_eq!(
        update.condition,
        "contains(#tokens, :required) AND #expires > :second AND \
         (attribute_not_exists(#owner) OR #lease <= :now OR #owner = :attempt) AND #fence = :fence AND #expires <= :latest AND \
         (attribute_not_exists(#tokens) OR size(#tokens) <= :capacity)"
    );
    assert_eq!(
        update.update,
        "SET #owner = :attempt, #lease = :until, #expires = :expires, #fence = :next ADD #tokens :tokens"
    );
    assert_eq!(update.values[":until"], AttributeValue::N("1030000000000".into()));
}

#[test]
fn claim_supersedes_finished_attempt() {
    let finished = AttemptId::from_uuid(Uuid::from_u128(3));
    let update = claim(&Claim { supersedes: Some(finished), ..request(ClaimCondition::ItemExists, vec![]) });
    let free = "(attribute_not_exists(#owner) OR #lease <= :now OR #owner = :attempt OR #owner = :finished)";
    assert_eq!(
        update.condition,
        format!("#expires > :second AND {free} AND #fence = :fence AND #expires <= :latest")
    );
    assert_eq!(update.values[":finished"], AttributeValue::S(finished.to_string()));
}

#[test]
fn release_is_conditional_on_owner_and_fence() {
    let update = release(&giving_back(&[token(1)], false));
    assert_eq!(update.condition, "#owner = :attempt AND #fence = :fence");
    assert_eq!(update.update, "REMOVE #owner, #lease DELETE #tokens :removed");
    let ended = release(&giving_back(&[token(1)], true));
    assert_eq!(ended.update, "SET #expires = :expires REMOVE #owner, #lease, #tokens");
}

#[test]
fn repeated_token_is_granted_once() {
    let update = grant(PartitionKey::from_uuid(Uuid::nil()), &[token(1), token(1)], Timestamp::UNIX_EPOCH);
    assert_eq!(update.values[":tokens"].as_ss().unwrap().len(), 1);
}
