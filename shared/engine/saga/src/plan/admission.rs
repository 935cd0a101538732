//! The condition and the tokens of a claim, before the tokens in the partition are known.

use dedup::ClaimCondition;
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

/// Returns the condition of a second claim, after the first one was refused as a duplicate although the document
/// expects one of the messages; `None` if it expects none. There are two possible causes. The ledger has forgotten the
/// item, for example if an earlier version wrote it and it was not used for a month. Or the document is an earlier
/// version; then its next write is refused, since it is conditional.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::toy::{self, Event};

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

    #[test]
    fn minted_tokens_name_attempt_and_partition() {
        let (partition, attempt) = (toy::partition(), toy::attempt(1));
        let minted = mint(partition, &attempt, 3);
        assert_eq!(minted.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert!(minted.iter().all(|token| token.is_from(&attempt) && token.is_for(partition)));
        assert_eq!(mint(partition, &attempt, 0), []);
    }
}
