//! Defects that tests plant into either saga, by changing the result of its transitions.

use std::collections::BTreeMap;

use jiff::Timestamp;
use messages::{Body, MessageId, PartitionKey, Payload, Token};
use outbox::View;
use saga::{Advance, Decision, Effect, Event, Saga};
use serde_json::Value;

/// A defect in a saga.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Defect {
    /// None.
    #[default]
    None,
    /// The first reservation of a trip that stops is not released.
    ForgetsRelease,
    /// The price is not returned.
    ForgetsRefund,
    /// No timer is set.
    ForgetsDeadlines,
    /// A signal that overtakes the request is ignored.
    IgnoresEarlySignals,
    /// Cancellations are ignored.
    IgnoresCancellations,
    /// The end is announced twice.
    AnnouncesTwice,
}

impl Defect {
    /// Every defect.
    pub const ALL: [Self; 6] = [
        Self::ForgetsRelease,
        Self::ForgetsRefund,
        Self::ForgetsDeadlines,
        Self::IgnoresEarlySignals,
        Self::IgnoresCancellations,
        Self::AnnouncesTwice,
    ];

    /// Returns a saga with this defect.
    pub fn into_saga<S>(self, saga: S) -> Defective<S> {
        Defective { saga, defect: self }
    }

    fn ignores<S: Saga>(self, state: &S::State, event: &S::Event) -> bool {
        let name = event.kind().name;
        match self {
            Self::IgnoresEarlySignals => {
                *state == S::State::default() && ["Approved", "Resolved"].contains(&name)
            }
            Self::IgnoresCancellations => name == "Cancelled",
            _ => false,
        }
    }

    fn spoil<S>(self, advance: &mut Advance<S>) {
        let of = |effect: &Effect, named: &str| match effect {
            Effect::Request { body, .. } | Effect::Send { body, .. } => body.name == named,
            _ => false,
        };
        match self {
            Self::ForgetsRelease => {
                if let Some(first) = advance.effects.iter().position(|effect| of(effect, "Release")) {
                    advance.effects.remove(first);
                }
            }
            Self::ForgetsRefund => advance.effects.retain(|effect| !of(effect, "Refund")),
            Self::ForgetsDeadlines => {
                advance.effects.retain(|effect| !matches!(effect, Effect::Schedule { .. }));
            }
            Self::AnnouncesTwice => {
                let news = advance.effects.iter().find(|effect| of(effect, "TripEnded")).cloned();
                advance.effects.extend(news);
            }
            Self::None | Self::IgnoresEarlySignals | Self::IgnoresCancellations => {}
        }
    }
}

/// A saga with a defect, or with none.
#[derive(Debug, Clone, Copy)]
pub struct Defective<S> {
    saga: S,
    defect: Defect,
}

impl<S: Saga> Saga for Defective<S> {
    const NAME: &'static str = S::NAME;
    const STATE_VERSION: u32 = S::STATE_VERSION;
    type State = S::State;
    type Event = S::Event;

    fn transition(
        &self,
        state: &S::State,
        event: &Event<'_, S::Event>,
        now: Timestamp,
    ) -> Decision<S::State> {
        if self.defect.ignores::<S>(state, event.body) {
            return Decision::ignore("the planted defect");
        }
        match self.saga.transition(state, event, now) {
            Decision::Advance(mut advance) => {
                self.defect.spoil(&mut advance);
                advance.into()
            }
            other => other,
        }
    }

    fn ended_at(&self, state: &S::State) -> Option<Timestamp> {
        self.saga.ended_at(state)
    }

    fn state_name(&self, state: &S::State) -> Option<&'static str> {
        self.saga.state_name(state)
    }

    fn view(&self, partition: PartitionKey, state: &S::State) -> Option<View> {
        self.saga.view(partition, state)
    }

    fn tokens(&self, events: &[&S::Event]) -> usize {
        self.saga.tokens(events)
    }

    fn upcast_state(&self, from: u32, state: Value) -> Result<Value, String> {
        self.saga.upcast_state(from, state)
    }

    fn timers(&self, state: &S::State) -> BTreeMap<String, MessageId> {
        self.saga.timers(state)
    }

    fn embed_reply_token(&self, request: &mut Body, reply_token: &Token) {
        self.saga.embed_reply_token(request, reply_token);
    }
}
