//! The transactional session and the outbox, step by step: what is sent when, and how often.

use std::collections::BTreeMap;
use std::time::Duration;

use contracts::message::{SearchImportEnded, SettleSession};
use contracts::{Body, Host, Message, MessageId, ProjectId, SearchId, SessionId};
use futures::future::join;
use imports::Write;
use outbox::session::{CommitError, Options};
use outbox::{Outgoing, Queue, SendError, SendMessages, Session};
use testing::sample;

use crate::world::{World, body};

/// A message that whoever wants to know gets, with a reason of so many bytes.
fn message(world: &World, bytes: usize) -> Message {
    let ended = SearchImportEnded {
        project_id: ProjectId::from_uuid(uuid::Uuid::nil()),
        studies: 0,
        reason: Some("x".repeat(bytes)),
    };
    Message {
        id: MessageId::from_uuid(world.host.fresh_id()),
        body: Body::SearchImportFailed(ended),
        ..sample::message(&*world.host, search())
    }
}

fn search() -> SearchId {
    SearchId::from_uuid(uuid::Uuid::from_u128(1))
}

fn session(world: &World, options: Options) -> Session<Write> {
    let id = SessionId::from_uuid(world.host.fresh_id());
    Session::open(&*world.host, id, search(), options)
}

async fn commit(world: &World, session: Session<Write>) -> Result<(), CommitError> {
    session.commit(&*world.host, world.store(), world.store()).await
}

/// The ids of the messages that arrived, in any order.
async fn arrived(world: &World) -> Vec<MessageId> {
    let received = world.take(Queue::Events).await;
    let mut ids: Vec<MessageId> =
        received.iter().map(|received| Message::decode(&received.delivery.body).unwrap().id).collect();
    ids.sort_unstable();
    ids
}

/// Takes the one control message there is now.
async fn control(world: &World) -> SettleSession {
    let received = world.take(Queue::Control).await;
    let [only] = received.as_slice() else { panic!("{} control messages", received.len()) };
    let Body::SettleSession(look) = body(only) else { panic!("no control message") };
    world.deliver(Queue::Control, &received).await;
    look
}

#[tokio::test]
async fn what_cannot_be_written_leaves_what_was_staged_before_it_as_it_was() {
    let world = World::new();
    let mut session = session(&world, Options::default());
    // The third is larger than a queue takes.
    let messages: Vec<Message> =
        [1, 2, 2 << 20, 4, 5].into_iter().map(|bytes| message(&world, bytes)).collect();
    let staged: Vec<bool> = messages.iter().map(|message| session.send(message).is_ok()).collect();
    assert_eq!(staged, [true, true, false, true, true]);
    commit(&world, session).await.unwrap();
    world.run().await;
    let expected: Vec<MessageId> =
        messages.iter().zip(staged).filter(|(_, staged)| *staged).map(|(message, _)| message.id).collect();
    assert_eq!(arrived(&world).await, expected);
}

#[tokio::test]
async fn a_session_that_is_dropped_leaves_nothing() {
    let world = World::new();
    let mut session = session(&world, Options::default());
    session.send(&message(&world, 1)).unwrap();
    drop(session);
    world.run().await;
    assert_eq!((arrived(&world).await, world.take(Queue::Control).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_session_without_messages_announces_nothing() {
    let world = World::new();
    commit(&world, session(&world, Options::default())).await.unwrap();
    assert_eq!(world.take(Queue::Control).await, []);
}

/// A queue that takes nothing.
struct Closed;

#[async_trait::async_trait]
impl SendMessages for Closed {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|message| Err(SendError::NoDestination(message.destination))).collect()
    }
}

#[tokio::test]
async fn without_its_control_message_nothing_is_stored() {
    let world = World::new();
    let mut session = session(&world, Options::default());
    session.send(&message(&world, 1)).unwrap();
    let refused = session.commit(&*world.host, &Closed, world.store()).await;
    assert!(matches!(refused, Err(CommitError::Control(_))), "{refused:?}");
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(arrived(&world).await, []);
}

/// Delivers the control message as soon as it is sent, and again after each of these seconds: all before the commit
/// goes on.
struct Hasty<'a> {
    world: &'a World,
    waits: &'static [u64],
}

#[async_trait::async_trait]
impl SendMessages for Hasty<'_> {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let sent = self.world.store().send(messages).await;
        control(self.world).await;
        for seconds in self.waits {
            self.world.host.advance(Duration::from_secs(*seconds));
            control(self.world).await;
        }
        sent
    }
}

#[tokio::test]
async fn a_control_message_that_comes_before_the_record_waits_for_it() {
    let world = World::new();
    let metadata = BTreeMap::from([("tenant".to_owned(), "7".to_owned())]);
    let mut session = session(&world, Options { metadata: metadata.clone(), ..Options::default() });
    let message = message(&world, 1);
    session.send(&message).unwrap();
    let queue = Hasty { world: &world, waits: &[] };
    session.commit(&*world.host, &queue, world.store()).await.unwrap();
    world.host.advance(Duration::from_millis(3_999));
    assert_eq!(world.take(Queue::Control).await, [], "it waits for 4 seconds");
    world.host.advance(Duration::from_millis(1));
    let second = control(&world).await;
    assert_eq!((second.attempt, second.remaining_ms), (1, 11_000));
    assert_eq!(second.metadata, metadata, "whatever its opener attached stays with it");
    assert_eq!(arrived(&world).await, [message.id]);
    assert_eq!(world.take(Queue::Control).await, [], "nothing is left to do");
}

#[tokio::test]
async fn a_commit_that_takes_longer_than_it_may_is_refused_and_sends_nothing() {
    let world = World::new();
    let mut session = session(&world, Options::default());
    session.send(&message(&world, 1)).unwrap();
    let queue = Hasty { world: &world, waits: &[4, 8, 3] };
    let late = session.commit(&*world.host, &queue, world.store()).await;
    let Err(error @ CommitError::TooLate) = late else { panic!("{late:?}") };
    assert!(error.to_string().contains("took too long to commit and was given up"), "{error}");
    world.pass(Duration::from_secs(3_600)).await;
    world.run().await;
    assert_eq!(arrived(&world).await, []);
}

#[tokio::test]
async fn two_sweeps_at_once_send_each_message_once() {
    let world = World::new();
    let mut ids = Vec::new();
    for _ in 0..20 {
        let mut session = session(&world, Options::default());
        let message = message(&world, 1);
        session.send(&message).unwrap();
        commit(&world, session).await.unwrap();
        ids.push(message.id);
    }
    let function = &world.functions.dispatch_outbox;
    let (first, second) = join(function.sweep(), function.sweep()).await;
    assert_eq!(first.unwrap() + second.unwrap(), 20);
    assert_eq!(arrived(&world).await, ids);
}
