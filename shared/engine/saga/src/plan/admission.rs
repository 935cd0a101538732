//! What a claim asks for, before it is known which tokens are there.

use dedup::Requirement;
use messages::{AttemptId, PartitionKey, Token};

use super::Incoming;
use crate::document::Document;

/// What a group's claim has to require: one message puts its token into the condition, so that a duplicate costs
/// one call; several look theirs up in the answer. One without a token asks for nothing.
pub fn requirement<E>(group: &[Incoming<E>]) -> Requirement {
    let mut tokens = group.iter().map(|incoming| &incoming.message.token);
    match group {
        [only] => only.message.token.clone().map_or(Requirement::Nothing, Requirement::Token),
        _ if tokens.any(Option::is_none) => Requirement::Nothing,
        _ => Requirement::Known,
    }
}

/// What to require instead when a claim was refused as a duplicate, although the document waits for one of the messages.
/// The ledger has forgotten the item then, as one that an earlier version has written and not touched for a month, or the
/// document is an earlier version. Its next write, which is conditional, tells the two apart.
pub fn awaited<S, E>(
    requires: &Requirement,
    document: Option<&Document<S>>,
    group: &[Incoming<E>],
) -> Option<Requirement> {
    let content = &document?.content;
    let mut tokens = group.iter().filter_map(|incoming| incoming.message.token.as_ref());
    let is_awaited = *requires != Requirement::Nothing && tokens.any(|token| content.expects(token));
    is_awaited.then_some(Requirement::Nothing)
}

/// `count` fresh tokens of a partition.
pub fn mint(partition: PartitionKey, attempt: &AttemptId, count: usize) -> Vec<Token> {
    (0..count).map(|n| Token::minted_by_attempt(partition, attempt, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::toy::{self, Event};

    #[test]
    fn one_message_requires_its_token_and_several_a_known_partition() {
        let [one, two] = [1, 2].map(|n| toy::incoming(n, Event::Opened {}));
        let untokened = toy::untokened(toy::incoming(3, Event::Opened {}));
        let token = one.message.token.clone().unwrap();
        for (group, wanted) in [
            (vec![one.clone()], Requirement::Token(token)),
            (vec![one.clone(), two], Requirement::Known),
            (vec![untokened.clone()], Requirement::Nothing),
            (vec![one, untokened], Requirement::Nothing),
        ] {
            assert_eq!(requirement(&group), wanted);
        }
    }

    #[test]
    fn a_message_that_the_document_awaits_needs_no_ledger_item() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let answer = toy::with_token(toy::incoming(2, Event::Closed {}), &stored.content.expected[0].token);
        let other = toy::with_token(toy::incoming(3, Event::Closed {}), &toy::foreign_token());
        let instead = |document, group: &[toy::In]| awaited(&requirement(group), document, group);
        assert_eq!(instead(Some(&stored), std::slice::from_ref(&answer)), Some(Requirement::Nothing));
        assert_eq!(instead(Some(&stored), &[other.clone(), answer.clone()]), Some(Requirement::Nothing));
        assert_eq!(instead(Some(&stored), &[other]), None, "nobody waits for it");
        assert_eq!(instead(None, &[answer]), None);
    }

    #[test]
    fn minted_tokens_differ_and_name_their_attempt_and_partition() {
        let (partition, attempt) = (toy::partition(), toy::attempt(1));
        let minted = mint(partition, &attempt, 3);
        assert_eq!(minted.iter().collect::<std::collections::BTreeSet<_>>().len(), 3);
        assert!(minted.iter().all(|token| token.is_from(&attempt) && token.is_for(partition)));
        assert_eq!(mint(partition, &attempt, 0), []);
    }
}
