//! The condition and the tokens of a claim, before the tokens in the partition are known.

use dedup::{Claim, ClaimCondition};
use jiff::Timestamp;
use messages::{AttemptId, PartitionKey, Token};

use super::IncomingEvent;
use crate::document::Document;

/// Returns the condition of a group's claim. A single message puts its token into the condition, so that a duplicate
/// costs one call. Several messages look up their tokens in the answer. A message without a token sets no condition.
pub fn condition<E>(group: &[IncomingEvent<E>]) -> ClaimCondition {
    let mut tokens = group.iter().map(|incoming| &incoming.message.token);
    match group {
        [only] => only.message.token.clone().map_or(ClaimCondition::Always, ClaimCondition::TokenPresent),
        _ if tokens.any(Option::is_none) => ClaimCondition::Always,
        _ => ClaimCondition::ItemExists,
    }
}

/// Returns the condition of a second claim, after the first claim was refused as a duplicate although the document
/// expects one of the messages. Returns `None` if the document expects none of the messages. There are two possible
/// causes. The ledger has forgotten the item, for example if an earlier version wrote it and it was not used for a
/// month. Or the document is an earlier version; then its next write is refused, since it is conditional.
pub fn condition_if_expected<S, E>(
    condition: &ClaimCondition,
    document: Option<&Document<S>>,
    group: &[IncomingEvent<E>],
) -> Option<ClaimCondition> {
    let content = &document?.content;
    let mut tokens = group.iter().filter_map(|incoming| incoming.message.token.as_ref());
    let is_awaited = *condition != ClaimCondition::Always && tokens.any(|token| content.expects(token));
    is_awaited.then_some(ClaimCondition::Always)
}

/// Mints `count` tokens for a partition.
pub fn mint(partition: PartitionKey, attempt: &AttemptId, count: usize) -> Vec<Token> {
    (0..count).map(|n| Token::minted_by_attempt(partition, attempt, n)).collect()
}

/// Returns the claim after a refusal with this fence and expiry.
///
/// At another fence it belongs to a new attempt, with its own tokens. The refused claim may have been granted before,
/// without the worker's knowledge, because the store's client sends a request again if the answer is late. Once its
/// lease has ended, other attempts may hand out its tokens, so the new attempt must not take them for unused. It
/// supersedes the refused attempt, which does nothing.
pub fn claim_at(claim: Claim, fence: u64, expires_at: Timestamp) -> Claim {
    if fence == claim.fence {
        return claim.at(fence, expires_at);
    }
    let attempt = claim.attempt.at_fence(fence);
    let new_tokens = mint(claim.partition, &attempt, claim.new_tokens.len());
    Claim { attempt, new_tokens, supersedes: Some(claim.attempt), ..claim }.at(fence, expires_at)
}

#[cfg(test)]
mod tests {
    use dedup::ledger::Item;
    use dedup::{Admission, Tokens};
    use jiff::SignedDuration;

    use super::*;
    use crate::plan::toy::{self, Event};

    /// Returns the claim of an attempt without a document, with two tokens.
    fn first_claim(attempt: AttemptId) -> Claim {
        Claim {
            partition: toy::partition(),
            attempt,
            now: Timestamp::UNIX_EPOCH,
            lease: SignedDuration::from_secs(30),
            supersedes: None,
            requires: ClaimCondition::Always,
            new_tokens: mint(toy::partition(), &attempt, 2),
            max_tokens: usize::MAX,
            fence: 0,
            above: 0,
            until: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn single_message_requires_token_several_require_item() {
        let [one, two] = [1, 2].map(|n| toy::incoming(n, Event::Opened {}));
        let untokened = toy::untokened(toy::incoming(3, Event::Opened {}));
        let token = one.message.token.clone().unwrap();
        for (group, wanted) in [
            (vec![one.clone()], ClaimCondition::TokenPresent(token)),
            (vec![one.clone(), two], ClaimCondition::ItemExists),
            (vec![untokened.clone()], ClaimCondition::Always),
            (vec![one, untokened], ClaimCondition::Always),
        ] {
            assert_eq!(condition(&group), wanted);
        }
    }

    #[test]
    fn expected_message_needs_no_ledger_item() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let answer = toy::with_token(toy::incoming(2, Event::Closed {}), &stored.content.expected[0].token);
        let other = toy::with_token(toy::incoming(3, Event::Closed {}), &toy::foreign_token());
        let instead = |document, group: &[toy::In]| condition_if_expected(&condition(group), document, group);
        assert_eq!(instead(Some(&stored), std::slice::from_ref(&answer)), Some(ClaimCondition::Always));
        assert_eq!(instead(Some(&stored), &[other.clone(), answer.clone()]), Some(ClaimCondition::Always));
        assert_eq!(instead(Some(&stored), &[other]), None, "the document does not expect it");
        assert_eq!(instead(None, &[answer]), None);
    }

    /// The store executes the first claim twice, and the worker learns only of the refusal.
    #[test]
    fn claim_after_unnoticed_grant_is_new_attempt() {
        let claim = first_claim(toy::attempt(1));
        let (_, granted) = Item::claim(None, &claim);
        let (refusal, _) = Item::claim(granted.clone(), &claim);
        let Admission::Moved { fence, expires_at } = refusal else { panic!("{refusal:?}") };
        let again = claim_at(claim.clone(), fence, expires_at);
        let (Admission::Admitted(admitted), _) = Item::claim(granted, &again) else { panic!("{again:?}") };
        assert!(again.new_tokens.iter().all(|token| token.is_from(&again.attempt)));
        assert!(!again.new_tokens.iter().any(|token| claim.new_tokens.contains(token)));
        let both = [claim.new_tokens, again.new_tokens].concat();
        assert_eq!(admitted.tokens, Tokens::Listed(both.into_iter().collect()), "the first ones stay");
    }

    #[test]
    fn claim_at_same_fence_keeps_attempt() {
        let claim = first_claim(toy::attempt(1));
        let later = claim.max_expiry();
        let again = claim_at(claim.clone(), claim.fence, later);
        assert_eq!((again.attempt, &again.new_tokens), (claim.attempt, &claim.new_tokens));
        assert!(again.expires_at() >= later);
    }

    #[test]
    fn minted_tokens_name_attempt_and_partition() {
        let (partition, attempt) = (toy::partition(), toy::attempt(1));
        let minted = mint(partition, &attempt, 3);
        assert_eq!(minted.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert!(minted.iter().all(|token| token.is_from(&attempt) && token.is_for(partition)));
        assert_eq!(mint(partition, &attempt, 0), []);
    }
}
