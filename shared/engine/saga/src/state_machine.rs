//! What an application writes.

use std::collections::BTreeMap;
use std::fmt::Debug;

use jiff::Timestamp;
use messages::{Body, MessageId, PartitionKey, Payload, Token};
use outbox::View;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decision::Decision;

/// One event, as a state machine sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a, E> {
    /// The message that brought it; ids of effects and timers are derived from it.
    pub id: MessageId,
    /// The partition it belongs to.
    pub partition: PartitionKey,
    /// What happened.
    pub body: &'a E,
}

/// A state machine for each partition.
pub trait Saga: Send + Sync + 'static {
    /// Its name.
    const NAME: &'static str;
    /// The version of the states that it writes.
    const STATE_VERSION: u32 = 1;

    /// What is remembered between two events. The default is the state of a partition of which nothing is stored.
    type State: Serialize + DeserializeOwned + Default + Clone + Debug + PartialEq + Send + Sync;
    /// What can happen.
    type Event: Payload;

    /// What an event changes, and what is to be done about it. Pure: no I/O, no clock, no randomness. It may be called
    /// twice with one event; the second answer is then [`Decision::Ignore`].
    fn transition(
        &self,
        state: &Self::State,
        event: &Event<'_, Self::Event>,
        now: Timestamp,
    ) -> Decision<Self::State>;

    /// When the partition ended, if it has. It stays for the retention, so that late duplicates meet it.
    fn ended_at(&self, state: &Self::State) -> Option<Timestamp>;

    /// What a state is called in the history of its partition; none where states have no names.
    fn name_of(&self, _state: &Self::State) -> Option<&'static str> {
        None
    }

    /// What readers are shown of a state; its revision is filled in by whoever stores it.
    fn view(&self, _partition: PartitionKey, _state: &Self::State) -> Option<View> {
        None
    }

    /// How many tokens to mint for these events, while the state is still being loaded. Each [`Decision`] needs one for
    /// every effect that somebody answers and every timer. Too few cost one more claim, too many cost space until the
    /// next release.
    fn tokens(&self, events: &[&Self::Event]) -> usize {
        events.len()
    }

    /// One step: a state of version `from` as version `from + 1` has it.
    ///
    /// # Errors
    /// When that version is not supported any more, in words.
    fn upcast_state(&self, from: u32, _state: Value) -> Result<Value, String> {
        Err(format!("nobody reads states of version {from}"))
    }

    /// The timers that run in a state, by their names: for documents that were stored before timers were kept beside
    /// the state.
    fn timers(&self, _state: &Self::State) -> BTreeMap<String, MessageId> {
        BTreeMap::new()
    }

    /// Puts the token for the answer into the data of a request, for consumers of an earlier release that look for it
    /// there. The envelope has it in any case.
    fn stamp(&self, _request: &mut Body, _reply_token: &Token) {}
}
