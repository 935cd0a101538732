//! The trait that an application implements.

use std::collections::BTreeMap;
use std::fmt::Debug;

use jiff::Timestamp;
use messages::{Body, Message, MessageId, PartitionKey, Payload, Token};
use outbox::View;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::decision::Decision;
use crate::requester::Requester;

/// An event as a state machine sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Event<'a, E> {
    /// The id of the event's message; the ids of effects and timers are derived from it.
    pub id: MessageId,
    /// The partition that the event belongs to.
    pub partition: PartitionKey,
    /// The event itself.
    pub body: &'a E,
    message: Option<&'a Message>,
}

impl<'a, E> Event<'a, E> {
    /// Creates an event without a message, for tests of a state machine.
    pub const fn new(id: MessageId, partition: PartitionKey, body: &'a E) -> Self {
        Self { id, partition, body, message: None }
    }

    /// Creates the event of a message.
    pub const fn of(message: &'a Message, body: &'a E) -> Self {
        Self { id: message.id, partition: message.partition, body, message: Some(message) }
    }

    /// Returns the sender of the event, if it is a request of a saga with the events `R`; see
    /// [`Advance::request`](crate::Advance::request).
    pub fn requester<R: Payload>(&self) -> Option<Requester<R>> {
        self.message.and_then(Requester::of)
    }
}

/// A state machine with one instance for each partition.
pub trait Saga: Send + Sync + 'static {
    /// The saga's name.
    const NAME: &'static str;
    /// The version of the states that this code writes.
    const STATE_VERSION: u32 = 1;

    /// The state between two events. The default is the state of a partition without a stored document.
    type State: Serialize + DeserializeOwned + Default + Clone + Debug + PartialEq + Send + Sync;
    /// The events.
    type Event: Payload;

    /// Returns the next state and the effects of an event. Pure: no I/O, no clock, no randomness. A repeated attempt calls it
    /// again with the same state and event. Each message takes effect once. Two messages about one fact, such as a reply
    /// and its timeout, are two events: the second one should return [`Decision::Ignore`].
    fn transition(
        &self,
        state: &Self::State,
        event: &Event<'_, Self::Event>,
        now: Timestamp,
    ) -> Decision<Self::State>;

    /// Returns when the partition ended; `None` if it has not. The document stays for the retention, so that late
    /// duplicates are recognised. The retention begins when the end is stored, or at this time if it is later.
    fn ended_at(&self, state: &Self::State) -> Option<Timestamp>;

    /// Returns the name of a state for the history of its partition; `None` if states have no names.
    fn state_name(&self, _state: &Self::State) -> Option<&'static str> {
        None
    }

    /// Returns the view of a state for readers. The store sets its revision.
    fn view(&self, _partition: PartitionKey, _state: &Self::State) -> Option<View> {
        None
    }

    /// Returns the number of tokens to mint for these events, before the state is known. Each [`Decision`] needs one
    /// token for every request and every timer. Too few tokens cost one more claim; too many take space until the next
    /// release.
    fn tokens(&self, events: &[&Self::Event]) -> usize {
        events.len()
    }

    /// Converts a state from version `from` to version `from + 1`.
    ///
    /// # Errors
    /// Returns the reason if that version is no longer supported.
    fn upcast_state(&self, from: u32, _state: Value) -> Result<Value, String> {
        Err(format!("states of version {from} are not supported"))
    }

    /// Returns the running timers of a state by name, for documents that were stored before timers became part of the
    /// document.
    fn timers(&self, _state: &Self::State) -> BTreeMap<String, MessageId> {
        BTreeMap::new()
    }

    /// Adds the reply token to the data of a request, for consumers of an earlier version that expect it there. The
    /// envelope always carries it.
    fn embed_reply_token(&self, _request: &mut Body, _reply_token: &Token) {}
}
