//! Sample data of a fictitious system for the engine: a saga with arbitrary states, and its messages.

use std::collections::BTreeMap;

use dedup::{Claim, ClaimCondition};
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Body, Host, Json, Message, MessageId, PartitionKey, SessionId, messages};
use outbox::{Entry, Key, SessionRecord, StageError, View, Write};
use saga::{Content, Decision, Persist, SAGA};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

/// The fictitious system.
pub const SYSTEM: &str = "sample";

messages! {
    /// The events of [`Samples`].
    pub enum Event of "sample" to SAGA {
        /// Any event.
        Happened {} = 1,
    }
}

/// The saga of the samples, which is only stored and displayed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Samples;

/// The state of a sample.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Distinguishes writes.
    pub name: String,
    /// The list that contains the view.
    pub list: Uuid,
    /// The time that determines its position in the list.
    pub created_at: Timestamp,
    /// The time at which the instance ended, if it has ended.
    pub ended_at: Option<Timestamp>,
}

impl saga::Saga for Samples {
    const NAME: &'static str = SYSTEM;
    type State = State;
    type Event = Event;

    fn transition(&self, _: &State, _: &saga::Event<'_, Event>, _: Timestamp) -> Decision<State> {
        Decision::ignore("nothing happens to samples")
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        state.ended_at
    }

    fn view(&self, partition: PartitionKey, state: &State) -> Option<View> {
        let view = View::new(partition, json!({ "name": state.name }), state.ended_at.is_some());
        Some(View { list: state.list, created_at: state.created_at, ..view })
    }
}

/// Returns the host's time in whole seconds, which every store can represent.
pub fn now(host: &dyn Host) -> Timestamp {
    Timestamp::from_second(host.now().as_second()).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Returns the time `seconds` later, or earlier if negative.
pub fn later(at: Timestamp, seconds: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// Returns a new, unused partition.
pub fn partition(host: &dyn Host) -> PartitionKey {
    PartitionKey::from_uuid(host.fresh_id())
}

/// Returns a new, unused attempt.
pub fn attempt(host: &dyn Host) -> AttemptId {
    AttemptId::from_uuid(host.fresh_id())
}

/// Returns a claim of 30 seconds, which requires that the item exists and adds no tokens.
pub fn claim(partition: PartitionKey, attempt: AttemptId, now: Timestamp) -> Claim {
    Claim {
        partition,
        attempt,
        now,
        lease: SignedDuration::from_secs(30),
        supersedes: None,
        requires: ClaimCondition::ItemExists,
        new_tokens: Vec::new(),
        max_tokens: usize::MAX,
        fence: 0,
        above: 0,
        until: now,
    }
}

/// Returns a small message of a partition.
pub fn message(host: &dyn Host, partition: PartitionKey) -> Message {
    let body = Body {
        system: SYSTEM.to_owned(),
        name: "Happened".to_owned(),
        version: 1,
        data: Json::from(json!({})),
    };
    let id = MessageId::from_uuid(host.fresh_id());
    Message { traceparent: None, ..Message::new(id, "testing", partition, now(host), body) }
}

/// Returns an outbox entry with a new message.
///
/// # Errors
/// Never fails, because the message is small.
pub fn entry(host: &dyn Host, partition: PartitionKey, due_at: Timestamp) -> Result<Entry, StageError> {
    Entry::message(&message(host, partition), SAGA, due_at)
}

/// Returns a session with one message and one record.
///
/// # Errors
/// Never fails, because the message is small.
pub fn session(host: &dyn Host) -> Result<SessionRecord, StageError> {
    let (id, now) = (host.fresh_id(), now(host));
    Ok(SessionRecord {
        id: SessionId::from_uuid(id),
        entries: vec![entry(host, PartitionKey::from_uuid(id), now)?],
        views: Vec::new(),
        reads: Vec::new(),
        writes: vec![Write::new(Key::new("booking", id.to_string()), true)],
        committed_at: now,
    })
}

/// Returns the content of a partition that has not ended; `name` distinguishes writes.
pub fn content(host: &dyn Host, name: &str) -> Content {
    let state = State { name: name.to_owned(), list: host.fresh_id(), created_at: now(host), ended_at: None };
    with_state(host, json!(state))
}

/// Returns the content of a partition that ended at `at`.
pub fn ended(host: &dyn Host, at: Timestamp) -> Content {
    let (name, list) = ("ended".to_owned(), host.fresh_id());
    let state = State { name, list, created_at: now(host), ended_at: Some(at) };
    Content { ended_at: Some(at), ..with_state(host, json!(state)) }
}

/// Returns the list of a sample.
///
/// # Errors
/// Returns an error if the content has another state.
pub fn list_of(content: &Content) -> Result<Uuid, serde_json::Error> {
    serde_json::from_value::<State>(content.state.value().clone()).map(|state| state.list)
}

/// Returns the content of a partition with any state.
pub fn with_state(host: &dyn Host, state: Value) -> Content {
    Content {
        state: state.into(),
        state_version: 1,
        queue: None,
        ended_at: None,
        processed: Vec::new(),
        expected: Vec::new(),
        timers: BTreeMap::new(),
        attempt: attempt(host),
        fence: 0,
        keeps_claim: false,
        paused: None,
        terminated: None,
    }
}

/// Returns a write based on version `loaded`; the first one stores version 1.
pub fn persist(partition: PartitionKey, loaded: Option<u64>, content: Content) -> Persist {
    let version = loaded.unwrap_or(0).saturating_add(1);
    Persist { partition, loaded, version, content, add: Vec::new(), cancel: Vec::new() }
}

/// Returns a view in a list that many views share.
pub fn view(host: &dyn Host, partition: PartitionKey, revision: u64, ended: bool) -> View {
    let body = json!({ "name": format!("revision {revision}"), "ended": ended });
    let (list, created_at) = (Uuid::from_u128(1), now(host));
    View { list, created_at, ..View::new(partition, body, ended) }.at_revision(revision)
}
