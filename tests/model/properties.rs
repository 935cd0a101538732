//! The invariants, as properties of every state that can be reached, and the situations that must be among them.

use contracts::{MessageId, Verdict};
use stateright::Property;

use crate::inputs::FILES;
use crate::system::{Phase, Protocol, System};

/// Three inputs, two replies and a timeout change the state at most; each leaves at most one entry.
const MOST_CHANGES: usize = 2 * FILES as usize + 2;

/// All of them, by the names they have in ARCHITECTURE.md.
pub(crate) fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always("I1 at most one state change per message id", |_, state: &System| {
            state.seen.changes.values().all(|count| *count <= 1)
        }),
        Property::always("I2 nothing is sent that was not stored", |_, state: &System| !state.seen.unstored),
        Property::always("I3 one parse command takes effect for each file", |_, state: &System| {
            state.seen.commands.values().all(|commands| commands.len() <= 1)
        }),
        Property::always("I4 no token is removed that is still needed", |_, state: &System| {
            state.keeps_what_is_expected() && !state.seen.lost
        }),
        Property::always("I5 a duplicate never brings an ended search back", |_, state: &System| {
            !(state.expired && state.document.is_some())
        }),
        Property::always("I6 document and ledger stay bounded", |_, state: &System| state.is_bounded()),
        Property::always("I7 the system comes to rest only when everything is done", |_, state: &System| {
            !state.is_at_rest() || state.is_done()
        }),
        Property::sometimes("a search completes", |_, state: &System| {
            state.content().is_some_and(|content| content.state.name() == "Completed")
        }),
        Property::sometimes("a stuck lease is taken over", |protocol, state: &System| {
            protocol.budget.expiries == 0 || state.workers.iter().any(|phase| state.has_lost_its_lease(phase))
        }),
        Property::sometimes("a zombie's write is refused", |protocol, state: &System| {
            let refused =
                |phase: &Phase| matches!(phase, Phase::Conflicted(..)) && state.has_lost_its_lease(phase);
            protocol.budget.expiries == 0 || state.workers.iter().any(refused)
        }),
        Property::sometimes("a duplicate is dropped by its token", |_, state: &System| {
            state.workers.iter().any(|phase| matches!(phase, Phase::Loaded(id, _) if !state.is_admitted(id)))
        }),
        Property::sometimes("a crash is repaired by redelivery", |protocol, state: &System| {
            protocol.budget.crashes == 0
                || state.workers.iter().any(|phase| match phase {
                    Phase::Stored(_, _, plan) => plan.value.judgements[0].verdict == Verdict::Recovered,
                    _ => false,
                })
        }),
    ]
}

impl System {
    fn has_lost_its_lease(&self, phase: &Phase) -> bool {
        let holder = self.ledger.holder.map(|(attempt, _)| attempt);
        phase.attempt().is_some_and(|attempt| Some(attempt) != holder)
    }

    fn is_admitted(&self, id: &MessageId) -> bool {
        let token = self.queue[id].message.value.token.as_ref();
        token.is_some_and(|token| self.ledger.tokens.contains(token))
    }

    /// Everything that the document expects is still admitted.
    fn keeps_what_is_expected(&self) -> bool {
        let Some(content) = self.content() else { return true };
        self.has_ended()
            || content.expected.iter().all(|expected| self.ledger.tokens.contains(&expected.token))
    }

    fn is_bounded(&self) -> bool {
        let tokens = self.ledger.tokens.len();
        // Each of two workers may have minted for one attempt, and crashed ones for another each.
        let minted = (FILES as usize + 2) * 4;
        tokens <= MOST_CHANGES + minted
            && self.document.as_ref().is_none_or(|stored| {
                let document = &stored.document.value;
                let content = &document.content;
                content.processed.len() <= MOST_CHANGES
                    && content.expected.len() <= FILES as usize + 1
                    && document.outbox.len() <= 2 * MOST_CHANGES
            })
    }

    /// Nobody works and nothing is left to be delivered.
    fn is_at_rest(&self) -> bool {
        self.workers.iter().all(|phase| *phase == Phase::Idle)
            && self.sweeper.is_none()
            && self.queue.values().all(|queued| queued.acknowledged)
            && self.due().is_empty()
    }

    /// The search has ended, and what it wanted done is done.
    fn is_done(&self) -> bool {
        self.expired || self.has_ended()
    }
}
