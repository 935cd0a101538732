//! Token capacity: the case that the ledger accepted no more tokens.
//!
//! An attempt whose write has an unknown outcome cannot remove the tokens that it minted. While writes keep failing
//! this way, each delivery would leave more tokens, until the ledger's item is too large for its store. So the ledger
//! adds tokens only up to a maximum. Beyond it:
//!
//! - Without a document, none of the partition's tokens was handed out, so an attempt uses those of earlier attempts.
//! - With a document, some of them may have been handed out and used, and a message that still carries one would be
//!   mistaken for the message that gets it next. So the attempt rewrites the document unchanged. This invalidates all
//!   writes with an unknown outcome, and the release removes the tokens that the document does not expect. The next
//!   attempt has capacity.

use std::collections::VecDeque;

use dedup::Tokens;
use messages::Token;

use super::draft::Draft;
use super::{Known, Need, Plan, PlanError};
use crate::document::{Content, Document, Persist};
use crate::state_machine::Saga;

/// Returns the tokens that an attempt may hand out, its own first.
pub(super) fn spare<S>(known: &Known<'_, S>) -> VecDeque<Token> {
    let Tokens::Listed(tokens) = known.tokens else { return VecDeque::new() };
    let own = known.minted.iter().filter(|token| tokens.contains(*token));
    let of_nobody = tokens.iter().filter(|token| {
        known.document.is_none() && token.is_from_attempt() && !token.is_from(&known.attempt)
    });
    own.chain(of_nobody).cloned().collect()
}

impl<S: Saga> Draft<'_, S> {
    /// Returns the plan for the case that the effects need more tokens than there are: a rewrite that reclaims tokens,
    /// or an error with the number of tokens to mint.
    pub(super) fn make_room(&self) -> Result<Plan<S::State>, PlanError> {
        let known = self.known;
        let Tokens::Listed(tokens) = known.tokens else { return Err(self.too_few(0)) };
        let is_expected = |token: &&Token| {
            let expected = known.document.into_iter().flat_map(|document| &document.content.expected);
            expected.into_iter().any(|expected| expected.token == **token)
        };
        let (garbage, kept): (Vec<&Token>, Vec<&Token>) =
            tokens.iter().partition(|token| token.is_from_attempt() && !is_expected(token));
        let was_refused = known.minted.iter().any(|token| !tokens.contains(token));
        match known.document {
            Some(document) if was_refused && !garbage.is_empty() => Ok(Plan {
                judgements: Vec::new(),
                persist: Some(as_it_is(document, known)),
                dispatch: Vec::new(),
                remove: garbage.into_iter().cloned().collect(),
                ended: false,
                until: Some(document.content.waits_until(&document.outbox, known.now)),
                gives_back: true,
                again: Some(self.need(kept.len())),
            }),
            Some(_) => Err(self.too_few(kept.len())),
            None => Err(self.too_few(tokens.iter().filter(|token| !token.is_from(&known.attempt)).count())),
        }
    }

    fn need(&self, room: usize) -> Need {
        Need { tokens: self.needed, room }
    }

    fn too_few(&self, room: usize) -> PlanError {
        PlanError::TooFewTokens(self.need(room))
    }
}

/// Returns a write that changes nothing but the attempt and its fence.
fn as_it_is<S: Clone>(document: &Document<S>, known: &Known<'_, S>) -> Persist<S> {
    Persist {
        partition: known.partition,
        loaded: Some(document.version),
        content: Content {
            attempt: known.attempt,
            fence: known.fence,
            leaves_claim: false,
            ..document.content.clone()
        },
        add: Vec::new(),
        cancel: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use messages::Token;

    use crate::plan::toy::{self, Event, Toy};
    use crate::plan::{Need, PlanError, admission, decide};

    /// The tokens of attempts whose writes have an unknown outcome.
    fn left() -> Vec<Token> {
        admission::mint(toy::partition(), &toy::attempt(77), 3)
    }

    #[test]
    fn while_nothing_is_stored_what_others_have_minted_serves() {
        let incoming = toy::incoming(1, Event::Opened {});
        let minted = toy::minted(2);
        let tokens = toy::listed(&[left(), incoming.message.token.iter().cloned().collect()].concat());
        let known = toy::Known { minted: &minted, tokens: &tokens, ..toy::known(None) };
        let plan = decide(&Toy, &known, &[incoming]).unwrap();
        let expected = plan.persist.unwrap().content.expected;
        assert!(expected.iter().all(|expected| left().contains(&expected.token)) && expected.len() == 2);
        assert_eq!(plan.remove.iter().filter(|token| left().contains(token)).count(), 1);
    }

    #[test]
    fn an_attempt_without_tokens_stores_the_document_as_it_is_and_makes_room() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let waiting: Vec<Token> =
            stored.content.expected.iter().map(|expected| expected.token.clone()).collect();
        let incoming = toy::incoming(2, Event::Prolonged {});
        let own = incoming.message.token.clone().unwrap();
        let minted = toy::minted(1);
        let tokens = toy::listed(&[left(), waiting.clone(), vec![own]].concat());
        let known = toy::Known { minted: &minted, tokens: &tokens, ..toy::known(Some(&stored)) };
        let plan = decide(&Toy, &known, std::slice::from_ref(&incoming)).unwrap();
        assert_eq!(plan.remove, left().into_iter().collect());
        assert_eq!(plan.again, Some(Need { tokens: 1, room: waiting.len() + 1 }));
        assert!(plan.judgements.is_empty() && plan.dispatch.is_empty() && !plan.ended);
        let persist = plan.persist.unwrap();
        let mut content = persist.content;
        assert_eq!((content.attempt, content.fence), (known.attempt, known.fence));
        (content.attempt, content.fence) = (stored.content.attempt, stored.content.fence);
        assert_eq!((content, persist.loaded), (stored.content.clone(), Some(stored.version)));

        // If there is nothing to remove, the partition needs all of its tokens.
        let tokens = toy::listed(&[waiting, incoming.message.token.iter().cloned().collect()].concat());
        let known = toy::Known { tokens: &tokens, ..known };
        let refused = decide(&Toy, &known, &[incoming]);
        let need = Need { tokens: 1, room: 3 };
        assert!(matches!(refused, Err(PlanError::TooFewTokens(found)) if found == need), "{refused:?}");
    }
}
