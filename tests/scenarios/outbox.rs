//! The transactional session and the outbox, step by step: what is sent when, and how often.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use functions::run_saga;
use futures::future::join;
use imports::messages::SearchImportEnded;
use imports::queues::{CONTROL, EVENTS, SAGA, UPLOADS};
use imports::{Deadlines, ImportEvent, JobState, ProjectId, SearchId, SearchImport};
use jiff::{SignedDuration, Timestamp};
use messages::{
    Disposition, Host, Message, MessageId, Outgoing, Payload, ReceiveMessages, SendError, SendMessages,
    SessionId, StoreError,
};
use outbox::dispatch::Swept;
use outbox::session::{CommitError, Found, Options, Ports, SettleSession, SettleSessions};
use outbox::{
    Claimed, DispatchOutbox, Dispatcher, Entry, InspectOutbox, Key, Owner, Policy, Session, Settlement,
    SweepOutbox, Treatment, Unreadable,
};
use saga::Engine;
use testing::{ManualHost, sample};

use crate::world::{TWO_RECORDS, World, body, deliveries};

/// An announcement of the end of a search, with a reason of `bytes` bytes.
fn message(world: &World, bytes: usize) -> Message {
    let ended = SearchImportEnded {
        project_id: ProjectId::from_uuid(uuid::Uuid::nil()),
        studies: 0,
        reason: Some("x".repeat(bytes)),
    };
    Message {
        id: MessageId::from_uuid(world.host.fresh_id()),
        body: ImportEvent::SearchImportFailed(ended).body().unwrap(),
        ..sample::message(&*world.host, search())
    }
}

fn search() -> SearchId {
    SearchId::from_uuid(uuid::Uuid::from_u128(1))
}

/// What sessions work on.
fn ports(world: &World) -> Ports {
    world.backend.ports.engine.entry_point("start-upload").unwrap().sessions
}

/// The same, but a commit of a session stops there: its messages are left to others.
fn ports_of_one_who_crashes(world: &World) -> Ports {
    Ports { outbox: Arc::new(Gone), ..ports(world) }
}

/// The same, but with another queue.
fn ports_with(ports: Ports, send: Arc<dyn SendMessages>) -> Ports {
    Ports { dispatcher: Dispatcher { send, ..ports.dispatcher.clone() }, ..ports }
}

/// The outbox of one who has crashed.
struct Gone;

#[async_trait]
impl SweepOutbox for Gone {
    async fn due(&self, _: Timestamp, _: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        Err(StoreError::unavailable("looking", "gone"))
    }

    async fn claim_due(&self, _: &[Owner], _: Timestamp, _: Timestamp) -> Result<Vec<Claimed>, StoreError> {
        Err(StoreError::unavailable("claiming", "gone"))
    }

    async fn settle(&self, _: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        Err(StoreError::unavailable("settling", "gone"))
    }

    async fn treat(&self, _: &str, _: &Treatment) -> Result<(), StoreError> {
        Err(StoreError::unavailable("treating", "gone"))
    }
}

fn session<'a>(world: &World, ports: &'a Ports, options: &Options) -> Session<'a> {
    let id = SessionId::from_uuid(world.host.fresh_id());
    Session::open(ports, imports::SYSTEM, id, search(), options)
}

/// The ids of the messages that arrived, in any order.
async fn arrived(world: &World) -> Vec<MessageId> {
    let received = world.take(&EVENTS).await;
    let mut ids: Vec<MessageId> =
        received.iter().map(|received| Message::decode(&received.delivery.body).unwrap().id).collect();
    ids.sort_unstable();
    ids
}

/// Takes the one control message there is now.
async fn control(world: &World) -> SettleSession {
    let received = world.take(&CONTROL).await;
    let [only] = received.as_slice() else { panic!("{} control messages", received.len()) };
    let said = body(only);
    assert_eq!(said.name, "SettleSession");
    world.deliver(&CONTROL, &received).await;
    said.data.read().unwrap()
}

#[tokio::test]
async fn what_cannot_be_written_leaves_what_was_staged_before_it_as_it_was() {
    let world = World::new();
    let ports = ports(&world);
    let mut session = session(&world, &ports, &Options::default());
    // The third is larger than a queue takes.
    let messages: Vec<Message> =
        [1, 2, 2 << 20, 4, 5].into_iter().map(|bytes| message(&world, bytes)).collect();
    let staged: Vec<bool> =
        messages.iter().map(|message| session.stage(message.clone(), EVENTS).is_ok()).collect();
    assert_eq!(staged, [true, true, false, true, true]);
    session.commit().await.unwrap();
    world.run().await;
    let expected: Vec<MessageId> =
        messages.iter().zip(staged).filter(|(_, staged)| *staged).map(|(message, _)| message.id).collect();
    assert_eq!(arrived(&world).await, expected);
}

#[tokio::test]
async fn a_session_that_is_dropped_leaves_nothing() {
    let world = World::new();
    let ports = ports(&world);
    let key = Key::new("counter", "searches");
    let mut stored = session(&world, &ports, &Options::default());
    stored.write(key.clone(), 1.into());
    stored.commit().await.unwrap();
    let before = ports.records.record(&key).await.unwrap();
    assert_eq!(before.as_ref().map(|record| &record.body), Some(&1.into()));

    let mut dropped = session(&world, &ports, &Options::default());
    dropped.read(key.clone()).await.unwrap();
    dropped.write(key.clone(), 2.into());
    dropped.stage(message(&world, 1), EVENTS).unwrap();
    let id = dropped.id();
    drop(dropped);
    world.run().await;
    assert_eq!(ports.records.record(&key).await.unwrap(), before);
    assert_eq!(world.store().find(id).await.unwrap(), Found::Nothing);
    assert_eq!((arrived(&world).await, world.take(&CONTROL).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_session_without_messages_announces_nothing() {
    let world = World::new();
    let ports = ports(&world);
    session(&world, &ports, &Options::default()).commit().await.unwrap();
    assert_eq!(world.take(&CONTROL).await, []);
}

#[tokio::test]
async fn what_a_session_stages_is_sent_with_its_commit() {
    let world = World::new();
    let ports = ports(&world);
    let mut session = session(&world, &ports, &Options::default());
    let message = message(&world, 1);
    session.stage(message.clone(), EVENTS).unwrap();
    assert_eq!(session.commit().await.unwrap(), std::slice::from_ref(&message));
    assert_eq!(arrived(&world).await, [message.id], "nobody had to look for it");
    world.run().await;
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(arrived(&world).await.len(), 1, "and it is not sent again, only received again");
}

/// A queue that takes nothing.
struct Closed;

#[async_trait]
impl SendMessages for Closed {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|message| Err(SendError::UnknownQueue(message.queue.clone()))).collect()
    }
}

#[tokio::test]
async fn without_its_control_message_nothing_is_stored() {
    let world = World::new();
    let ports = ports_with(ports(&world), Arc::new(Closed));
    let mut session = session(&world, &ports, &Options::default());
    session.stage(message(&world, 1), EVENTS).unwrap();
    let refused = session.commit().await;
    assert!(matches!(refused, Err(CommitError::Control(_))), "{refused:?}");
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(arrived(&world).await, []);
}

/// Delivers the control message as soon as it is sent, and again after each of these seconds: all before the commit
/// goes on.
struct Hasty {
    world: Arc<World>,
    waits: &'static [u64],
}

#[async_trait]
impl SendMessages for Hasty {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let sent = self.world.store().send(messages).await;
        control(&self.world).await;
        for seconds in self.waits {
            self.world.host.advance(Duration::from_secs(*seconds));
            control(&self.world).await;
        }
        sent
    }
}

#[tokio::test]
async fn a_control_message_that_comes_before_the_record_waits_for_it() {
    let world = Arc::new(World::new());
    let hasty = Hasty { world: world.clone(), waits: &[] };
    let ports = ports_with(ports_of_one_who_crashes(&world), Arc::new(hasty));
    let metadata = BTreeMap::from([("tenant".to_owned(), "7".to_owned())]);
    let options = Options { metadata: metadata.clone(), ..Options::default() };
    let mut session = session(&world, &ports, &options);
    let message = message(&world, 1);
    session.stage(message.clone(), EVENTS).unwrap();
    session.commit().await.unwrap();
    world.host.advance(Duration::from_millis(3_999));
    assert_eq!(world.take(&CONTROL).await, [], "it waits for 4 seconds");
    world.host.advance(Duration::from_millis(1));
    let second = control(&world).await;
    assert_eq!((second.attempt, second.remaining_ms), (1, 11_000));
    assert_eq!(second.metadata, metadata, "whatever its opener attached stays with it");
    assert_eq!(arrived(&world).await, [message.id]);
    assert_eq!(world.take(&CONTROL).await, [], "nothing is left to do");
}

#[tokio::test]
async fn a_commit_that_takes_longer_than_it_may_is_refused_and_sends_nothing() {
    let world = Arc::new(World::new());
    let hasty = Hasty { world: world.clone(), waits: &[4, 8, 3] };
    let ports = ports_with(ports(&world), Arc::new(hasty));
    let mut session = session(&world, &ports, &Options::default());
    session.stage(message(&world, 1), EVENTS).unwrap();
    let late = session.commit().await;
    let Err(error @ CommitError::TooLate) = late else { panic!("{late:?}") };
    assert!(error.to_string().contains("took too long to commit and was abandoned"), "{error}");
    world.pass(Duration::from_secs(3_600)).await;
    world.run().await;
    assert_eq!(arrived(&world).await, []);
}

#[tokio::test]
async fn two_sweeps_at_once_send_each_message_once() {
    let world = World::new();
    let ports = ports_of_one_who_crashes(&world);
    let mut ids = Vec::new();
    for _ in 0..20 {
        let mut session = session(&world, &ports, &Options::default());
        let message = message(&world, 1);
        session.stage(message.clone(), EVENTS).unwrap();
        session.commit().await.unwrap();
        ids.push(message.id);
    }
    let function = &world.functions.dispatch_outbox;
    let (first, second) = join(function.sweep(None), function.sweep(None)).await;
    assert_eq!(first.unwrap().entries + second.unwrap().entries, 20);
    assert_eq!(arrived(&world).await, ids);
}

/// A queue whose calls take a while.
#[derive(Default)]
struct Slow {
    under_way: AtomicUsize,
    most: AtomicUsize,
    begun: Mutex<Vec<MessageId>>,
}

#[async_trait]
impl SendMessages for Slow {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.begun.lock().unwrap().extend(messages.iter().map(|message| message.id));
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// As many as the policy says, and no more: a queue has limits of its own.
#[tokio::test]
async fn what_is_due_is_sent_by_several_calls_at_the_same_time_that_begin_in_order() {
    let world = World::new();
    let ports = ports_of_one_who_crashes(&world);
    let mut ids = Vec::new();
    for _ in 0..150 {
        let mut session = session(&world, &ports, &Options::default());
        let message = message(&world, 1);
        session.stage(message.clone(), EVENTS).unwrap();
        session.commit().await.unwrap();
        ids.push(message.id);
        world.host.advance(Duration::from_secs(1));
    }
    let slow = Arc::new(Slow::default());
    let function = &world.functions.dispatch_outbox;
    let dispatcher = Dispatcher { send: slow.clone(), ..function.dispatcher.clone() };
    let sends = dispatcher.policy.sends;
    let swept = DispatchOutbox { dispatcher, ..function.clone() }.sweep(None).await.unwrap();
    assert_eq!(swept, Swept { entries: 150, to_the_end: true });
    assert_eq!(slow.most.load(Ordering::Relaxed), sends);
    assert_eq!(*slow.begun.lock().unwrap(), ids);
}

/// A queue whose calls take half a minute.
struct HalfAMinute(Arc<ManualHost>);

#[async_trait]
impl SendMessages for HalfAMinute {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.0.advance(Duration::from_secs(30));
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// What would be claimed when the function is cut off would wait for five minutes.
#[tokio::test]
async fn a_sweep_takes_nothing_on_when_its_time_is_over() {
    let world = World::new();
    let ports = ports_of_one_who_crashes(&world);
    for _ in 0..3 {
        let mut session = session(&world, &ports, &Options::default());
        session.stage(message(&world, 1), EVENTS).unwrap();
        session.commit().await.unwrap();
    }
    let function = &world.functions.dispatch_outbox;
    let send = Arc::new(HalfAMinute(world.host.clone()));
    let policy = Policy { batch: 1, ..function.dispatcher.policy };
    let dispatcher = Dispatcher { send, policy, ..function.dispatcher.clone() };
    let slow = DispatchOutbox { dispatcher, ..function.clone() };
    for (seconds, entries) in [(0, 0), (20, 1), (30, 1)] {
        let deadline = world.host.now() + Duration::from_secs(seconds);
        let swept = slow.sweep(Some(deadline)).await.unwrap();
        assert_eq!(swept, Swept { entries, to_the_end: false }, "{seconds}");
    }
    assert_eq!(slow.sweep(None).await.unwrap(), Swept { entries: 1, to_the_end: true });
}

/// The ledger forgets a partition that nobody has touched for 30 days, and with it the tokens that its document waits
/// for. Repeating what the operator does changes nothing.
#[tokio::test]
async fn a_parse_command_that_was_given_up_is_requeued_a_month_later_and_its_search_completes() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let uploads = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &uploads).await;
    let refusing = Engine { send: Arc::new(Closed), ..world.backend.ports.engine.clone() };
    // An operator who comes so late has to have been given the time.
    let deadlines = Deadlines { parse: SignedDuration::from_hours(60 * 24), ..Deadlines::default() };
    let events = world.take(&SAGA).await;
    let answers = refusing
        .run(run_saga::NAME, SearchImport { deadlines })
        .unwrap()
        .consume(&deliveries(&events), None)
        .await;
    assert_eq!(answers, [Disposition::Acknowledge]);
    for received in &events {
        world.store().answer(&SAGA, &received.receipt, &Disposition::Acknowledge).await.unwrap();
    }

    world.host.advance(Duration::from_secs(31 * 24 * 3_600));
    world.store().purge(world.host.now()).await.unwrap();
    let pending = world.store().saga_outbox().pending(None, 10).await.unwrap();
    let entries = pending[0].entries.iter().flatten();
    let given_up: Vec<&Entry> = entries.filter(|entry| entry.poisoned).collect();
    let [command] = given_up[..] else { panic!("{given_up:?}") };
    let operator = world.backend.ports.engine.operator().unwrap();
    for _ in 0..2 {
        operator.requeue(pending[0].owner.unwrap(), command).await.unwrap();
    }
    world.pass(Duration::from_secs(60)).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 2));
}

/// A second operator has listed the entry before the first one requeued it.
#[tokio::test]
async fn an_entry_that_was_requeued_is_not_discarded_by_who_saw_it_before() {
    let world = World::new();
    let ports = ports_of_one_who_crashes(&world);
    let mut session = session(&world, &ports, &Options::default());
    let message = message(&world, 1);
    session.stage(message.clone(), EVENTS).unwrap();
    session.commit().await.unwrap();
    let outbox = world.store().session_outbox();
    let (owner, now) = (Owner::Session(session_id(&world).await), world.host.now());
    let [claimed] =
        outbox.claim_due(&[owner], now, now).await.unwrap().remove(0).unwrap().try_into().unwrap();
    let claimed: Entry = claimed.unwrap();
    let given_up = Entry { poisoned: true, claimed_until: None, ..claimed.clone() };
    let settled = Settlement { id: claimed.id, claim: claimed.claimed_until, keep: Some(given_up.clone()) };
    outbox.settle(&[(owner, vec![settled])]).await.unwrap();
    let operator = world.backend.ports.engine.operator().unwrap();
    operator.requeue(owner, &given_up).await.unwrap();
    operator.discard(owner, &given_up).await.unwrap();
    operator.requeue(owner, &given_up).await.unwrap();
    world.pass(Duration::from_secs(1)).await;
    assert_eq!(arrived(&world).await, [message.id]);
}

/// The owner of the only entry of a session.
async fn session_id(world: &World) -> SessionId {
    match world.store().session_outbox().pending(None, 10).await.unwrap()[0].owner {
        Some(Owner::Session(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Past the ports, as a later release might have written it, or a damaged disk.
#[tokio::test]
async fn an_entry_that_cannot_be_read_keeps_nothing_else_from_being_sent() {
    let world = World::new();
    let ports = ports_of_one_who_crashes(&world);
    let mut sent = Vec::new();
    for _ in 0..3 {
        let mut session = session(&world, &ports, &Options::default());
        let message = message(&world, 1);
        session.stage(message.clone(), EVENTS).unwrap();
        session.commit().await.unwrap();
        sent.push(message.id);
    }
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let damage = "UPDATE outbox SET kind = 'webhook' WHERE entry_id = ?1";
    assert_eq!(database.execute(damage, [sent.remove(0).to_string()]).unwrap(), 1);
    let foreign = "UPDATE outbox SET owner_id = 'nobody' WHERE entry_id = ?1";
    assert_eq!(database.execute(foreign, [sent.remove(0).to_string()]).unwrap(), 1);
    assert_eq!(world.functions.dispatch_outbox.sweep(None).await.unwrap().entries, 3, "two are set aside");
    assert_eq!(arrived(&world).await, sent);
    assert_eq!(world.functions.dispatch_outbox.sweep(None).await.unwrap().entries, 0, "and not met again");
    let outbox = world.store().session_outbox();
    let pending = outbox.pending(None, 10).await.unwrap();
    let left: Vec<_> =
        pending.iter().flat_map(|of| &of.entries).map(|stored| stored.clone().unwrap_err()).collect();
    assert_eq!(left.len(), 2, "an operator sees them: {pending:?}");
    for unreadable in left {
        outbox.treat(&unreadable.place, &Treatment::Delete).await.unwrap();
    }
    assert_eq!(outbox.pending(None, 10).await.unwrap(), []);
}
