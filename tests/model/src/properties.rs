//! The invariants, as properties of every state that can be reached, and the situations that must be among them.

use messages::{MessageId, Verdict};
use saga::Saga;
use stateright::Property;

use crate::keyed::Of;
use crate::protocol::{Check, always, sometimes};
use crate::system::{Phase, Stored, System};

/// Those of any saga; the invariants by the names that they have in ARCHITECTURE.md.
pub(crate) fn all<S: Saga>() -> Vec<Property<Check<S>>> {
    invariants().into_iter().chain(situations()).collect()
}

fn invariants<S: Saga>() -> [Property<Check<S>>; 8] {
    [
        always("I1 at most one state change per message id", |_, system| {
            system.seen.changes.values().all(|count| *count <= 1)
        }),
        always("I2 nothing is sent that was not stored", |_, system| !system.seen.unstored),
        always("I3 nothing is asked for more often than without faults", |check, system| {
            system.asks_no_more_than(check)
        }),
        always("I4 no token is removed that is still needed", |_, system| {
            system.keeps_what_is_expected() && !system.seen.lost
        }),
        always("I5 a duplicate never brings an ended partition back", |_, system| {
            !(system.expired && system.document.is_some())
        }),
        always("I6 document and ledger stay bounded", |check, system| system.is_bounded(check)),
        always("I7 the system comes to rest only where it does without faults", |check, system| {
            !system.is_at_rest() || system.is_done(check)
        }),
        always("every stored state is one that is stored without faults", |check, system| {
            system.document.as_ref().is_none_or(|stored| check.limits.states.contains(&stored.state))
        }),
    ]
}

/// What must happen sometimes, or the check has become too narrow.
fn situations<S: Saga>() -> [Property<Check<S>>; 5] {
    [
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
            check.budget().crashes + check.budget().copies == 0
                || system
                    .workers
                    .iter()
                    .any(|phase| matches!(phase, Phase::Loaded(id, ..) if !system.is_admitted(id)))
        }),
        sometimes("an earlier version of the document is loaded", |check, system| {
            let version =
                |stored: &Option<Stored<Of<S>>>| stored.as_ref().map(|stored| stored.document.value.version);
            let is_behind = |phase: &Phase<Of<S>>| matches!(phase, Phase::Loaded(_, stored, _) if version(stored) < version(&system.document));
            check.budget().stale == 0 || system.workers.iter().any(is_behind)
        }),
        sometimes("a crash is repaired by redelivery", |check, system| {
            check.budget().crashes == 0
                || system.workers.iter().any(|phase| match phase {
                    Phase::Stored(_, _, plan) => plan.value.judgements[0].verdict == Verdict::Recovered,
                    _ => false,
                })
        }),
    ]
}

impl<S: Saga> System<S> {
    fn has_lost_its_lease(&self, phase: &Phase<Of<S>>) -> bool {
        let holder = self.ledger.holder.map(|(attempt, _)| attempt);
        phase.attempt().is_some_and(|attempt| Some(attempt) != holder)
    }

    fn is_admitted(&self, id: &MessageId) -> bool {
        let token = self.queue[id].incoming.value.message.token.as_ref();
        token.is_some_and(|token| self.ledger.tokens.contains(token))
    }

    fn asks_no_more_than(&self, check: &Check<S>) -> bool {
        let most = |said| check.limits.asked.get(said).copied().unwrap_or(0);
        self.seen.asked.iter().all(|(said, messages)| messages.len() <= most(said))
    }

    /// Everything that the document expects is still admitted.
    fn keeps_what_is_expected(&self) -> bool {
        let Some(content) = self.content() else { return true };
        self.has_ended()
            || content.expected.iter().all(|expected| self.ledger.tokens.contains(&expected.token))
    }

    fn is_bounded(&self, check: &Check<S>) -> bool {
        let (limits, budget) = (&check.limits, check.budget());
        // Each of two workers may have minted for one attempt, and those that crashed or lost their lease for another
        // each.
        let attempts = 2 + usize::from(budget.crashes) + usize::from(budget.expiries);
        let tokens = limits.messages + limits.expected + attempts * limits.minted;
        self.ledger.tokens.len() <= tokens
            && self.document.as_ref().is_none_or(|stored| {
                let document = &stored.document.value;
                let content = &document.content;
                content.processed.len() <= limits.messages
                    && content.expected.len() <= limits.expected
                    && document.outbox.len() <= limits.stored
            })
    }

    /// What could be done is done, and no more is left than without faults.
    fn is_done(&self, check: &Check<S>) -> bool {
        let state = self.document.as_ref().map(|stored| stored.state);
        self.expired || check.limits.rests.contains(&state)
    }
}
