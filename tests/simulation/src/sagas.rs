//! The sagas of a workload without their types, and the expected result of their transitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use messages::{Body, Json, Message, MessageId, PartitionKey, Payload, Queue, Token};
use outbox::Key;
use saga::{Content, Effect, Event, Saga};
use serde_json::Value;

use crate::model::{ExpectedWrite, State, WantedMessage};

/// A further saga of a workload, in addition to [`Workload::saga`](crate::Workload::saga).
#[derive(Clone)]
pub struct OtherSaga(pub(crate) Arc<dyn AnySaga>);

impl OtherSaga {
    /// Takes a saga, and whether an instance of it may wait in a state without a timer that runs.
    pub fn new<S: Saga>(saga: S, may_wait: impl Fn(&S::State) -> bool + Send + Sync + 'static) -> Self {
        Self::staying_open(saga, may_wait, |_| false)
    }

    /// Works like [`OtherSaga::new`], for a saga whose instances may stay in some states when no message is left; see
    /// [`Workload::may_stay_open`](crate::Workload::may_stay_open).
    pub fn staying_open<S: Saga>(
        saga: S,
        may_wait: impl Fn(&S::State) -> bool + Send + Sync + 'static,
        may_stay_open: impl Fn(&S::State) -> bool + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(TypedSaga { saga, may_wait, may_stay_open }))
    }
}

/// A saga without its types.
pub(crate) trait AnySaga: Send + Sync {
    /// The queue of the saga's events.
    fn queue(&self) -> Queue;
    fn read(&self, content: &Content) -> Result<State, String>;
    /// Returns `true` if this is a state of this saga that may wait without a timer.
    fn may_wait(&self, state: &State) -> bool;
    /// Returns `true` if this is a state of this saga that may last when no message is left.
    fn may_stay_open(&self, state: &State) -> bool;
    fn postpones(&self, state: Option<&State>, message: &Message, now: Timestamp) -> bool;
    fn embed_reply_token(&self, request: &mut Body, reply_token: &Token);
    /// Computes the write that these messages have to lead to.
    fn follow(
        &self,
        base: Option<(&Content, &State)>,
        messages: &[&Message],
        now: Timestamp,
    ) -> Result<ExpectedWrite, String>;
}

struct TypedSaga<S, F, G> {
    saga: S,
    may_wait: F,
    may_stay_open: G,
}

impl<S, F, G> AnySaga for TypedSaga<S, F, G>
where
    S: Saga,
    F: Fn(&S::State) -> bool + Send + Sync,
    G: Fn(&S::State) -> bool + Send + Sync,
{
    fn queue(&self) -> Queue {
        S::Event::QUEUE
    }

    fn read(&self, content: &Content) -> Result<State, String> {
        let state = content.state.read::<S::State>();
        state.map(|state| Arc::new(state) as State).map_err(|error| error.to_string())
    }

    fn may_wait(&self, state: &State) -> bool {
        state.downcast_ref().is_some_and(&self.may_wait)
    }

    fn may_stay_open(&self, state: &State) -> bool {
        state.downcast_ref().is_some_and(&self.may_stay_open)
    }

    fn postpones(&self, state: Option<&State>, message: &Message, now: Timestamp) -> bool {
        let unknown = S::State::default();
        let state = state.map_or(Some(&unknown), |state| state.downcast_ref());
        let (Some(state), Ok(body)) = (state, message.read::<S::Event>()) else { return false };
        matches!(
            self.saga.transition(state, &Event::of(message, &body), now),
            saga::Decision::Postpone { .. }
        )
    }

    fn embed_reply_token(&self, request: &mut Body, reply_token: &Token) {
        self.saga.embed_reply_token(request, reply_token);
    }

    fn follow(
        &self,
        base: Option<(&Content, &State)>,
        messages: &[&Message],
        now: Timestamp,
    ) -> Result<ExpectedWrite, String> {
        let (mut state, timers) = match base {
            Some((content, state)) => {
                let state = state.downcast_ref::<S::State>();
                let state = state.ok_or_else(|| "it is another saga's state".to_owned())?;
                (state.clone(), content.timers.clone())
            }
            None => Default::default(),
        };
        let timers = if timers.is_empty() { self.saga.timers(&state) } else { timers };
        let expected = base.into_iter().flat_map(|(content, _)| &content.expected);
        let expected = expected.map(|expected| expected.token.clone()).collect();
        let mut wanted = Draft::new(&self.saga, now, timers, expected);
        for message in messages {
            wanted.follow(&mut state, message)?;
        }
        let stored = Json::of(&state).map_err(|error| error.to_string())?;
        let Draft { messages, shown, records, timers, cancelled, .. } = wanted;
        Ok(ExpectedWrite { state: stored, messages, shown, records, timers, cancelled })
    }
}

/// Computes the result of messages without the engine.
struct Draft<'a, S> {
    saga: &'a S,
    now: Timestamp,
    messages: BTreeMap<MessageId, WantedMessage>,
    shown: Option<MessageId>,
    records: BTreeMap<Key, Option<Value>>,
    timers: BTreeMap<String, MessageId>,
    cancelled: Vec<MessageId>,
    /// The tokens that the document waited for before.
    expected: BTreeSet<Token>,
}

impl<'a, S: Saga> Draft<'a, S> {
    fn new(
        saga: &'a S,
        now: Timestamp,
        timers: BTreeMap<String, MessageId>,
        expected: BTreeSet<Token>,
    ) -> Self {
        let (messages, cancelled) = (BTreeMap::new(), Vec::new());
        let records = BTreeMap::new();
        Self { saga, now, messages, shown: None, records, timers, cancelled, expected }
    }

    fn awaits(&self, message: &Message) -> bool {
        let is_expected = message.token.as_ref().is_some_and(|token| self.expected.contains(token));
        is_expected || self.timers.values().any(|id| *id == message.id)
    }

    fn follow(&mut self, state: &mut S::State, message: &Message) -> Result<(), String> {
        let body = message.read::<S::Event>().map_err(|error| error.to_string())?;
        let event = Event::of(message, &body);
        let advance = match self.saga.transition(state, &event, self.now) {
            saga::Decision::Advance(advance) => advance,
            // The message was expected, and is no longer.
            saga::Decision::Ignore { .. } if self.awaits(message) => {
                self.timers.retain(|_, id| *id != message.id);
                return Ok(());
            }
            saga::Decision::Ignore { why }
            | saga::Decision::Postpone { why }
            | saga::Decision::Reject { why } => {
                return Err(format!("{} changed the state, but: {why}", message.body.name));
            }
        };
        self.timers.retain(|_, id| *id != message.id);
        for (index, effect) in advance.effects.into_iter().enumerate() {
            self.add(message, &advance.next, index, effect);
        }
        *state = *advance.next;
        Ok(())
    }

    fn add(&mut self, message: &Message, next: &S::State, index: usize, effect: Effect) {
        let id = message.id.derive(index);
        match effect {
            Effect::Send { to, body } => _ = self.send(id, to, message.partition, body),
            Effect::Request { to, body } => self.send(id, to, message.partition, body).asks = true,
            Effect::Notify { to, partition, body, is_request } => {
                self.send(id, to, partition, body).asks = is_request;
            }
            Effect::Reply { to, partition, token, body } => {
                self.send(id, to, partition, body).answers = token;
            }
            Effect::Schedule { timer, due_at: _, to, body } => {
                self.cancel(&timer);
                let id = message.id.for_timer(&timer);
                self.timers.insert(timer, id);
                self.send(id, to, message.partition, body).is_timer = true;
            }
            Effect::Cancel { timer } => self.cancel(&timer),
            Effect::UpdateView if self.saga.view(message.partition, next).is_some() => self.shown = Some(id),
            Effect::Write { key, body } => _ = self.records.insert(key, body),
            Effect::UpdateView | Effect::Broken(_) => {}
        }
    }

    fn send(
        &mut self,
        id: MessageId,
        queue: Queue,
        partition: PartitionKey,
        body: Body,
    ) -> &mut WantedMessage {
        let (asks, is_timer, answers) = (false, false, None);
        let wanted = WantedMessage { queue, partition, name: body.name, asks, is_timer, answers };
        self.messages.entry(id).insert_entry(wanted).into_mut()
    }

    fn cancel(&mut self, timer: &str) {
        let Some(id) = self.timers.remove(timer) else { return };
        if self.messages.remove(&id).is_none() {
            self.cancelled.push(id);
        }
    }
}
