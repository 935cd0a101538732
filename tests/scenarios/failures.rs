//! Failures are stored, grouped by cause, and retried once.

use std::time::Duration;

use dedup::{CheckTokens, GrantTokens};
use embedded::{Call, Phase};
use imports::queues::{CONTROL, PARSE, PARSE_DEAD, PARSE_UNREADABLE, SAGA, SAGA_DEAD, UPLOADS};
use imports::{JobState, SearchId};
use jiff::SignedDuration;
use messages::{
    Disposition, Host, Message, Outgoing, Queue, ReceiveMessages, ReceivedMessage, SendError, SendMessages,
    Token,
};
use saga::failures::{Failure, FailureStatus, Operation, Phase as Step, Retry, Selection};
use service::{Deletion, ProjectAccess};
use uuid::Uuid;

use crate::world::{CrashAt, TWO_RECORDS, World, deliveries};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn of(world: &World, standing: FailureStatus) -> Vec<Failure> {
    let store = &world.functions.failures.store;
    store.select(&Selection::of(standing), None, 10_000).await.unwrap()
}

pub(crate) async fn gather(world: &World) {
    world.functions.failures.collect(None).await.unwrap();
}

/// Dead-letters an event of a saga, and stores it as a failure.
pub(crate) async fn dead_letter(world: &World, message: &Message, body: &str) {
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

pub(crate) fn all() -> Retry {
    Retry { selection: Selection::of(FailureStatus::Open), limit: None, per_second: 50, canary: 0 }
}

/// Runs steps, one per second, until no operation is running; returns their number.
pub(crate) async fn run_to_the_end(world: &World) -> usize {
    let mut steps = 0;
    while world.functions.failures.run_step(None).await.unwrap() {
        world.host.advance(SECOND);
        steps += 1;
        assert!(steps < 1_000, "the operation does not end");
    }
    steps
}

pub(crate) async fn operation(world: &World, operation: &Operation) -> Operation {
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
    let entries = failures.store.audit_entries(10).await.unwrap();
    assert_eq!((entries[0].by.as_str(), entries[0].did.as_str()), ("Ann", "began a retry"));
    assert_eq!(entries[0].to, begun.id.to_string());
}

/// The ledger item has expired together with its tokens, and a later event has removed the id of the message from the
/// document. Therefore, nothing shows that the message was processed.
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
async fn remaining_token_refuses_retry_of_expired_search() {
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
    world.with_host(contracts::ManualHost::new(ahead, 7)).failures.collect(None).await.unwrap();
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
async fn unrecordable_failure_does_not_affect_others() {
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
