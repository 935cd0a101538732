//! Failures are stored, grouped by cause, and retried once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dedup::{Admission, CheckTokens, Claim, ClaimCondition, GrantTokens};
use embedded::{Call, Intercept, Phase};
use imports::queues::{CONTROL, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA, SAGA_DEAD, UPLOADS};
use imports::{JobState, SearchId};
use jiff::SignedDuration;
use messages::{
    AttemptId, Depth, Disposition, Host, InspectQueues, Message, Outgoing, Queue, ReceiveMessages,
    ReceivedMessage, SendError, SendMessages, StoreError, Token,
};
use saga::failures::{
    Failure, FailureStatus, Failures, Operation, Phase as Step, RequestRefusal, Retry, Selection, State,
};
use service::{Deletion, ProjectAccess};
use uuid::Uuid;

use crate::world::{CrashAt, Slow, TWO_RECORDS, World, deliveries};

const SECOND: Duration = Duration::from_secs(1);

async fn of(world: &World, standing: FailureStatus) -> Vec<Failure> {
    let store = &world.functions.failures.store;
    store.select(&Selection::of(standing), None, 10_000).await.unwrap()
}

pub(crate) async fn gather(world: &World) {
    world.functions.failures.collect(None).await.unwrap();
}

/// Dead-letters an event of a saga, and stores it as a failure.
async fn dead_letter(world: &World, message: &Message, body: &str) {
    let outgoing = Outgoing {
        id: message.id,
        partition: message.partition,
        queue: SAGA_DEAD,
        body: body.to_owned(),
        delay: Duration::ZERO,
    };
    let sent: Result<Vec<()>, SendError> =
        SendMessages::send(world.store(), &[outgoing]).await.into_iter().collect();
    sent.unwrap();
    gather(world).await;
}

fn all() -> Retry {
    Retry { selection: Selection::of(FailureStatus::Open), limit: None, per_second: 50, canary: 0 }
}

/// Runs steps, one per second, until no operation is running; returns their number.
pub(crate) async fn run_to_the_end(world: &World) -> usize {
    let mut steps = 0;
    while world.functions.failures.run_step().await.unwrap() {
        world.host.advance(SECOND);
        steps += 1;
        assert!(steps < 1_000, "the operation does not end");
    }
    steps
}

async fn operation(world: &World, operation: &Operation) -> Operation {
    world.functions.failures.store.operation(operation.id).await.unwrap().unwrap()
}

/// Creates a search whose only file is uploaded and whose event is dead-lettered with this reason.
pub(crate) async fn search_with_dead_letter(world: &World, reason: &str) -> SearchId {
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS]).await;
    for received in world.take(&SAGA).await {
        if Message::decode(&received.delivery.body).unwrap().body.name == "SearchUploadSaved" {
            let answer = Disposition::DeadLetter { reason: reason.to_owned() };
            world.store().answer(&SAGA, &received.receipt, &answer).await.unwrap();
        } else {
            world.deliver(&SAGA, &[received]).await;
        }
    }
    announced.search_id
}

#[tokio::test]
async fn retried_dead_letter_takes_effect_unchanged() {
    let world = World::new();
    let search = search_with_dead_letter(&world, "partition 17 cannot be read").await;
    let body = world.store().dead_letters(&SAGA_DEAD).await.unwrap().remove(0).body;
    gather(&world).await;
    assert_eq!(
        world.store().dead_letters(&SAGA_DEAD).await.unwrap(),
        [],
        "it outlives the queue's retention"
    );
    let failure = of(&world, FailureStatus::Open).await.remove(0);
    let message = Message::decode(&body).unwrap();
    assert_eq!((&failure.body, failure.message_id), (&body, Some(message.id)));
    assert_eq!((failure.partition, failure.message.as_str()), (Some(search), "SearchUploadSaved"));
    assert_eq!(
        (failure.reason.as_str(), failure.seen, failure.retried),
        ("partition 17 cannot be read", 1, 0)
    );

    let failures = &world.functions.failures;
    let begun = failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let done = operation(&world, &begun).await;
    assert!(matches!(done.phase, Step::Done { .. }) && done.retried == 1, "{done:?}");
    let retried = of(&world, FailureStatus::Retried).await.remove(0);
    assert_eq!((retried.id, retried.retried, retried.seen), (failure.id, 1, 1));
    assert!(retried.expires_at.is_some());
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
    let acts = failures.store.acts(10).await.unwrap();
    assert_eq!((acts[0].by.as_str(), acts[0].did.as_str()), ("Ann", "began a retry"));
    assert_eq!(acts[0].to, begun.id.to_string());
}

/// The ledger item has expired together with its tokens, and a later event has removed the id of the message from the
/// document. So nothing shows that the message was processed.
#[tokio::test]
async fn event_of_forgetful_partition_is_not_retried() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris", "c.ris", "d.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &CONTROL]).await;
    let events = world.take(&SAGA).await;
    world.deliver(&SAGA, &events).await;
    for later in [1, 2, 3] {
        world.upload(&announced, later, TWO_RECORDS).await;
        world.deliver_all(&[&UPLOADS, &SAGA]).await;
    }
    let document = world.document(announced.search_id).await.unwrap();
    let name = |received: &ReceivedMessage| Message::decode(&received.delivery.body).unwrap().body.name;
    let duplicate = events.iter().find(|event| name(event) == "SearchUploadSaved").unwrap();
    let body = duplicate.delivery.body.clone();
    let message = Message::decode(&body).unwrap();
    assert!(document.content.processed.iter().all(|processed| processed.id != message.id));
    for days in [1, 40] {
        dead_letter(&world, &message, &body).await;
        world.pass(Duration::from_hours(24 * days)).await;
        let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
        run_to_the_end(&world).await;
        let ended = operation(&world, &begun).await;
        let is_forgotten = days > 30;
        assert_eq!(
            (ended.retried, ended.refused),
            (u64::from(!is_forgotten), u64::from(is_forgotten)),
            "{days}"
        );
        let token = message.token.as_ref().unwrap();
        let now = world.host.now();
        let is_granted = world.store().is_granted(message.partition, token, now).await.unwrap();
        assert!(!is_granted, "the message was processed before, so it must not be processed again");
    }
    let reason = of(&world, FailureStatus::Open).await.remove(0).reason;
    assert!(reason.contains("has forgotten"), "{reason}");
}

/// The worker was killed after it had stored the end of the search and before it removed the event's token, and the
/// ledger was unavailable for all redeliveries. After the document has expired, the event would begin the search again.
#[tokio::test]
async fn event_of_expired_search_is_not_retried_while_its_token_remains() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &CONTROL]).await;
    let events = world.take(&SAGA).await;
    let body = events[0].delivery.body.clone();
    let message = Message::decode(&body).unwrap();
    world.deliver(&SAGA, &events).await;
    world.run().await;
    world.pass(Duration::from_hours(24 * 8)).await;
    assert_eq!(world.document(announced.search_id).await, None, "it has expired");
    for is_granted in [false, true] {
        if is_granted {
            let (token, now) = (message.token.clone().unwrap(), world.host.now());
            GrantTokens::grant(world.store(), message.partition, &[token], now).await.unwrap();
        }
        dead_letter(&world, &message, &body).await;
        let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
        run_to_the_end(&world).await;
        let ended = operation(&world, &begun).await;
        assert_eq!((ended.retried, ended.refused), (u64::from(!is_granted), u64::from(is_granted)));
        world.run().await;
        assert_eq!(world.document(announced.search_id).await, None, "the search does not begin again");
    }
}

#[tokio::test]
async fn dead_letters_return_to_their_queues() {
    let world = World::new();
    let queues = [UPLOADS, SAGA, PARSE, CONTROL];
    for queue in &queues {
        let announced = world.announce(&["a.ris"]).await;
        let body = format!("junk for {queue} of {}", announced.search_id);
        let outgoing = Outgoing {
            id: messages::MessageId::from_uuid(Uuid::from_u128(1)),
            partition: announced.search_id,
            queue: queue.clone(),
            body,
            delay: Duration::ZERO,
        };
        let sent: Result<Vec<()>, SendError> =
            SendMessages::send(world.store(), &[outgoing]).await.into_iter().collect();
        sent.unwrap();
    }
    world.run().await;
    gather(&world).await;
    let found = of(&world, FailureStatus::Open).await;
    let mut sources: Vec<(&str, &Queue)> =
        found.iter().map(|failure| (failure.origin.place(), failure.origin.source().unwrap())).collect();
    sources.sort_unstable();
    let wanted = [
        ("control-dead", &CONTROL),
        ("parse-unreadable", &PARSE),
        ("saga-dead", &SAGA),
        ("uploads-dead", &UPLOADS),
    ];
    assert_eq!(sources, wanted);
    // An invalid message is dead-lettered again, as the same failure.
    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    world.run().await;
    gather(&world).await;
    let again = of(&world, FailureStatus::Open).await;
    assert_eq!(again.len(), found.len());
    assert!(again.iter().all(|failure| failure.seen == 2 && failure.retried == 1), "{again:?}");
}

/// The worker that records the failure has a clock that is ahead of the clock of the worker that begins the retry.
#[tokio::test]
async fn failure_recorded_by_fast_clock_is_retried() {
    let world = World::new();
    let search = search_with_dead_letter(&world, "partition 17 cannot be read").await;
    let ahead = world.host.now() + SignedDuration::from_mins(5);
    world.with_host(testing::ManualHost::new(ahead, 7)).failures.collect(None).await.unwrap();
    let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
    assert_eq!(begun.total, 1);
    run_to_the_end(&world).await;
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
}

#[tokio::test]
async fn reported_command_is_closed_and_not_retryable() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA, &SAGA]).await;
    let command = world.take(&PARSE).await.remove(0);
    let gone = Disposition::DeadLetter { reason: "no luck".to_owned() };
    world.store().answer(&PARSE, &command.receipt, &gone).await.unwrap();
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Error);
    let closed = of(&world, FailureStatus::Closed).await.remove(0);
    assert_eq!((closed.body.as_str(), closed.origin.place()), (command.delivery.body.as_str(), "parse-dead"));
    let selection = Selection { ids: [closed.id].into(), ..Selection::of(FailureStatus::Open) };
    let refused = world.functions.failures.retry(Retry { selection, ..all() }, "Ann").await.unwrap_err();
    assert!(refused.to_string().contains("repair"), "{refused}");
    assert!(world.take(&PARSE).await.is_empty() && world.take(&PARSE_DEAD).await.is_empty());
    assert_eq!(world.store().dead_letters(&PARSE_UNREADABLE).await.unwrap(), []);
}

/// No other message reports the deletion to the search, so a lost command would leave the studies of a deleted search.
#[tokio::test]
async fn command_dead_lettered_again_is_open_again() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.pass(SECOND).await;
    let asked = world.functions.start_upload.delete(&ProjectAccess::All, announced.search_id).await;
    assert_eq!(asked.unwrap(), Deletion::Accepted);
    for times in 1..=3 {
        let command = world.take(&PARSE).await.remove(0);
        let gone = Disposition::DeadLetter { reason: "no luck".to_owned() };
        world.store().answer(&PARSE, &command.receipt, &gone).await.unwrap();
        let reported = world.take(&PARSE_DEAD).await;
        // A duplicate of the dead letter arrives, too.
        world.functions.behind(&PARSE_DEAD).consume(&deliveries(&reported), None).await;
        world.deliver(&PARSE_DEAD, &reported).await;
        let open = of(&world, FailureStatus::Open).await.remove(0);
        assert_eq!((open.message.as_str(), open.seen), ("TakeBackFiles", times));
        world.functions.failures.retry(all(), "Ann").await.unwrap();
        run_to_the_end(&world).await;
    }
    world.run().await;
    assert_eq!(of(&world, FailureStatus::Open).await, []);
    assert_eq!(world.jobs().job(announced.search_id).await.unwrap(), None);
}

#[tokio::test]
async fn crashed_gathering_neither_loses_nor_repeats() {
    for call in [Call::QueueReceive, Call::FailuresRead, Call::FailuresChange, Call::QueueAnswer] {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            search_with_dead_letter(&world, "one").await;
            search_with_dead_letter(&world, "two").await;
            let crash = CrashAt::new(call, phase, 1);
            crash.kill(world.crashing(&crash).failures.collect(None)).await;
            world.host.advance(Duration::from_secs(61));
            gather(&world).await;
            let found = of(&world, FailureStatus::Open).await;
            assert_eq!(found.len(), 2, "{call:?} {phase:?}");
            assert!(found.iter().all(|failure| failure.seen == 1), "{call:?} {phase:?}: {found:?}");
            assert_eq!(world.store().dead_letters(&SAGA_DEAD).await.unwrap(), []);
        }
    }
}

#[tokio::test]
async fn crashed_retry_resumes_with_each_effect_once() {
    let calls = [
        Call::OperationsRead,
        Call::OperationsAdvance,
        Call::FailuresSelect,
        Call::FailuresChange,
        Call::LedgerBegin,
        Call::QueueSend,
    ];
    for call in calls {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let searches =
                [search_with_dead_letter(&world, "one").await, search_with_dead_letter(&world, "two").await];
            gather(&world).await;
            world.functions.failures.retry(all(), "Ann").await.unwrap();
            let crash = CrashAt::new(call, phase, 1);
            crash.kill(world.crashing(&crash).failures.run_step()).await;
            // A worker that runs a second later must not treat the operation as completed.
            world.host.advance(SECOND);
            run_to_the_end(&world).await;
            world.run().await;
            gather(&world).await;
            for search in searches {
                assert_eq!(world.job(search).await.state, JobState::Completed, "{call:?} {phase:?}");
                assert_eq!(world.studies(search).await.len(), 2, "{call:?} {phase:?}");
                assert_eq!(world.parsed(search).await.len(), 1, "{call:?} {phase:?}");
            }
            assert_eq!(of(&world, FailureStatus::Retried).await.len(), 2, "{call:?} {phase:?}");
        }
    }
}

/// Stops an operation whose worker crashed after it had claimed a failure.
async fn stop_interrupted_operation(world: &World) {
    search_with_dead_letter(world, "one").await;
    gather(world).await;
    let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
    let crash = CrashAt::new(Call::QueueSend, Phase::Before, 1);
    crash.kill(world.crashing(&crash).failures.run_step()).await;
    world.functions.failures.stop(begun.id, "Bob").await.unwrap();
}

/// No worker continues a stopped operation, so the failures that it had claimed must be released.
#[tokio::test]
async fn stopping_operation_reopens_claimed_failures() {
    let world = World::new();
    stop_interrupted_operation(&world).await;
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Retrying).await.len(), 1, "a worker may still hold them");
    world.host.advance(Duration::from_secs(61));
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
}

/// Creates two searches with a dead letter each, and damages the document of the one that failed last.
async fn damaged_and_sound(world: &World) -> [SearchId; 2] {
    let sound = search_with_dead_letter(world, "no luck").await;
    gather(world).await;
    world.host.advance(SECOND);
    let damaged = search_with_dead_letter(world, "no luck").await;
    gather(world).await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let sql = "UPDATE saga SET content = '{' WHERE search_id = ?1";
    assert_eq!(database.execute(sql, [damaged.to_string()]).unwrap(), 1);
    [damaged, sound]
}

/// No retry can read the document, so the operation continues with the other failures.
#[tokio::test]
async fn failure_that_cannot_be_retried_does_not_stop_others() {
    let world = World::new();
    let [damaged, sound] = damaged_and_sound(&world).await;
    let begun = world.functions.failures.retry(Retry { per_second: 1, ..all() }, "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let ended = operation(&world, &begun).await;
    let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
    assert_eq!(why, "1 of 2 cannot be retried; see their reasons");
    assert_eq!((ended.retried, ended.refused), (1, 1));
    let [retried] = of(&world, FailureStatus::Retried).await.try_into().unwrap();
    assert_eq!(retried.partition, Some(sound));
    let [open] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    assert_eq!((open.partition, open.seen), (Some(damaged), 2));
    assert!(open.reason.starts_with("no luck; it cannot be retried: "), "{}", open.reason);
}

#[tokio::test]
async fn canary_that_cannot_be_retried_stops_operation() {
    let world = World::new();
    damaged_and_sound(&world).await;
    let begun = world.functions.failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let ended = operation(&world, &begun).await;
    assert!(matches!(ended.phase, Step::Stopped { .. }), "{ended:?}");
    assert_eq!((ended.retried, ended.refused), (0, 1));
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 2);
}

/// A process without the addresses of queues.
struct WithoutQueues;

#[async_trait]
impl SendMessages for WithoutQueues {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        messages.iter().map(|message| Err(SendError::UnknownQueue(message.queue.clone()))).collect()
    }
}

#[tokio::test]
async fn missing_queue_stops_operation_and_changes_no_failure() {
    let world = World::new();
    search_with_dead_letter(&world, "no luck").await;
    gather(&world).await;
    let failures = Failures { send: Arc::new(WithoutQueues), ..world.functions.failures.clone() };
    let begun = failures.retry(all(), "Ann").await.unwrap();
    assert!(!failures.run_step().await.unwrap());
    let ended = operation(&world, &begun).await;
    let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
    assert!(why.contains("no URL is set for queue"), "{why}");
    let [open] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    assert_eq!((open.reason.as_str(), open.seen), ("no luck", 1));
}

/// By then the items of the ledger have expired, and with them the tokens of the messages.
#[tokio::test]
async fn retried_message_without_token_takes_effect() {
    let world = World::new();
    let search = search_with_dead_letter(&world, "one").await;
    gather(&world).await;
    let failure = of(&world, FailureStatus::Open).await.remove(0);
    let token: Token = Message::decode(&failure.body).unwrap().token.unwrap();
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    database.execute("DELETE FROM ledger", []).unwrap();
    assert!(!world.store().is_granted(search, &token, world.host.now()).await.unwrap());
    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    world.run().await;
    // The announcement's own token was deleted too; a file without a token is read after the search has waited for it.
    assert_ne!(world.job(search).await.state, JobState::Error);
    assert!(world.job(search).await.files[0].received);
}

#[tokio::test]
async fn failures_are_retried_at_requested_rate() {
    let world = World::new();
    for _ in 0..120 {
        search_with_dead_letter(&world, "partition 17 cannot be read").await;
    }
    gather(&world).await;
    let snapshot = world.functions.failures.snapshot(Selection::of(FailureStatus::Open)).await.unwrap();
    assert_eq!((snapshot.count, snapshot.groups.len()), (120, 1));
    world.host.advance(SECOND);
    search_with_dead_letter(&world, "partition 18 cannot be read").await;
    gather(&world).await;
    let retry = Retry { selection: snapshot.selection, ..all() };
    let begun = world.functions.failures.retry(retry, "Ann").await.unwrap();
    let mut sent = Vec::new();
    while world.functions.failures.run_step().await.unwrap() {
        // A second worker within the same second does not double the rate.
        world.functions.failures.run_step().await.unwrap();
        sent.push(of(&world, FailureStatus::Retried).await.len());
        world.host.advance(SECOND);
    }
    assert_eq!(sent, [50, 100, 120]);
    assert_eq!(operation(&world, &begun).await.retried, 120);
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1, "later failures stay open");
}

/// The fate of a canary message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ahead {
    /// A worker processes the message.
    Processed,
    /// The message is dead-lettered again and collected.
    DeadLettered,
    /// The message is dead-lettered again and not collected.
    NotGathered,
    /// A worker has received the message and does not finish.
    InFlight,
    /// A worker finishes the message after two minutes.
    Slow,
    /// No worker is running.
    Untouched,
}

#[tokio::test]
async fn canary_passes_only_if_message_was_processed() {
    for ahead in [
        Ahead::Processed,
        Ahead::DeadLettered,
        Ahead::NotGathered,
        Ahead::InFlight,
        Ahead::Slow,
        Ahead::Untouched,
    ] {
        let world = World::new();
        for _ in 0..5 {
            search_with_dead_letter(&world, "one cause").await;
        }
        gather(&world).await;
        let begun = world.functions.failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
        assert!(world.functions.failures.run_step().await.unwrap());
        assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
        let mut slow = Vec::new();
        match ahead {
            Ahead::Processed => world.deliver_all(&[&SAGA]).await,
            Ahead::DeadLettered | Ahead::NotGathered => {
                for received in world.take(&SAGA).await {
                    let dead = Disposition::DeadLetter { reason: "one cause".to_owned() };
                    world.store().answer(&SAGA, &received.receipt, &dead).await.unwrap();
                }
                if ahead == Ahead::DeadLettered {
                    gather(&world).await;
                }
            }
            Ahead::InFlight | Ahead::Slow => slow = world.take(&SAGA).await,
            Ahead::Untouched => {}
        }
        if ahead == Ahead::Slow {
            world.host.advance(2 * 60 * SECOND);
            assert!(world.functions.failures.run_step().await.unwrap(), "a worker is on it");
            assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
            for received in world.take(&SAGA).await.into_iter().chain(slow) {
                world.deliver(&SAGA, &[received]).await;
            }
        }
        let steps = run_to_the_end(&world).await;
        assert!(steps >= 60, "it is watched for a minute: {steps}");
        let ended = operation(&world, &begun).await;
        let expected = match ahead {
            Ahead::Processed | Ahead::Slow => None,
            Ahead::DeadLettered | Ahead::NotGathered => Some("1 of the 1 that went ahead failed again"),
            Ahead::InFlight => Some("1 of the 1 that went ahead were not processed within 5 min"),
            Ahead::Untouched => Some("no worker has taken 1 of the 1 that went ahead"),
        };
        match (expected, ended.phase) {
            (None, Step::Done { .. }) => assert_eq!(ended.retried, 5, "{ahead:?}"),
            (Some(expected), Step::Stopped { why, .. }) => {
                assert!(why.contains(expected), "{ahead:?}: {why}");
                assert_eq!(ended.retried, 1, "{ahead:?}");
            }
            (_, phase) => panic!("{ahead:?}: {phase:?}"),
        }
    }
}

/// Queues that can count messages but not look up single ones, like SQS.
struct CountingQueues(Arc<dyn InspectQueues>);

#[async_trait]
impl InspectQueues for CountingQueues {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        self.0.depths().await
    }
}

/// The queue always contains other messages, so only the history shows whether the canary was processed.
#[tokio::test]
async fn canary_in_busy_queue_is_judged_by_history() {
    for is_processed in [true, false] {
        let world = World::new();
        for _ in 0..3 {
            search_with_dead_letter(&world, "one cause").await;
        }
        gather(&world).await;
        let inspect = Arc::new(CountingQueues(Arc::clone(&world.functions.failures.inspect)));
        let failures = Failures { inspect, ..world.functions.failures.clone() };
        let begun = failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
        assert!(failures.run_step().await.unwrap());
        if is_processed {
            world.deliver_all(&[&SAGA]).await;
        }
        world.announce(&["b.ris"]).await;
        world.deliver_all(&[&CONTROL]).await;
        world.host.advance(60 * SECOND);
        failures.run_step().await.unwrap();
        let phase = operation(&world, &begun).await.phase;
        match (is_processed, phase) {
            (true, Step::Running) => {}
            (false, Step::Stopped { why, .. }) => assert!(why.contains("no worker has taken 1"), "{why}"),
            (_, phase) => panic!("{phase:?}"),
        }
    }
}

/// Each failure is retried inside its search's partition, which one worker holds at a time.
#[tokio::test]
async fn failures_of_one_search_are_retried_together() {
    let world = World::new();
    let names = ["a.ris", "b.ris", "c.ris", "d.ris"];
    let announced = world.announce(&names).await;
    for index in 0..names.len() {
        world.upload(&announced, index, TWO_RECORDS).await;
    }
    world.deliver_all(&[&UPLOADS]).await;
    for received in world.take(&SAGA).await {
        if Message::decode(&received.delivery.body).unwrap().body.name == "SearchUploadSaved" {
            let answer = Disposition::DeadLetter { reason: "one cause".to_owned() };
            world.store().answer(&SAGA, &received.receipt, &answer).await.unwrap();
        } else {
            world.deliver(&SAGA, &[received]).await;
        }
    }
    gather(&world).await;
    let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
    assert!(world.functions.failures.run_step().await.unwrap());
    let ended = operation(&world, &begun).await;
    assert_eq!((ended.retried, ended.phase), (4, Step::Running));
    run_to_the_end(&world).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.studies(announced.search_id).await.len(), 8);
}

/// A worker holds a search while it handles its message, and up to half a minute longer after a crash.
#[tokio::test]
async fn held_search_waits_without_blocking_others() {
    let world = World::new();
    let searches =
        [search_with_dead_letter(&world, "one").await, search_with_dead_letter(&world, "two").await];
    gather(&world).await;
    let document = world.document(searches[0]).await;
    let finished = document.and_then(|document| document.content.finished());
    let inside = Claim {
        partition: searches[0],
        attempt: AttemptId::from_uuid(world.host.fresh_id()),
        now: world.host.now(),
        lease: SignedDuration::from_secs(30),
        supersedes: finished,
        requires: ClaimCondition::Always,
        new_tokens: Vec::new(),
        max_tokens: 200,
        fence: 0,
        above: 0,
        until: world.host.now(),
    };
    let ledger = &world.backend.ports.engine.partitions().unwrap().ledger;
    let (_, answer) = dedup::ledger::ask(ledger.as_ref(), inside).await.unwrap();
    assert!(matches!(answer, Admission::Admitted(_)));
    let begun = world.functions.failures.retry(all(), "Ann").await.unwrap();
    for _ in 0..25 {
        assert!(world.functions.failures.run_step().await.unwrap());
        let known = operation(&world, &begun).await;
        assert_eq!((known.retried, known.phase), (1, Step::Running));
        world.host.advance(SECOND);
    }
    let waiting = of(&world, FailureStatus::Open).await.remove(0);
    assert_eq!((waiting.partition, waiting.retried), (Some(searches[0]), 0), "it was not put back");
    run_to_the_end(&world).await;
    let ended = operation(&world, &begun).await;
    assert!(matches!(ended.phase, Step::Done { .. }) && ended.retried == 2, "{ended:?}");
    world.run().await;
    for search in searches {
        assert_eq!(world.job(search).await.state, JobState::Completed);
        assert_eq!(world.studies(search).await.len(), 2);
    }
}

#[tokio::test]
async fn concurrent_actions_of_operators_admit_one() {
    let world = World::new();
    search_with_dead_letter(&world, "one").await;
    gather(&world).await;
    let failures = &world.functions.failures;
    let id = of(&world, FailureStatus::Open).await[0].id;
    let (ann, bob) = tokio::join!(failures.retry(all(), "Ann"), failures.retry(all(), "Bob"));
    let (begun, told) = match (ann, bob) {
        (Ok(begun), Err(told)) | (Err(told), Ok(begun)) => (begun, told),
        both => panic!("{both:?}"),
    };
    assert!(matches!(told, RequestRefusal::Busy(id) if id == begun.id), "{told}");
    run_to_the_end(&world).await;
    // The same failure is requested again.
    let named = Selection { ids: [id].into(), ..Selection::of(FailureStatus::Open) };
    let again = failures.retry(Retry { selection: named, ..all() }, "Bob").await.unwrap_err();
    assert!(again.to_string().contains("is retried"), "{again}");
    assert!(matches!(failures.retry(all(), "Bob").await, Err(RequestRefusal::Nothing)));
    assert!(matches!(failures.stop(begun.id, "Bob").await, Err(RequestRefusal::NotRunning(_))));
    let ids = &[id];
    let (one, other) = tokio::join!(failures.archive(ids, "done", "Ann"), failures.delete(ids, "old", "Bob"));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
}

#[tokio::test]
async fn stopped_operation_retries_nothing_more() {
    let world = World::new();
    for _ in 0..3 {
        search_with_dead_letter(&world, "one").await;
    }
    gather(&world).await;
    let failures = &world.functions.failures;
    let begun = failures.retry(Retry { per_second: 1, ..all() }, "Ann").await.unwrap();
    assert!(failures.run_step().await.unwrap());
    let stopped = failures.stop(begun.id, "Bob").await.unwrap();
    assert!(matches!(&stopped.phase, Step::Stopped { why, .. } if why == "stopped by Bob"));
    world.host.advance(SECOND);
    assert!(!failures.run_step().await.unwrap());
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 2);
}

#[tokio::test]
async fn invalid_requests_change_nothing() {
    let world = World::new();
    search_with_dead_letter(&world, "one").await;
    gather(&world).await;
    let failures = &world.functions.failures;
    let id = of(&world, FailureStatus::Open).await[0].id;
    let unknown = saga::failures::FailureId::from_uuid(Uuid::from_u128(4));
    let named = Selection { ids: [unknown].into(), ..Selection::of(FailureStatus::Open) };
    for (retry, wanted) in [
        (Retry { per_second: 0, ..all() }, "per second"),
        (Retry { per_second: 5_000, ..all() }, "per second"),
        (Retry { canary: 100, ..all() }, "at most 10"),
        (Retry { limit: Some(0), ..all() }, "limit"),
        (Retry { selection: named, ..all() }, "there is no failure"),
    ] {
        let refused = failures.retry(retry, "Ann").await.unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
    let refused = failures.archive(&[id], "  ", "Ann").await.unwrap_err().to_string();
    assert!(refused.contains("reason"), "{refused}");
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
    assert!(failures.store.acts(10).await.unwrap().is_empty(), "nothing was done");
    failures.archive(&[id], "known", "Ann").await.unwrap();
    let archived = of(&world, FailureStatus::Archived).await.remove(0);
    assert_eq!(archived.state, State::Archived { why: "known".to_owned() });
    failures.delete(&[id], "not needed", "Ann").await.unwrap();
    assert!(matches!(failures.delete(&[id], "again", "Ann").await, Err(RequestRefusal::Unknown(_))));
    let acts = failures.store.acts(10).await.unwrap();
    assert_eq!(acts.iter().map(|act| act.did.as_str()).collect::<Vec<_>>(), ["deleted", "archived"]);
}

/// The entries of an outbox are requeued as they were reported. An unreadable entry becomes a new failure when it is
/// poisoned again.
#[tokio::test]
async fn poisoned_effects_become_failures_and_are_requeued() {
    let world = World::new();
    let searches = [world.announce(&["a.ris"]).await.search_id, world.announce(&["b.ris"]).await.search_id];
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL, error = 'sending 3 messages failed'
        WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    for search in &searches {
        assert_eq!(database.execute(poison, [search.to_string()]).unwrap(), 1);
    }
    let damage = "UPDATE outbox SET kind = 'webhook' WHERE owner_id = ?1 AND poisoned = 1";
    assert_eq!(database.execute(damage, [searches[1].to_string()]).unwrap(), 1);
    for _ in 0..2 {
        gather(&world).await;
    }
    let found = of(&world, FailureStatus::Open).await;
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|failure| failure.origin.place() == "outbox" && failure.seen == 1));
    let timer = found.iter().find(|failure| failure.partition == Some(searches[0])).unwrap();
    assert_eq!(
        (timer.message.as_str(), timer.reason.as_str()),
        ("UploadTimeout", "sending 3 messages failed")
    );

    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 2);
    // One entry is sent; the other is still unreadable and is poisoned again.
    world.pass(Duration::from_secs(60)).await;
    world.run().await;
    gather(&world).await;
    let again = of(&world, FailureStatus::Open).await;
    assert_eq!(again.iter().map(|failure| (failure.seen, failure.retried)).collect::<Vec<_>>(), [(2, 1)]);
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
}

/// After a day without access to a queue there may be one such effect per search.
#[tokio::test]
async fn many_poisoned_effects_are_recorded_across_invocations() {
    let world = World::new();
    for _ in 0..450 {
        world.announce(&["a.ris"]).await;
    }
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 450);
    let slow = world.crashing(&Arc::new(Slow(Call::FailuresChange, Arc::clone(&world.host))));
    for open in [200, 400, 450] {
        let deadline = world.host.now().checked_add(SignedDuration::from_secs(1)).unwrap();
        slow.failures.collect(Some(deadline)).await.unwrap();
        assert_eq!(of(&world, FailureStatus::Open).await.len(), open);
    }
    assert_eq!(database.execute("UPDATE outbox SET poisoned = 0 WHERE poisoned = 1", []).unwrap(), 450);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 0);
}

#[tokio::test]
async fn deleted_failure_deletes_its_effect() {
    for archived in 0..=2 {
        effects_go_with_their_failures(archived).await;
    }
}

/// Returns the database with one poisoned effect in each of two searches, one of them unreadable.
async fn with_two_poisoned(world: &World) -> rusqlite::Connection {
    let searches = [world.announce(&["a.ris"]).await.search_id, world.announce(&["b.ris"]).await.search_id];
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison =
        "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    for search in &searches {
        assert_eq!(database.execute(poison, [search.to_string()]).unwrap(), 1);
    }
    let damage = "UPDATE outbox SET kind = 'webhook' WHERE owner_id = ?1 AND poisoned = 1";
    assert_eq!(database.execute(damage, [searches[1].to_string()]).unwrap(), 1);
    database
}

/// Checks deletion after `archived` of the two failures were archived.
async fn effects_go_with_their_failures(archived: usize) {
    let world = World::new();
    let database = with_two_poisoned(&world).await;
    gather(&world).await;
    let left = || {
        let sql = "SELECT count(*) FROM outbox WHERE poisoned = 1";
        database.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap()
    };
    let found = of(&world, FailureStatus::Open).await;
    assert_eq!((found.len(), left()), (2, 2));
    let failures = &world.functions.failures;
    for failure in &found[..archived] {
        failures.archive(&[failure.id], "looked at", "Ann").await.unwrap();
    }
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 2 - archived, "archived failures stay hidden");
    for (failure, left_then) in found.iter().zip([1, 0]) {
        failures.delete(&[failure.id], "not needed", "Ann").await.unwrap();
        assert_eq!(left(), left_then);
    }
    gather(&world).await;
    assert!(of(&world, FailureStatus::Open).await.is_empty());
}

/// Records the calls that list outboxes.
#[derive(Default)]
struct Listings(Mutex<Vec<Call>>);

#[async_trait]
impl Intercept for Listings {
    async fn step(&self, call: Call, phase: Phase) {
        if phase == Phase::Before && matches!(call, Call::OutboxPending | Call::OutboxPoisoned) {
            self.0.lock().unwrap().push(call);
        }
    }
}

/// After an outage, very many other effects may be exhausted.
#[tokio::test]
async fn retry_and_deletion_of_effect_list_no_outbox() {
    let world = World::new();
    for name in ["a.ris", "b.ris"] {
        world.announce(&[name]).await;
    }
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL WHERE kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, []).unwrap(), 2);
    gather(&world).await;
    let [one, other] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    let listings = Arc::new(Listings::default());
    let failures = world.crashing(&listings).failures;
    let selection = Selection { ids: BTreeSet::from([one.id]), ..Selection::of(FailureStatus::Open) };
    failures.retry(Retry { selection, ..all() }, "Ann").await.unwrap();
    while failures.run_step().await.unwrap() {
        world.host.advance(SECOND);
    }
    failures.delete(&[other.id], "not needed", "Ann").await.unwrap();
    assert_eq!(*listings.0.lock().unwrap(), []);
    assert_eq!(of(&world, FailureStatus::Retried).await.len(), 1);
    let left = "SELECT count(*), sum(poisoned) FROM outbox WHERE kind NOT LIKE '%job%'";
    let left = database.query_row(left, [], |row| Ok((row.get::<_, u32>(0)?, row.get::<_, u32>(1)?)));
    assert_eq!(left.unwrap(), (1, 0), "one effect is due again, and the other is deleted");
}

/// A closed failure says nothing about the current state of its effect.
#[tokio::test]
async fn deleted_failure_keeps_requeued_effect() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = "UPDATE outbox SET poisoned = 1, ready_at = NULL, kind = 'webhook'
        WHERE owner_id = ?1 AND kind NOT LIKE '%job%'";
    assert_eq!(database.execute(poison, [search.to_string()]).unwrap(), 1);
    gather(&world).await;
    world.functions.failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let retried = of(&world, FailureStatus::Retried).await;
    world.functions.failures.delete(&[retried[0].id], "done", "Ann").await.unwrap();
    let sql = "SELECT count(*) FROM outbox WHERE kind = 'webhook'";
    assert_eq!(database.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap(), 1);
}

#[tokio::test]
async fn requeued_effect_closes_its_failure() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let poison = |poisoned: bool| {
        let sql = "UPDATE outbox SET poisoned = ?1 WHERE owner_id = ?2 AND kind NOT LIKE '%job%'";
        assert_eq!(database.execute(sql, rusqlite::params![poisoned, search.to_string()]).unwrap(), 1);
    };
    poison(true);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
    poison(false);
    gather(&world).await;
    assert_eq!(of(&world, FailureStatus::Closed).await.len(), 1);
}

/// Sends a message that cannot be read, and lets the saga's worker dead-letter it.
async fn dead_letter_junk(world: &World, body: &str) {
    let outgoing = Outgoing {
        id: messages::MessageId::from_uuid(Uuid::from_u128(1)),
        partition: SearchId::from_uuid(Uuid::from_u128(2)),
        queue: SAGA,
        body: body.to_owned(),
        delay: Duration::ZERO,
    };
    let sent = SendMessages::send(world.store(), &[outgoing]).await;
    sent.into_iter().collect::<Result<(), SendError>>().unwrap();
    world.run().await;
}

/// The store refuses one failure of a batch permanently. The others are recorded, and the dead letter stays.
#[tokio::test]
async fn failure_that_cannot_be_recorded_does_not_affect_others() {
    let world = World::new();
    dead_letter_junk(&world, "junk").await;
    gather(&world).await;
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let stored: String = database.query_row("SELECT failure FROM failure", [], |row| row.get(0)).unwrap();
    database.execute("UPDATE failure SET failure = '{'", []).unwrap();
    dead_letter_junk(&world, "junk").await;
    dead_letter_junk(&world, "rubbish").await;
    for _ in 0..2 {
        let error = world.functions.failures.collect(None).await.unwrap_err();
        assert!(error.chain().contains("reading failures"), "{}", error.chain());
        let left = world.store().dead_letters(&SAGA_DEAD).await.unwrap();
        assert_eq!(left.iter().map(|letter| &*letter.body).collect::<Vec<_>>(), ["junk"]);
        world.host.advance(Duration::from_secs(60));
    }
    database.execute("UPDATE failure SET failure = ?1 WHERE failure = '{'", [stored]).unwrap();
    gather(&world).await;
    let mut found: Vec<(String, u32)> = of(&world, FailureStatus::Open)
        .await
        .into_iter()
        .map(|failure| (failure.body, failure.seen))
        .collect();
    found.sort_unstable();
    assert_eq!(found, [("junk".to_owned(), 2), ("rubbish".to_owned(), 1)]);
}

/// An outbox that cannot be read does not keep the failures that a stopped operation has claimed.
#[tokio::test]
async fn unreadable_outbox_does_not_stop_rest_of_collection() {
    let world = World::new();
    stop_interrupted_operation(&world).await;
    world.host.advance(Duration::from_secs(61));
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    database.execute("ALTER TABLE outbox RENAME TO elsewhere", []).unwrap();
    assert!(world.functions.failures.collect(None).await.is_err());
    assert_eq!(of(&world, FailureStatus::Open).await.len(), 1);
}

#[test]
fn unconsumed_dead_letter_queues_are_drained() {
    let system = &functions::SYSTEM;
    let drained: Vec<&Queue> = system.functions.iter().flat_map(|function| function.drains).collect();
    let mut kept: Vec<Queue> = system.dead_letters().into_iter().map(|(dead, _)| dead).collect();
    let mut drained: Vec<Queue> = drained.into_iter().cloned().collect();
    kept.sort_unstable();
    drained.sort_unstable();
    assert_eq!(drained, kept);
}
