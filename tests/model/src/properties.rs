//! The invariants, as properties of every reachable state, and the situations that must occur.

use std::collections::BTreeSet;

use messages::{MessageId, Token, Verdict};
use saga::Saga;

use crate::check::{Check, always, sometimes};
use crate::keyed::Of;
use crate::property::Property;
use crate::system::{Batch, Phase, StoredDocument, System};

/// Returns the properties of every saga. The invariants have the names used in ARCHITECTURE.md.
pub(crate) fn all<S: Saga>() -> Vec<Property<Check<S>>> {
    let rests = always("I7 the system comes to rest only where it does without faults", |check, system| {
        !system.is_at_rest() || system.is_done(check)
    });
    invariants().into_iter().chain([rests]).chain(situations()).collect()
}

/// Returns the invariants of each saga, alone and with another one.
pub(crate) fn invariants<S: Saga>() -> [Property<Check<S>>; 7] {
    [
        always("I1 at most one state change per message id, and per token", |_, system| {
            system.changes_once()
        }),
        always("I2 nothing is sent that was not stored", |_, system| !system.seen.value.unstored),
        always("I3 nothing is asked for more often than without faults", |check, system| {
            system.asks_no_more_than(check)
        }),
        always("I4 no token is removed that is still needed", |_, system| {
            system.keeps_expected_messages() && !system.seen.value.lost
        }),
        always("I5 a duplicate never brings an ended partition back", |_, system| {
            !(system.expired && system.document.is_some())
        }),
        always("I6 document and ledger stay bounded", |check, system| system.is_bounded(check)),
        always("every stored state is one that is stored without faults", |check, system| {
            system.document.as_ref().is_none_or(|stored| check.limits.states.contains(&stored.state))
        }),
    ]
}

/// Returns the situations that must occur; otherwise the check has become too narrow.
pub(crate) fn situations<S: Saga>() -> [Property<Check<S>>; 10] {
    [
        sometimes("a claim is left to the next one", |check, system| {
            let left = |phase: &Phase<Of<S>>| match phase {
                Phase::Stored(_, _, plan) | Phase::Dispatched(_, _, plan) => !plan.value.releases_claim,
                _ => false,
            };
            let begun = |phase: &Phase<Of<S>>| matches!(phase, Phase::Decided(..));
            check.budget().keep == 0 || (system.workers.iter().any(left) && system.workers.iter().any(begun))
        }),
        sometimes("a stuck lease is taken over", |check, system| {
            check.budget().expiries == 0
                || system.workers.iter().any(|phase| system.has_lost_its_lease(phase))
        }),
        sometimes("a zombie's write is refused", |check, system| {
            let refused = |phase: &Phase<Of<S>>| {
                matches!(phase, Phase::Conflicted(..)) && system.has_lost_its_lease(phase)
            };
            check.budget().expiries == 0 || system.workers.iter().any(refused)
        }),
        sometimes("a duplicate is dropped by its token", |check, system| {
            let budget = check.budget();
            budget.crashes + budget.copies + budget.duplicates == 0
                || system.workers.iter().any(
                    |phase| matches!(phase, Phase::Loaded(Batch(id, None), ..) if !system.is_admitted(*id)),
                )
        }),
        sometimes("an earlier version of the document is loaded", |check, system| {
            let version = |stored: &Option<StoredDocument<Of<S>>>| {
                stored.as_ref().map(|stored| stored.document.value.version)
            };
            let is_behind = |phase: &Phase<Of<S>>| matches!(phase, Phase::Loaded(_, stored, _) if version(stored) < version(&system.document));
            check.budget().stale == 0 || system.workers.iter().any(is_behind)
        }),
        sometimes("a crash is repaired by redelivery", |check, system| {
            check.budget().crashes == 0
                || system.workers.iter().any(|phase| phase.has_judged(Verdict::Recovered))
        }),
        sometimes("two messages change the state together", |check, system| {
            !check.budget().groups || system.workers.iter().any(|phase| phase.changes() == 2)
        }),
        sometimes("a message comes with a duplicate of another one", |check, system| {
            let mixes = |phase: &Phase<Of<S>>| phase.changes() == 1 && phase.has_judged(Verdict::Duplicate);
            !check.budget().groups || check.budget().duplicates == 0 || system.workers.iter().any(mixes)
        }),
        sometimes("room is made for tokens", |check, system| {
            check.budget().room.is_none() || check.budget().crashes == 0 || system.is_within_capacity()
        }),
        sometimes("a duplicate finds neither document nor ledger item", |check, system| {
            check.budget().copies + check.budget().duplicates == 0
                || (system.expired && system.ledger.expired && !system.is_idle())
        }),
    ]
}

impl<S: Saga> System<S> {
    fn has_lost_its_lease(&self, phase: &Phase<Of<S>>) -> bool {
        let holder = self.ledger.holder.map(|(attempt, _)| attempt);
        phase.attempt().is_some_and(|attempt| Some(attempt) != holder)
    }

    fn token(&self, id: MessageId) -> Option<&Token> {
        self.queue.value[&id].incoming.value.message.token.as_ref()
    }

    fn is_admitted(&self, id: MessageId) -> bool {
        self.token(id).is_some_and(|token| self.admits(token))
    }

    fn admits(&self, token: &Token) -> bool {
        !self.ledger.expired && self.ledger.tokens.value.contains(token)
    }

    fn changes_once(&self) -> bool {
        let tokens: BTreeSet<_> = self.seen.value.changes.keys().map(|id| self.token(*id)).collect();
        tokens.len() == self.seen.value.changes.len()
            && self.seen.value.changes.values().all(|count| *count <= 1)
    }

    fn asks_no_more_than(&self, check: &Check<S>) -> bool {
        let max = |said| check.limits.asked.get(said).copied().unwrap_or(0);
        self.seen.value.asked.iter().all(|(said, messages)| messages.len() <= max(said))
    }

    /// Returns `true` if every expected message is still admitted.
    fn keeps_expected_messages(&self) -> bool {
        let Some(content) = self.content() else { return true };
        self.has_ended() || content.expected.iter().all(|expected| self.admits(&expected.token))
    }

    /// Returns `true` if no acknowledged message is admitted again. A kept claim leaves tokens to the next attempt; until
    /// then the document lists their messages. A dead-lettered message keeps its token.
    pub(crate) fn forgets_used_tokens(&self) -> bool {
        let is_listed = |id: &MessageId| {
            let processed = self.content().into_iter().flat_map(|content| &content.processed);
            let token = self.token(*id);
            processed.into_iter().any(|processed| processed.token.as_ref() == token)
        };
        self.queue.value.iter().all(|(id, queued)| {
            !queued.acknowledged || queued.dead || !self.is_admitted(*id) || is_listed(id)
        })
    }

    fn is_bounded(&self, check: &Check<S>) -> bool {
        let (limits, budget) = (&check.limits, check.budget());
        // A batch of two messages may need the tokens of both.
        let minted = limits.minted * if budget.groups { 2 } else { 1 };
        // An attempt of the other saga that fails leaves the tokens that it granted here. Each of its two workers may
        // have one, and each fault adds another one.
        let granted = limits.granted * (2 + usize::from(budget.faults()));
        let tokens = match budget.room {
            // This bound does not depend on the number of failed attempts of this saga.
            Some(room) => limits.tokens.max(usize::from(room)) + minted,
            // Each of the two workers may have minted tokens for one attempt, and every crash or lost lease adds
            // another attempt.
            None => {
                let attempts = 2 + usize::from(budget.crashes) + usize::from(budget.expiries);
                limits.tokens + attempts * minted + usize::from(budget.keep)
            }
        };
        let tokens = tokens + granted;
        self.ledger.tokens.value.len() <= tokens
            && self.document.as_ref().is_none_or(|stored| {
                let document = &stored.document.value;
                let content = &document.content;
                content.processed.len() <= limits.messages
                    && content.expected.len() <= limits.expected
                    && document.outbox.len() <= limits.stored
            })
    }

    /// Returns `true` if all possible work is done and no more remains than without faults.
    fn is_done(&self, check: &Check<S>) -> bool {
        let state = self.document.as_ref().map(|stored| stored.state);
        self.expired || check.limits.rests.contains(&state)
    }
}

impl<S: Saga> Phase<Of<S>> {
    /// Returns the verdicts of an attempt whose plan is decided but not yet carried out.
    fn verdicts(&self) -> impl Iterator<Item = Verdict> {
        let plan = match self {
            Self::Stored(_, _, plan) | Self::Dispatched(_, _, plan) => Some(plan),
            _ => None,
        };
        plan.into_iter().flat_map(|plan| &plan.value.decisions).map(|decision| decision.verdict)
    }

    fn has_judged(&self, verdict: Verdict) -> bool {
        self.verdicts().any(|own| own == verdict)
    }

    fn changes(&self) -> usize {
        self.verdicts().filter(|verdict| *verdict == Verdict::Handled).count()
    }
}
