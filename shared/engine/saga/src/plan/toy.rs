//! A minimal saga for tests: it opens, sends one request, waits under a timer, and closes.

use std::sync::LazyLock;

use dedup::Tokens;
use dedup::ledger::ITEM_LIFETIME;
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Body, Message, MessageId, PartitionKey, Payload, Queue, Token, messages};
use outbox::{Key, View};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{IncomingEvent, admission, decide};
use crate::decision::Decision;
use crate::document::Document;
use crate::instance::{Instance, SAGA};
use crate::state_machine::{self, Saga};

const DESK: Queue = Queue::named("desk");
const OTHER: Queue = Queue::named("other");

messages! {
    /// The events.
    pub(crate) enum Event of "toy" to SAGA {
        Opened {} = 1,
        Prolonged {} = 1,
        Closed {} = 1,
        Broken {} = 1,
        Early {} = 1,
    }
}

messages! {
    /// The requests.
    pub(crate) enum Request of "toy" to DESK {
        Advise {} = 1,
    }
}

messages! {
    /// The events of another saga.
    pub(crate) enum OtherEvent of "toy" to OTHER {
        Asked {} = 1,
    }
}

/// Another saga, which requests one event of the toy, sends one event to the toy, and replies.
pub(crate) struct Other;

impl Saga for Other {
    const NAME: &'static str = "other";
    type State = bool;
    type Event = OtherEvent;

    fn transition(
        &self,
        _: &bool,
        event: &state_machine::Event<'_, OtherEvent>,
        _: Timestamp,
    ) -> Decision<bool> {
        let advance = Decision::to(true, "asked")
            .request(&Instance::<Toy>::at(receiver()), &Event::Opened {})
            .notify(&Instance::<Toy>::at(receiver()), &Event::Prolonged {});
        match event.requester::<Event>() {
            Some(requester) => advance.reply(&requester, &Event::Closed {}).into(),
            None => advance.into(),
        }
    }

    fn ended_at(&self, _: &bool) -> Option<Timestamp> {
        None
    }
}

/// The partition of the toy to which the other saga sends.
pub(crate) fn receiver() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(2_000))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    #[default]
    New,
    Open,
    Closed(Timestamp),
}

pub(crate) struct Toy;

pub(crate) type In = IncomingEvent<Event>;
pub(crate) type PlanInput<'a> = super::PlanInput<'a, State>;

impl Saga for Toy {
    const NAME: &'static str = "toy";
    type State = State;
    type Event = Event;

    fn transition(
        &self,
        state: &State,
        event: &state_machine::Event<'_, Event>,
        now: Timestamp,
    ) -> Decision<State> {
        let due_at = now + SignedDuration::from_hours(1);
        match (state, event.body) {
            (State::New, Event::Opened {}) => Decision::to(State::Open, "opened")
                .show()
                .ask(&Request::Advise {})
                .schedule("patience", due_at, &Event::Closed {})
                .into(),
            (State::Open, Event::Prolonged {}) => Decision::to(State::Open, "prolonged")
                .schedule("patience", due_at, &Event::Closed {})
                .write(Key::new("toy", "due"), &due_at)
                .into(),
            (State::Open, Event::Closed {}) => Decision::to(State::Closed(now), "closed")
                .cancel("patience")
                .show()
                .remove(Key::new("toy", "due"))
                .into(),
            (_, Event::Broken {}) => Decision::reject("broken"),
            (_, Event::Early {}) => Decision::postpone("early"),
            _ => Decision::ignore("nothing to do"),
        }
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        if let State::Closed(at) = state { Some(*at) } else { None }
    }

    fn state_name(&self, state: &State) -> Option<&'static str> {
        Some(match state {
            State::New => "New",
            State::Open => "Open",
            State::Closed(_) => "Closed",
        })
    }

    fn view(&self, partition: PartitionKey, state: &State) -> Option<View> {
        let body = serde_json::to_value(state).ok()?;
        let ended = self.ended_at(state).is_some();
        Some(View::new(partition, serde_json::json!({ "state": body }), ended))
    }

    fn tokens(&self, events: &[&Event]) -> usize {
        2 * events.len()
    }

    fn embed_reply_token(&self, request: &mut Body, token: &Token) {
        let data = std::mem::take(&mut request.data);
        request.data = data.with("stamped", token.as_str().into());
    }
}

pub(crate) fn id(n: u128) -> MessageId {
    MessageId::from_uuid(Uuid::from_u128(n))
}

pub(crate) fn partition() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1_000))
}

pub(crate) fn attempt(n: u128) -> AttemptId {
    AttemptId::from_uuid(Uuid::from_u128(n))
}

/// A token that an entry point mints.
pub(crate) fn token(n: u128) -> Token {
    Token::minted_at_entry(partition(), Uuid::from_u128(n))
}

/// A token that is in no claim's answer.
pub(crate) fn foreign_token() -> Token {
    token(0xdead)
}

pub(crate) fn minted(count: usize) -> Vec<Token> {
    admission::mint(partition(), &attempt(1), count)
}

pub(crate) fn listed(tokens: &[Token]) -> Tokens {
    Tokens::Listed(tokens.iter().cloned().collect())
}

pub(crate) fn incoming(n: u128, event: Event) -> In {
    let body = event.body().unwrap();
    let message = Message::new(id(n), "test", partition(), Timestamp::UNIX_EPOCH, body);
    with_token(IncomingEvent { message, event }, &token(n))
}

pub(crate) fn with_token(incoming: In, token: &Token) -> In {
    IncomingEvent { message: Message { token: Some(token.clone()), ..incoming.message }, ..incoming }
}

pub(crate) fn untokened(incoming: In) -> In {
    IncomingEvent { message: Message { token: None, ..incoming.message }, ..incoming }
}

/// Returns the event of the timer "patience" with this id.
pub(crate) fn timer_event(n: u128, id: &MessageId) -> In {
    let incoming = incoming(n, Event::Closed {});
    IncomingEvent {
        message: Message { id: *id, timer: Some("patience".into()), ..incoming.message },
        ..incoming
    }
}

/// The input of an attempt with enough tokens: ten of its own tokens, and the tokens of the first messages of entry
/// points.
pub(crate) fn input(document: Option<&Document<State>>) -> PlanInput<'_> {
    static MINTED: LazyLock<Vec<Token>> = LazyLock::new(|| minted(10));
    static TOKENS: LazyLock<Tokens> =
        LazyLock::new(|| listed(&(1..10).map(token).chain(MINTED.iter().cloned()).collect::<Vec<_>>()));
    PlanInput {
        function: "toy",
        partition: partition(),
        document,
        tokens: &TOKENS,
        fence: if document.is_some() { 6 } else { 5 },
        attempt: attempt(1),
        minted: &MINTED,
        now: Timestamp::UNIX_EPOCH,
        claim_until: Timestamp::UNIX_EPOCH + SignedDuration::from_mins(5),
        max_leftover: 0,
        expires_at: Timestamp::UNIX_EPOCH + ITEM_LIFETIME,
    }
}

/// The stored document after a group.
pub(crate) fn stored(group: &[In]) -> Document<State> {
    // The document comes from a separate attempt, so that its tokens differ from those of the attempt under test.
    let minted = admission::mint(partition(), &attempt(2), 10);
    let tokens = listed(&(1..10).map(token).chain(minted.iter().cloned()).collect::<Vec<_>>());
    let input = PlanInput { attempt: attempt(2), minted: &minted, tokens: &tokens, ..input(None) };
    let persist = decide(&Toy, &input, group).unwrap().persist.unwrap();
    Document {
        partition: partition(),
        version: persist.version,
        content: persist.content,
        outbox: persist.add,
    }
}
