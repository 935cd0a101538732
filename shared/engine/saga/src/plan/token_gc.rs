//! The tokens that are no longer needed.

use std::collections::BTreeSet;

use dedup::Tokens;
use messages::Token;

use super::draft::Draft;
use crate::state_machine::Saga;

impl<S: Saga> Draft<'_, S> {
    /// Returns the tokens that are no longer needed once this plan is carried out.
    ///
    /// Only an attempt that stores the document knows which tokens it expects, so only such an attempt removes tokens
    /// of other attempts. Any other attempt removes the tokens of its own messages and the tokens that it minted.
    /// Processed messages whose tokens are still listed were left by earlier attempts.
    pub(super) fn garbage(&self) -> BTreeSet<Token> {
        let expected: BTreeSet<&Token> = self.expected.iter().map(|expected| &expected.token).collect();
        let answer: Vec<&Token> = match self.input.tokens {
            Tokens::Listed(tokens) => tokens.iter().collect(),
            Tokens::Unchecked => Vec::new(),
        };
        let may_judge = |token: &Token| self.changed || token.is_from(&self.input.attempt);
        let garbage = answer
            .into_iter()
            .filter(|token| token.is_from_attempt() && may_judge(token) && !expected.contains(token))
            .cloned();
        let processed = self.processed.iter().filter(|_| self.changed);
        let left = processed.filter_map(|processed| processed.token.as_ref());
        garbage.chain(self.processed_tokens.iter().chain(left).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use messages::Token;

    use crate::plan::toy::{self, Event, Toy};
    use crate::plan::{admission, decide};

    /// Returns the removed ones among four tokens: a token of the stored document, a token of a lost attempt, a token
    /// of an entry point, and an unneeded token that the attempt minted.
    fn removed(event: Event) -> [bool; 4] {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        let needed = stored.content.expected[0].token.clone();
        let lost = admission::mint(toy::partition(), &toy::attempt(77), 1).remove(0);
        let entry = toy::token(99);
        let minted = toy::minted(2);
        let incoming = toy::incoming(2, event);
        let listed: Vec<Token> = [needed.clone(), lost.clone(), entry.clone()]
            .into_iter()
            .chain(minted.clone())
            .chain(incoming.message.token.clone())
            .collect();
        let tokens = toy::listed(&listed);
        let input = toy::PlanInput { minted: &minted, tokens: &tokens, ..toy::input(Some(&stored)) };
        let remove = decide(&Toy, &input, &[incoming]).unwrap().remove;
        [&needed, &lost, &entry, &minted[1]].map(|token| remove.contains(token))
    }

    #[test]
    fn removable_tokens_follow_from_stored_document() {
        for (event, wanted) in [
            (Event::Prolonged {}, [false, true, false, true]),
            (Event::Opened {}, [false, false, false, true]),
            (Event::Broken {}, [false, false, false, true]),
            (Event::Closed {}, [true, true, false, true]),
        ] {
            assert_eq!(removed(event.clone()), wanted, "{event:?}");
        }
    }

    #[test]
    fn rejected_message_keeps_token_ignored_does_not() {
        let stored = toy::stored(&[toy::incoming(1, Event::Opened {})]);
        for (event, goes) in [(Event::Broken {}, false), (Event::Opened {}, true)] {
            let incoming = toy::incoming(2, event);
            let token = incoming.message.token.clone().unwrap();
            let tokens = toy::listed(std::slice::from_ref(&token));
            let input = toy::PlanInput { minted: &[], tokens: &tokens, ..toy::input(Some(&stored)) };
            let remove = decide(&Toy, &input, &[incoming]).unwrap().remove;
            assert_eq!(remove, if goes { BTreeSet::from([token]) } else { BTreeSet::new() });
        }
    }
}
