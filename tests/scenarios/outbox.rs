//! The transactional session and the outbox, step by step: the time and the number of sends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contracts::{ManualHost, sample};
use dedup::{Admission, AdmittedClaim, Claim, ClaimCondition, ClaimPartition, Release};
use embedded::{Call, Phase};
use functions::run_saga;
use futures::future::join;
use imports::messages::SearchImportEnded;
use imports::queues::{CONTROL, EVENTS, SAGA, UPLOADS};
use imports::{Deadlines, ImportEvent, JobState, ProjectId, SearchId, SearchImport};
use jiff::{SignedDuration, Timestamp};
use messages::{
    AttemptId, Consumer, Disposition, Host, Message, MessageId, Outgoing, PartitionKey, Payload,
    ReceiveMessages, SendError, SendMessages, SessionId, StoreError, Token,
};
use outbox::dispatch::SweepOutcome;
use outbox::session::{CommitError, Options, Ports, SessionStatus, SettleSession, SettleSessions};
use outbox::{
    ClaimedEntries, DispatchOutbox, Dispatcher, Entry, InspectOutbox, Key, Owner, Policy, Session,
    Settlement, SweepOutbox, Unreadable, UnreadableAction, View,
};
use saga::{
    Control, ControlError, ControlOutcome, Engine, ExpectedToken, Intervention, Persist, PersistOutcome,
    WriteDocuments,
};
use service::{Cancellation, ProjectAccess};

use crate::world::{CrashAt, TWO_RECORDS, WithoutQueues, World, body, call, deliveries};

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

/// Returns the ports of sessions.
fn ports(world: &World) -> Ports {
    world.backend.ports.engine.entry_point("start-upload").unwrap().sessions
}

/// Works like [`ports`], but a commit stops before it sends, as after a crash.
fn crashing_ports(world: &World) -> Ports {
    Ports { outbox: Arc::new(CrashedOutbox), ..ports(world) }
}

/// Replaces the queue in the ports.
fn ports_with(ports: Ports, send: Arc<dyn SendMessages>) -> Ports {
    Ports { dispatcher: Dispatcher { send, ..ports.dispatcher.clone() }, ..ports }
}

/// The outbox of a crashed process: it does nothing.
struct CrashedOutbox;

#[async_trait]
impl SweepOutbox for CrashedOutbox {
    async fn due(&self, _: Timestamp, _: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        Err(StoreError::unavailable("looking", "gone"))
    }

    async fn claim_due(
        &self,
        _: &[Owner],
        _: Timestamp,
        _: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError> {
        Err(StoreError::unavailable("claiming", "gone"))
    }

    async fn settle(&self, _: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        Err(StoreError::unavailable("settling", "gone"))
    }

    async fn resolve_unreadable(&self, _: &str, _: &UnreadableAction) -> Result<(), StoreError> {
        Err(StoreError::unavailable("treating", "gone"))
    }
}

fn session<'a>(world: &World, ports: &'a Ports, options: &Options) -> Session<'a> {
    let id = SessionId::from_uuid(world.host.fresh_id());
    Session::open(ports, imports::SYSTEM, id, search(), options)
}

/// Returns the ids of the messages that arrived, in any order.
async fn arrived(world: &World) -> Vec<MessageId> {
    let received = world.take(&EVENTS).await;
    let mut ids: Vec<MessageId> =
        received.iter().map(|received| Message::decode(&received.delivery.body).unwrap().id).collect();
    ids.sort_unstable();
    ids
}

/// Receives the single control message.
async fn control(world: &World) -> SettleSession {
    let received = world.take(&CONTROL).await;
    let [only] = received.as_slice() else { panic!("{} control messages", received.len()) };
    let said = body(only);
    assert_eq!(said.name, "SettleSession");
    world.deliver(&CONTROL, &received).await;
    said.data.read().unwrap()
}

#[tokio::test]
async fn unserializable_message_keeps_earlier_staged_ones() {
    let world = World::new();
    let ports = ports(&world);
    let mut session = session(&world, &ports, &Options::default());
    // The third message exceeds the size limit of a queue.
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
async fn dropped_session_leaves_nothing() {
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
    assert_eq!(world.store().find(id).await.unwrap(), SessionStatus::Nothing);
    assert_eq!((arrived(&world).await, world.take(&CONTROL).await), (vec![], vec![]));
}

#[tokio::test]
async fn session_without_messages_announces_nothing() {
    let world = World::new();
    let ports = ports(&world);
    session(&world, &ports, &Options::default()).commit().await.unwrap();
    assert_eq!(world.take(&CONTROL).await, []);
}

#[tokio::test]
async fn staged_messages_are_sent_with_commit() {
    let world = World::new();
    let ports = ports(&world);
    let mut session = session(&world, &ports, &Options::default());
    let message = message(&world, 1);
    session.stage(message.clone(), EVENTS).unwrap();
    assert_eq!(session.commit().await.unwrap(), std::slice::from_ref(&message));
    assert_eq!(arrived(&world).await, [message.id], "the commit itself sends the message");
    world.run().await;
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(arrived(&world).await.len(), 1, "and it is not sent again, only received again");
}

#[tokio::test]
async fn nothing_is_stored_without_control_message() {
    let world = World::new();
    let ports = ports_with(ports(&world), Arc::new(WithoutQueues));
    let mut session = session(&world, &ports, &Options::default());
    session.stage(message(&world, 1), EVENTS).unwrap();
    let refused = session.commit().await;
    assert!(matches!(refused, Err(CommitError::Control(_))), "{refused:?}");
    world.pass(Duration::from_secs(3_600)).await;
    assert_eq!(arrived(&world).await, []);
}

/// Delivers the control message as soon as it is sent, and again after each of these seconds, all before the commit
/// continues.
struct HastyQueue {
    world: Arc<World>,
    waits: &'static [u64],
}

#[async_trait]
impl SendMessages for HastyQueue {
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
async fn control_message_before_record_waits() {
    let world = Arc::new(World::new());
    let hasty = HastyQueue { world: world.clone(), waits: &[] };
    let ports = ports_with(crashing_ports(&world), Arc::new(hasty));
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
async fn overdue_commit_is_refused_and_sends_nothing() {
    let world = Arc::new(World::new());
    let hasty = HastyQueue { world: world.clone(), waits: &[4, 8, 3] };
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

/// DynamoDB could not write the view with all of its copies in one transaction.
#[tokio::test]
async fn view_in_too_many_lists_stores_nothing() {
    let world = World::new();
    let ports = ports(&world);
    let mut session = session(&world, &ports, &Options::default());
    session.stage(message(&world, 1), EVENTS).unwrap();
    let view = View {
        partition: search(),
        list: uuid::Uuid::nil(),
        also_in: (1..18).map(uuid::Uuid::from_u128).collect(),
        revision: 0,
        ended: false,
        created_at: world.host.now(),
        body: serde_json::Value::Null,
    };
    session.show(view);
    let refused = session.commit().await;
    let Err(error @ CommitError::TooManyLists(17)) = refused else { panic!("{refused:?}") };
    assert_eq!(error.to_string(), "a view is in 17 further lists, more than 16");
    let mut session = self::session(&world, &ports, &Options::default());
    session.stage(message(&world, 1), EVENTS).unwrap();
    session.write(Key::new("budget", "x".repeat(1_024)), serde_json::Value::Null);
    let refused = session.commit().await;
    let Err(error @ CommitError::Unsupported { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().ends_with("the key is longer than 1,024 bytes"), "{error}");
    world.run().await;
    assert_eq!(arrived(&world).await, []);
    assert_eq!(world.take(&CONTROL).await, []);
}

#[tokio::test]
async fn concurrent_sweeps_send_each_message_once() {
    let world = World::new();
    let ports = crashing_ports(&world);
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

/// A queue with slow calls.
#[derive(Default)]
struct Slow {
    under_way: AtomicUsize,
    max: AtomicUsize,
    begun: Mutex<Vec<MessageId>>,
}

#[async_trait]
impl SendMessages for Slow {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.begun.lock().unwrap().extend(messages.iter().map(|message| message.id));
        let now = self.under_way.fetch_add(1, Ordering::Relaxed) + 1;
        self.max.fetch_max(now, Ordering::Relaxed);
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        self.under_way.fetch_sub(1, Ordering::Relaxed);
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// The number of parallel calls is limited by the policy, because a queue has its own limits.
#[tokio::test]
async fn due_effects_are_sent_in_parallel_in_order() {
    let world = World::new();
    let ports = crashing_ports(&world);
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
    assert_eq!(swept, SweepOutcome { entries: 150, to_the_end: true });
    assert_eq!(slow.max.load(Ordering::Relaxed), sends);
    assert_eq!(*slow.begun.lock().unwrap(), ids);
}

/// A queue whose calls take this long.
struct SlowCalls(Arc<ManualHost>, Duration);

#[async_trait]
impl SendMessages for SlowCalls {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.0.advance(self.1);
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// Entries claimed when the function is cut off would be blocked for five minutes.
#[tokio::test]
async fn sweep_claims_nothing_after_deadline() {
    let world = World::new();
    left_messages(&world, 3).await;
    let function = &world.functions.dispatch_outbox;
    let send = Arc::new(SlowCalls(world.host.clone(), Duration::from_secs(30)));
    let policy = Policy { batch: 1, ..function.dispatcher.policy };
    let dispatcher = Dispatcher { send, policy, ..function.dispatcher.clone() };
    let slow = DispatchOutbox { dispatcher, ..function.clone() };
    for (seconds, entries) in [(0, 0), (20, 1), (30, 1)] {
        let deadline = world.host.now() + Duration::from_secs(seconds);
        let swept = slow.sweep(Some(deadline)).await.unwrap();
        assert_eq!(swept, SweepOutcome { entries, to_the_end: false }, "{seconds}");
    }
    assert_eq!(slow.sweep(None).await.unwrap(), SweepOutcome { entries: 1, to_the_end: true });
}

/// A queue that fails after a minute, so its entries are due again when the sweep looks for more.
struct SlowFailure(Arc<ManualHost>);

#[async_trait]
impl SendMessages for SlowFailure {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.0.advance(Duration::from_secs(60));
        let failed = || SendError::Store(StoreError::unavailable("sending", "timeout"));
        messages.iter().map(|_| Err(failed())).collect()
    }
}

#[tokio::test]
async fn sweep_attempts_each_entry_once() {
    let world = World::new();
    left_messages(&world, 30).await;
    let failing = dispatch_with(&world, Arc::new(SlowFailure(world.host.clone())));
    assert_eq!(failing.sweep(None).await.unwrap(), SweepOutcome { entries: 30, to_the_end: true });
}

/// Otherwise a queue that hangs would keep the sweep from all timers and views.
#[tokio::test]
async fn outboxes_take_turns_in_a_sweep() {
    let [sessions, sagas] = [World::new(), World::new()];
    left_messages(&sessions, 30).await;
    let expected = left_messages(&sagas, 1).await;
    let slow = Arc::new(SlowCalls(sessions.host.clone(), Duration::from_secs(10)));
    let dispatcher = dispatch_with(&sessions, slow.clone()).dispatcher;
    let dispatcher = Dispatcher { policy: Policy { batch: 10, ..dispatcher.policy }, ..dispatcher };
    let saga_outbox = sagas.functions.dispatch_outbox.session_outbox.clone();
    let function = DispatchOutbox { saga_outbox, dispatcher, ..sessions.functions.dispatch_outbox.clone() };
    let deadline = sessions.host.now() + Duration::from_secs(30);
    let swept = function.sweep(Some(deadline)).await.unwrap();
    assert_eq!(swept, SweepOutcome { entries: 11, to_the_end: false });
    assert_eq!(sagas.functions.dispatch_outbox.sweep(None).await.unwrap().entries, 0, "{expected:?}");
}

/// A slow queue whose calls another sweep interrupts.
struct InterruptedQueue {
    host: Arc<ManualHost>,
    other: DispatchOutbox,
    sent: Mutex<Vec<MessageId>>,
}

#[async_trait]
impl SendMessages for InterruptedQueue {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.host.advance(Duration::from_secs(30));
        self.other.sweep(None).await.unwrap();
        self.sent.lock().unwrap().extend(messages.iter().map(|message| message.id));
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// Commits sessions whose single message is left to the outbox.
async fn left_messages(world: &World, count: usize) -> BTreeSet<MessageId> {
    let ports = crashing_ports(world);
    let mut ids = BTreeSet::new();
    for _ in 0..count {
        let mut session = session(world, &ports, &Options::default());
        let message = message(world, 1);
        session.stage(message.clone(), EVENTS).unwrap();
        session.commit().await.unwrap();
        ids.insert(message.id);
    }
    ids
}

/// Returns the function with this queue, and with one call to it at a time.
fn dispatch_with(world: &World, send: Arc<dyn SendMessages>) -> DispatchOutbox {
    let function = &world.functions.dispatch_outbox;
    let policy = Policy { sends: 1, ..function.dispatcher.policy };
    let dispatcher = Dispatcher { send, policy, ..function.dispatcher.clone() };
    DispatchOutbox { dispatcher, ..function.clone() }
}

/// The function would be stopped before it settles the entries that a slow queue has taken, and the oldest entries
/// would be sent again by every sweep.
#[tokio::test]
async fn slow_sweep_settles_sent_and_releases_rest() {
    let world = World::new();
    left_messages(&world, 60).await;
    let slow = dispatch_with(&world, Arc::new(SlowCalls(world.host.clone(), Duration::from_secs(10))));
    let deadline = world.host.now() + Duration::from_secs(55);
    let swept = slow.sweep(Some(deadline)).await.unwrap();
    assert_eq!(
        swept,
        SweepOutcome { entries: 40, to_the_end: false },
        "the fifth call could last 15 seconds"
    );
    assert!(world.host.now() < deadline);
    let deadline = world.host.now() + Duration::from_secs(55);
    assert_eq!(slow.sweep(Some(deadline)).await.unwrap(), SweepOutcome { entries: 20, to_the_end: true });
}

#[tokio::test]
async fn slow_sweep_skips_entries_taken_over() {
    let world = World::new();
    let ids = left_messages(&world, 120).await;
    let other = world.functions.dispatch_outbox.clone();
    let queue = Arc::new(InterruptedQueue { host: world.host.clone(), other, sent: Mutex::new(Vec::new()) });
    dispatch_with(&world, queue.clone()).sweep(None).await.unwrap();
    let mut sent = queue.sent.lock().unwrap().clone();
    sent.extend(arrived(&world).await);
    assert_eq!(sent.len(), ids.len());
    assert_eq!(BTreeSet::from_iter(sent), ids);
}

#[tokio::test]
async fn control_message_near_deadline_is_retried() {
    let world = World::new();
    left_messages(&world, 1).await;
    let received = world.take(&CONTROL).await;
    let function = &world.functions.dispatch_outbox;
    let answers = function.consume(&deliveries(&received), Some(world.host.now())).await;
    let [Disposition::Retry { after, .. }] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(*after > Duration::ZERO, "an unavailable store would use up the receives");
    assert_eq!(arrived(&world).await, []);
    assert_eq!(function.consume(&deliveries(&received), None).await, [Disposition::Acknowledge]);
    assert_eq!(arrived(&world).await.len(), 1);
}

/// A store of sessions that does not answer.
struct HangingSessions;

#[async_trait]
impl SettleSessions for HangingSessions {
    async fn find(&self, _: SessionId) -> Result<SessionStatus, StoreError> {
        std::future::pending().await
    }

    async fn abandon(&self, _: SessionId, _: Timestamp) -> Result<SessionStatus, StoreError> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn hanging_store_delays_control_messages() {
    let world = World::new();
    left_messages(&world, 2).await;
    let received = world.take(&CONTROL).await;
    let function = DispatchOutbox {
        sessions: Arc::new(HangingSessions),
        overtime: Some(Duration::from_secs(3)),
        ..world.functions.dispatch_outbox.clone()
    };
    let deadline = world.host.now().checked_add(Duration::from_secs(20)).unwrap();
    let answers = function.consume(&deliveries(&received), Some(deadline)).await;
    assert_eq!(answers.len(), received.len());
    for answer in answers {
        assert!(matches!(answer, Disposition::Retry { after, .. } if after > Duration::ZERO), "{answer:?}");
    }
}

/// An outbox with an index that lags behind its records.
struct FaultyOutbox {
    outbox: Arc<dyn SweepOutbox>,
    /// Records whose entries were performed, but which the index still contains.
    performed: Vec<Owner>,
    /// Records that the store refuses to change, because they are too large.
    refused: Vec<Owner>,
    /// `false` if no settlement can be stored.
    settles: bool,
}

#[async_trait]
impl SweepOutbox for FaultyOutbox {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        let mut found: Vec<_> = self.performed.iter().chain(&self.refused).copied().map(Ok).collect();
        found.extend(self.outbox.due(now, limit).await?);
        found.truncate(limit);
        Ok(found)
    }

    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError> {
        let claimed = self.outbox.claim_due(owners, now, until).await?.into_iter();
        let or_refused = |(owner, claimed)| match self.refused.contains(owner) {
            true => Err(StoreError::unusable("claiming", "too large")),
            false => claimed,
        };
        Ok(owners.iter().zip(claimed).map(or_refused).collect())
    }

    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        match self.settles {
            true => self.outbox.settle(settlements).await,
            false => Err(StoreError::unavailable("settling", "gone")),
        }
    }

    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError> {
        self.outbox.resolve_unreadable(place, treatment).await
    }
}

/// The indexes of DynamoDB follow their table.
#[tokio::test]
async fn sweep_looks_past_records_of_lagging_index() {
    let world = World::new();
    let ids = left_messages(&world, 3).await;
    let function = &world.functions.dispatch_outbox;
    let mut performed: Vec<_> =
        (0..6).map(|n| Owner::Session(SessionId::from_uuid(uuid::Uuid::from_u128(n)))).collect();
    // A record that can never be claimed must not hide that the sweep has completed.
    let refused = performed.split_off(5);
    let outbox = Arc::clone(&function.session_outbox);
    let outbox = FaultyOutbox { outbox, performed, refused, settles: true };
    let dispatcher = Dispatcher {
        policy: Policy { batch: 2, ..function.dispatcher.policy },
        ..function.dispatcher.clone()
    };
    let lagging = DispatchOutbox { session_outbox: Arc::new(outbox), dispatcher, ..function.clone() };
    assert_eq!(lagging.sweep(None).await.unwrap(), SweepOutcome { entries: 3, to_the_end: true });
    assert_eq!(arrived(&world).await, Vec::from_iter(ids));
}

/// A message that cannot be settled is sent again after the claim.
#[tokio::test]
async fn sweep_sends_no_more_than_it_can_settle() {
    let world = World::new();
    left_messages(&world, 30).await;
    let function = dispatch_with(&world, world.functions.dispatch_outbox.dispatcher.send.clone());
    let outbox = Arc::clone(&function.session_outbox);
    let outbox = FaultyOutbox { outbox, performed: Vec::new(), refused: Vec::new(), settles: false };
    let unsettled = DispatchOutbox { session_outbox: Arc::new(outbox), ..function };
    assert!(unsettled.sweep(None).await.is_err());
    assert_eq!(arrived(&world).await.len(), 10);
}

/// The ledger deletes the item of a partition after 30 idle days, and with it the tokens that its document expects. The
/// operator's action is idempotent.
#[tokio::test]
async fn search_completes_after_requeue_a_month_later() {
    let world = World::new();
    let (search, command) = exhausted_command(&world).await;
    world.host.advance(Duration::from_secs(31 * 24 * 3_600));
    world.store().purge(world.host.now()).await.unwrap();
    let operator = world.backend.ports.engine.operator().unwrap();
    for _ in 0..2 {
        operator.requeue(Owner::Saga(search), &command).await.unwrap();
    }
    world.pass(Duration::from_secs(60)).await;
    world.run().await;
    let job = world.job(search).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 2));
}

/// Returns a search whose file waits for a parse command, together with this command. The queue has refused the
/// command.
async fn exhausted_command(world: &World) -> (SearchId, Entry) {
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let uploads = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &uploads).await;
    let refusing = Engine { send: Arc::new(WithoutQueues), ..world.backend.ports.engine.clone() };
    // The deadline must leave the operator enough time.
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
    let mut pending = world.store().saga_outbox().pending(None, 10).await.unwrap();
    let given_up = pending.remove(0).entries.into_iter().flatten().filter(|entry| entry.poisoned);
    let [command] = given_up.collect::<Vec<_>>().try_into().unwrap();
    (announced.search_id, command)
}

/// The ledger's item of the partition of an exhausted command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LedgerItem {
    /// The item has the fence of the document.
    Current,
    /// Another worker has claimed the partition and stored nothing.
    Claimed,
    /// The ledger has forgotten the item.
    Forgotten,
    /// The ledger has forgotten the item, and another worker has claimed the partition and stored nothing.
    ClaimedAgain,
}

impl LedgerItem {
    async fn prepare(self, world: &World, search: SearchId) {
        if matches!(self, Self::Forgotten | Self::ClaimedAgain) {
            forget_partitions(world);
        }
        if matches!(self, Self::Claimed | Self::ClaimedAgain) {
            let (document, now) = (world.document(search).await.unwrap(), world.host.now());
            let attempt = AttemptId::from_uuid(world.host.random_id());
            let claim = Claim {
                partition: search,
                attempt,
                now,
                lease: SignedDuration::from_secs(60),
                supersedes: document.content.finished(),
                requires: ClaimCondition::Always,
                new_tokens: Vec::new(),
                max_tokens: 0,
                fence: document.content.fence,
                above: document.content.fence,
                until: now,
            };
            let ledger = ledger(world);
            let (_, answer) = dedup::ledger::ask(ledger.as_ref(), claim).await.unwrap();
            let Admission::Admitted(AdmittedClaim { fence, .. }) = answer else { panic!("{answer:?}") };
            let (remove, ended, until) = (BTreeSet::new(), false, None);
            let release = Release { partition: search, attempt, fence, remove, ended, until, now };
            assert!(ledger.release(&release).await.unwrap());
        }
    }
}

/// Removes all items of the ledger, as if they had expired.
fn forget_partitions(world: &World) {
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    assert_ne!(database.execute("DELETE FROM ledger", []).unwrap(), 0);
}

fn ledger(world: &World) -> Arc<dyn ClaimPartition> {
    world.backend.ports.engine.partitions.as_ref().unwrap().ledger.clone()
}

/// Returns the tokens of these messages that a search admits.
async fn admitted(world: &World, search: SearchId, expected: &[ExpectedToken]) -> Vec<Token> {
    let check = world.backend.ports.engine.check_tokens.as_ref().unwrap();
    let mut admitted = Vec::new();
    for ExpectedToken { token, .. } in expected {
        if check.is_granted(search, token, world.host.now()).await.unwrap() {
            admitted.push(token.clone());
        }
    }
    admitted
}

/// A change that is made before a late claim is executed.
enum ConcurrentChange {
    /// The search is cancelled.
    SearchEnds,
    /// Another operator requeues the entry.
    OtherRequeue(Entry),
}

/// A ledger that executes the `nth` claim late, after the lease of an earlier one has expired. The caller receives no
/// answer to this claim or a later one that is granted.
struct LateClaim {
    world: Arc<World>,
    nth: usize,
    asked: AtomicUsize,
    concurrent: ConcurrentChange,
}

#[async_trait]
impl ClaimPartition for LateClaim {
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError> {
        let nth = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if nth == self.nth {
            self.world.host.advance(Duration::from_secs(60));
            match &self.concurrent {
                ConcurrentChange::SearchEnds => {
                    cancel(&self.world, claim.partition).await;
                    self.world.deliver_all(&[&CONTROL, &SAGA]).await;
                }
                ConcurrentChange::OtherRequeue(entry) => {
                    let operator = self.world.backend.ports.engine.operator().unwrap();
                    operator.requeue(Owner::Saga(claim.partition), entry).await.unwrap();
                }
            }
        }
        match ledger(&self.world).claim(claim).await? {
            Admission::Admitted(_) if nth >= self.nth => {
                Err(StoreError::unavailable("claiming a partition", "the answer is lost"))
            }
            answer => Ok(answer),
        }
    }

    async fn release(&self, release: &Release) -> Result<bool, StoreError> {
        ledger(&self.world).release(release).await
    }
}

async fn cancel(world: &World, search: SearchId) {
    let cancelled = world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
    assert_eq!(cancelled, Cancellation::Accepted);
}

/// The numbers of claims of a requeue. A claim that finds another fence is repeated at that fence. If it grants nothing,
/// the next one grants the tokens that the latest document expects and the ledger lacks.
const CLAIMS: [(LedgerItem, usize); 4] = [
    (LedgerItem::Current, 1),
    (LedgerItem::Claimed, 2),
    (LedgerItem::Forgotten, 2),
    (LedgerItem::ClaimedAgain, 3),
];

/// Requeues a command whose `nth` claim is late. Returns the world, the search and the messages that it expected.
async fn requeue_late(
    item: LedgerItem,
    nth: usize,
    concurrent: impl FnOnce(&Entry) -> ConcurrentChange,
) -> (Arc<World>, SearchId, Vec<ExpectedToken>) {
    let world = Arc::new(World::new());
    let (search, command) = exhausted_command(&world).await;
    item.prepare(&world, search).await;
    let expected = world.document(search).await.unwrap().content.expected;
    assert_eq!(expected.len(), 2, "the reply and the timer");
    let late = LateClaim { world: world.clone(), nth, asked: 0.into(), concurrent: concurrent(&command) };
    let mut operator = world.backend.ports.engine.operator().unwrap();
    operator.partitions.ledger = Arc::new(late);
    operator.requeue(Owner::Saga(search), &command).await.unwrap_err();
    (world, search, expected)
}

#[tokio::test]
async fn late_requeue_leaves_no_token_after_end() {
    for (item, claims) in CLAIMS {
        for nth in 1..=claims {
            let (world, search, expected) = requeue_late(item, nth, |_| ConcurrentChange::SearchEnds).await;
            assert_eq!(world.job(search).await.state, JobState::Error, "{item:?} {nth}");
            assert_eq!(admitted(&world, search, &expected).await, [], "{item:?} {nth}");
        }
    }
}

#[tokio::test]
async fn late_requeue_does_not_disturb_other_operator() {
    for (item, claims) in CLAIMS {
        for nth in 1..=claims {
            let other = |entry: &Entry| ConcurrentChange::OtherRequeue(entry.clone());
            let (world, search, expected) = requeue_late(item, nth, other).await;
            assert_eq!(admitted(&world, search, &expected).await.len(), 2, "{item:?} {nth}");
            world.pass(Duration::from_secs(60)).await;
            world.run().await;
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{item:?} {nth}");
        }
    }
}

/// A worker stalls before it stores the end of the search, and its lease expires. The operator grants the tokens of the
/// document that the worker has loaded. The worker's release is refused, so the message is delivered again.
#[tokio::test]
async fn end_stored_after_requeue_leaves_no_token() {
    for is_forgotten in [false, true] {
        let world = World::new();
        let (search, command) = exhausted_command(&world).await;
        let expected = world.document(search).await.unwrap().content.expected;
        if is_forgotten {
            forget_partitions(&world);
        }
        cancel(&world, search).await;
        world.deliver_all(&[&CONTROL]).await;
        let message = world.take(&SAGA).await;
        let stall = CrashAt::new(Call::SagaPersist, Phase::Before, 1);
        let requeue = async {
            world.host.advance(Duration::from_secs(60));
            let operator = world.backend.ports.engine.operator().unwrap();
            operator.requeue(Owner::Saga(search), &command).await.unwrap();
            assert_eq!(admitted(&world, search, &expected).await.len(), 2, "{is_forgotten}");
        };
        let answers = stall.stall(call(&world.crashing(&stall), &SAGA, &message), requeue).await;
        assert!(matches!(answers[..], [Disposition::Retry { .. }]), "{answers:?}");
        assert_eq!(world.job(search).await.state, JobState::Error, "{is_forgotten}");
        world.deliver(&SAGA, &message).await;
        assert_eq!(admitted(&world, search, &expected).await, [], "{is_forgotten}");
    }
}

/// A store whose writes are late: the lease of the writer has expired, and another worker has claimed the partition and
/// stored nothing.
struct LateWrites(Arc<World>);

#[async_trait]
impl WriteDocuments for LateWrites {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        self.0.host.advance(Duration::from_secs(60));
        for write in writes {
            LedgerItem::Claimed.prepare(&self.0, write.partition).await;
        }
        self.0.backend.ports.engine.operator().unwrap().stores.write_documents.persist(writes, now).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.0.backend.ports.engine.operator().unwrap().stores.write_documents.settle(settlements).await
    }
}

#[tokio::test]
async fn termination_stored_after_lease_leaves_no_token() {
    let world = Arc::new(World::new());
    let (search, _) = exhausted_command(&world).await;
    let expected = world.document(search).await.unwrap().content.expected;
    let operator = world.backend.ports.engine.operator().unwrap();
    let mut late = world.backend.ports.engine.operator().unwrap();
    late.stores.write_documents = Arc::new(LateWrites(world.clone()));
    let (at, by, why) = (world.host.now(), "Ann".to_owned(), "a test".to_owned());
    let intervention = Intervention { at, by, why };
    let refused = late.control(search, Control::Terminate, &intervention).await;
    assert!(matches!(refused, Err(ControlError::Busy(_))), "{refused:?}");
    assert!(world.document(search).await.unwrap().content.ended_at.is_some());
    let repeated = operator.control(search, Control::Terminate, &intervention).await.unwrap();
    assert_eq!(repeated, ControlOutcome::Unchanged);
    assert_eq!(admitted(&world, search, &expected).await, []);
}

/// A second operator has listed the entry before the first one requeued it.
#[tokio::test]
async fn requeued_entry_survives_stale_discard() {
    let world = World::new();
    let ports = crashing_ports(&world);
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

/// Returns the owner of the only entry of a session.
async fn session_id(world: &World) -> SessionId {
    match world.store().session_outbox().pending(None, 10).await.unwrap()[0].owner {
        Some(Owner::Session(id)) => id,
        other => panic!("{other:?}"),
    }
}

/// Writes past the ports, like a newer version or a damaged disk.
#[tokio::test]
async fn unreadable_entry_does_not_block_others() {
    let world = World::new();
    let ports = crashing_ports(&world);
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
        outbox.resolve_unreadable(&unreadable.place, &UnreadableAction::Delete).await.unwrap();
    }
    assert_eq!(outbox.pending(None, 10).await.unwrap(), []);
}
