//! Token capacity: the case that the ledger accepted no more tokens.
//!
//! An attempt whose write has an unknown outcome cannot remove the tokens that it minted. While writes keep failing
//! this way, each delivery would leave more tokens, until the ledger's item is too large for its store. Therefore, the
//! ledger adds tokens only up to a maximum. Beyond it:
//!
//! - Without a document, none of the partition's tokens was handed out, so an attempt uses tokens of earlier attempts.
//! - With a document, some of these tokens may have been handed out and used. A message that still carries such a token
//!   would be mistaken for the next message with the token. Therefore, the attempt rewrites the document unchanged.
//!   This invalidates all writes with an unknown outcome, and the release removes the tokens that the document does not
//!   expect. The next attempt has capacity.

use dedup::Tokens;
use messages::Token;

use super::draft::Draft;
use super::{Plan, PlanError, PlanInput, TokenDemand};
use crate::document::{Content, Document, Persist};
use crate::state_machine::Saga;

impl<S: Saga> Draft<'_, S> {
    /// Returns the plan for the case that the effects need more tokens than there are: a rewrite that reclaims tokens,
    /// or an error with the number of tokens to mint.
    pub(super) fn reclaim_tokens(&self) -> Result<Plan<S::State>, PlanError> {
        let input = self.input;
        let Tokens::Listed(tokens) = input.tokens else { return Err(self.too_few(0)) };
        let is_expected = |token: &&Token| {
            let expected = input.document.into_iter().flat_map(|document| &document.content.expected);
            expected.into_iter().any(|expected| expected.token == **token)
        };
        let (garbage, kept): (Vec<&Token>, Vec<&Token>) =
            tokens.iter().partition(|token| token.is_from_attempt() && !is_expected(token));
        let was_refused = input.minted.iter().any(|token| !tokens.contains(token));
        match input.document {
            Some(document) if was_refused && !garbage.is_empty() => Ok(Plan {
                decisions: Vec::new(),
                grants: Vec::new(),
                persist: Some(rewrite_unchanged(document, input)),
                takeovers: Vec::new(),
                dispatch: Vec::new(),
                remove: garbage.into_iter().cloned().collect(),
                ended: false,
                until: Some(document.content.waits_until(&document.outbox, input.now)),
                releases_claim: true,
                retry_with: Some(self.demand(kept.len())),
            }),
            Some(_) => Err(self.too_few(kept.len())),
            None => Err(self.too_few(tokens.iter().filter(|token| !token.is_from(&input.attempt)).count())),
        }
    }

    fn demand(&self, capacity: usize) -> TokenDemand {
        TokenDemand { tokens: self.needed, capacity }
    }

    fn too_few(&self, capacity: usize) -> PlanError {
        PlanError::TooFewTokens(self.demand(capacity))
    }
}

/// Returns a write that changes nothing but the attempt and its fence.
fn rewrite_unchanged<S: Clone>(document: &Document<S>, input: &PlanInput<'_, S>) -> Persist<S> {
    Persist {
        partition: input.partition,
        loaded: Some(document.version),
        version: input.next_version(),
        content: Content {
            attempt: input.attempt,
            fence: input.fence,
            keeps_claim: false,
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
    use crate::plan::{PlanError, TokenDemand, admission, decide};

    /// The tokens of attempts whose writes have an unknown outcome.
    fn left() -> Vec<Token> {
        admission::mint(toy::partition(), &toy::attempt(77), 3)
    }

    #[test]
    fn tokens_of_others_serve_without_document() {
        let incoming = toy::incoming(1, Event::Opened {});
        let minted = toy::minted(2);
        let tokens = toy::listed(&[left(), incoming.message.token.iter().cloned().collect()].concat());
        let input = toy::PlanInput { minted: &minted, tokens: &tokens, ..toy::input(None) };
        let plan = decide(&Toy, &input, &[incoming]).unwrap();
        let expected = plan.persist.unwrap().content.expected;
        assert!(expected.iter().all(|expected| left().contains(&expected.token)) && expected.len() == 2);
        assert_eq!(plan.remove.iter().filter(|token| left().contains(token)).count(), 1);
    }

    #[test]
    fn attempt_without_tokens_rewrites_document_and_reclaims() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let waiting: Vec<Token> =
            stored.content.expected.iter().map(|expected| expected.token.clone()).collect();
        let incoming = toy::incoming(2, Event::Prolonged {});
        let own = incoming.message.token.clone().unwrap();
        let minted = toy::minted(1);
        let tokens = toy::listed(&[left(), waiting.clone(), vec![own]].concat());
        let input = toy::PlanInput { minted: &minted, tokens: &tokens, ..toy::input(Some(&stored)) };
        let plan = decide(&Toy, &input, std::slice::from_ref(&incoming)).unwrap();
        assert_eq!(plan.remove, left().into_iter().collect());
        assert_eq!(plan.retry_with, Some(TokenDemand { tokens: 1, capacity: waiting.len() + 1 }));
        assert!(plan.decisions.is_empty() && plan.dispatch.is_empty() && !plan.ended);
        let persist = plan.persist.unwrap();
        let mut content = persist.content;
        assert_eq!((content.attempt, content.fence), (input.attempt, input.fence));
        (content.attempt, content.fence) = (stored.content.attempt, stored.content.fence);
        assert_eq!((content, persist.loaded), (stored.content.clone(), Some(stored.version)));

        // If there is nothing to remove, the partition needs all of its tokens.
        let tokens = toy::listed(&[waiting, incoming.message.token.iter().cloned().collect()].concat());
        let input = toy::PlanInput { tokens: &tokens, ..input };
        let refused = decide(&Toy, &input, &[incoming]);
        let demand = TokenDemand { tokens: 1, capacity: 3 };
        assert!(matches!(refused, Err(PlanError::TooFewTokens(found)) if found == demand), "{refused:?}");
    }
}
