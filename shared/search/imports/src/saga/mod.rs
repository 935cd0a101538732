//! The state machine of one search import.
//!
//! [`transition`] says what an event changes and what is to be done about it, and does nothing itself: no I/O,
//! no clock, no randomness, no async. It is the only place where a state changes; live runs and checkers call
//! the same function.
//!
//! In reading order:
//! - [`state`]: the six states and what is remembered in each;
//! - [`event`]: the nine events, and the tokens that handling one may need;
//! - [`deadlines`]: how long a search waits for what;
//! - [`transition()`]: one arm for every pair of state and event;
//! - `collect`: how files and announcements come together; `decision`: how a search ends;
//! - [`table`]: the table and the diagram of all this, drawn by running it.

mod collect;
pub mod deadlines;
mod decision;
pub mod event;
pub mod state;
pub mod table;
mod transition;

use std::collections::BTreeMap;

use jiff::Timestamp;
use messages::{Body, MessageId, PartitionKey, Token};
use outbox::View;
use saga::Saga;

pub use deadlines::Deadlines;
pub use decision::{CANCELLED, Decision};
pub use event::{Event, Moment};
pub use state::{Ended, File, Import, Look, State};
pub use transition::transition;

use crate::ids::TIMEOUT;
use crate::messages::SearchEvent;

/// The saga of a search.
#[derive(Debug, Clone, Copy, Default)]
pub struct SearchImport {
    /// How long it waits for what.
    pub deadlines: Deadlines,
}

impl Saga for SearchImport {
    const NAME: &'static str = crate::SYSTEM;
    type State = State;
    type Event = SearchEvent;

    fn transition(&self, state: &State, event: &Event<'_>, now: Timestamp) -> Decision {
        transition(state, &Moment { event, now, deadlines: self.deadlines })
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        state.completed_at()
    }

    fn name_of(&self, state: &State) -> Option<&'static str> {
        Some(state.name())
    }

    fn view(&self, partition: PartitionKey, state: &State) -> Option<View> {
        state.job(partition).as_ref().map(View::from)
    }

    /// Parsing starts once in a search, and the event that starts it announces as many tokens as that needs; every
    /// other event of the group needs no more than two.
    fn tokens(&self, events: &[&SearchEvent]) -> usize {
        let needed = || events.iter().map(|event| event::tokens_needed(event));
        let most = needed().max().unwrap_or(0);
        most.saturating_sub(2) + needed().map(|needed| needed.min(2)).sum::<usize>()
    }

    fn timers(&self, state: &State) -> BTreeMap<String, MessageId> {
        let running = state.timeout().map(|id| (TIMEOUT.to_owned(), MessageId::from_uuid(id.as_uuid())));
        running.into_iter().collect()
    }

    fn stamp(&self, request: &mut Body, reply_token: &Token) {
        let data = std::mem::take(&mut request.data);
        request.data = data.with("reply_token", reply_token.as_str().into());
    }
}
