//! An operation retries many failures: at a rate, after a canary, and across crashes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use dedup::{Admission, Claim, ClaimCondition};
use embedded::{Call, Phase};
use imports::queues::{CONTROL, SAGA, UPLOADS};
use imports::{JobState, SearchId};
use jiff::SignedDuration;
use messages::{
    AttemptId, Depth, Disposition, Host, InspectQueues, Message, Queue, ReceiveMessages, StoreError,
};
use saga::failures::{
    Change, Failure, FailureStatus, Failures, Origin, Phase as Step, RequestRefusal, Retry, Selection, State,
};
use uuid::Uuid;

use crate::failures::{all, gather, of, operation, run_to_the_end, search_with_dead_letter};
use crate::world::{CrashAt, TWO_RECORDS, WithoutQueues, World};

const SECOND: Duration = Duration::from_secs(1);

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
            crash.kill(world.crashing(&crash).failures.run_step(None)).await;
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
    crash.kill(world.crashing(&crash).failures.run_step(None)).await;
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
async fn refused_failure_does_not_stop_others() {
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

#[tokio::test]
async fn missing_queue_stops_operation_and_changes_no_failure() {
    let world = World::new();
    search_with_dead_letter(&world, "no luck").await;
    gather(&world).await;
    let failures = Failures { send: Arc::new(WithoutQueues), ..world.functions.failures.clone() };
    let begun = failures.retry(all(), "Ann").await.unwrap();
    assert!(!failures.run_step(None).await.unwrap());
    let ended = operation(&world, &begun).await;
    let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
    assert!(why.contains("no URL is set for queue"), "{why}");
    let [open] = of(&world, FailureStatus::Open).await.try_into().unwrap();
    assert_eq!((open.reason.as_str(), open.seen), ("no luck", 1));
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
    while world.functions.failures.run_step(None).await.unwrap() {
        // A second worker within the same second does not double the rate.
        world.functions.failures.run_step(None).await.unwrap();
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
        assert!(world.functions.failures.run_step(None).await.unwrap());
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
            assert!(world.functions.failures.run_step(None).await.unwrap(), "a worker is on it");
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

/// No worker is running, so neither a limit nor a lack of further failures may end the operation as completed.
#[tokio::test]
async fn canary_is_assessed_although_no_failure_follows() {
    for (failures, canary, limit) in [(2, 1, Some(1)), (2, 2, None), (2, 5, None), (3, 2, Some(1))] {
        let world = World::new();
        for _ in 0..failures {
            search_with_dead_letter(&world, "one cause").await;
        }
        gather(&world).await;
        let begun = world.functions.failures.retry(Retry { canary, limit, ..all() }, "Ann").await.unwrap();
        run_to_the_end(&world).await;
        let ended = operation(&world, &begun).await;
        let Step::Stopped { why, .. } = &ended.phase else { panic!("{canary} {limit:?}: {ended:?}") };
        assert!(why.contains("no worker has taken"), "{canary} {limit:?}: {why}");
    }
}

/// The other failures are not retried, because nothing shows that a worker can process them.
#[tokio::test]
async fn operation_stops_if_every_canary_is_removed() {
    for is_deleted in [false, true] {
        let world = World::new();
        for _ in 0..3 {
            search_with_dead_letter(&world, "one cause").await;
        }
        gather(&world).await;
        let begun = world.functions.failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
        assert!(world.functions.failures.run_step(None).await.unwrap());
        let [ahead] = of(&world, FailureStatus::Retried).await.try_into().unwrap();
        let failures = &world.functions.failures;
        match is_deleted {
            true => failures.delete(&[ahead.id], "obsolete", "Bob").await.unwrap(),
            false => failures.archive(&[ahead.id], "obsolete", "Bob").await.unwrap(),
        }
        run_to_the_end(&world).await;
        let ended = operation(&world, &begun).await;
        let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
        assert!(why.contains("removed"), "{why}");
        assert_eq!(ended.retried, 1);
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
        assert!(failures.run_step(None).await.unwrap());
        if is_processed {
            world.deliver_all(&[&SAGA]).await;
        }
        world.announce(&["b.ris"]).await;
        world.deliver_all(&[&CONTROL]).await;
        world.host.advance(60 * SECOND);
        failures.run_step(None).await.unwrap();
        let phase = operation(&world, &begun).await.phase;
        match (is_processed, phase) {
            (true, Step::Running) => {}
            (false, Step::Stopped { why, .. }) => assert!(why.contains("no worker has taken 1"), "{why}"),
            (_, phase) => panic!("{phase:?}"),
        }
    }
}

/// The canary message has moved from its queue to the dead-letter queue, which was not drained since then.
#[tokio::test]
async fn dead_lettered_canary_in_empty_queue_stops_operation() {
    let world = World::new();
    for _ in 0..3 {
        search_with_dead_letter(&world, "one cause").await;
    }
    gather(&world).await;
    let inspect = Arc::new(CountingQueues(Arc::clone(&world.functions.failures.inspect)));
    let failures = Failures { inspect, drains: Vec::new(), ..world.functions.failures.clone() };
    let begun = failures.retry(Retry { canary: 1, ..all() }, "Ann").await.unwrap();
    assert!(failures.run_step(None).await.unwrap());
    for received in world.take(&SAGA).await {
        let dead = Disposition::DeadLetter { reason: "one cause".to_owned() };
        world.store().answer(&SAGA, &received.receipt, &dead).await.unwrap();
    }
    while failures.run_step(None).await.unwrap() || !operation(&world, &begun).await.phase.has_ended() {
        world.host.advance(10 * SECOND);
    }
    let ended = operation(&world, &begun).await;
    let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
    assert!(why.contains("were not processed within 5 min"), "{why}");
    assert_eq!(ended.retried, 1);
}

/// The failures of other queues are retried.
#[tokio::test]
async fn failure_of_undeclared_queue_is_refused_alone() {
    let world = World::new();
    for _ in 0..3 {
        search_with_dead_letter(&world, "one cause").await;
    }
    gather(&world).await;
    let failures = &world.functions.failures;
    let [mut earlier, ..] = <[_; 3]>::try_from(of(&world, FailureStatus::Open).await).unwrap();
    let Origin::DeadLetter { source, .. } = &mut earlier.origin else { panic!("{earlier:?}") };
    *source = Queue::named("earlier");
    let Failure { id, revision, .. } = earlier;
    let next = Some(earlier);
    assert_eq!(failures.store.change(&[Change { id, revision, next }]).await.unwrap(), [true]);
    let begun = failures.retry(all(), "Ann").await.unwrap();
    run_to_the_end(&world).await;
    let ended = operation(&world, &begun).await;
    let Step::Stopped { why, .. } = &ended.phase else { panic!("{ended:?}") };
    assert_eq!(why, "1 of 3 cannot be retried; see their reasons");
    assert_eq!((ended.retried, ended.refused), (2, 1));
    let [left] = <[_; 1]>::try_from(of(&world, FailureStatus::Open).await).unwrap();
    assert!(left.reason.contains("this version has no queue earlier; install"), "{}", left.reason);
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
    assert!(world.functions.failures.run_step(None).await.unwrap());
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
        assert!(world.functions.failures.run_step(None).await.unwrap());
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
    // The operator requests a retry of the same failure again.
    let named = Selection { ids: [id].into(), ..Selection::of(FailureStatus::Open) };
    let again = failures.retry(Retry { selection: named, ..all() }, "Bob").await.unwrap_err();
    assert!(again.to_string().contains("is retried"), "{again}");
    assert!(matches!(failures.retry(all(), "Bob").await, Err(RequestRefusal::Nothing)));
    assert!(matches!(failures.stop(begun.id, "Bob").await, Err(RequestRefusal::NotRunning(_))));
    let ids = &[id];
    let (one, other) = tokio::join!(failures.archive(ids, "done", "Ann"), failures.delete(ids, "old", "Bob"));
    // Both succeed only one after the other: an archived failure may be deleted, but not the reverse.
    let archived = of(&world, FailureStatus::Archived).await.len();
    assert_eq!(archived, usize::from(other.is_err()), "{one:?} {other:?}");
    assert!(one.is_ok() || other.is_ok(), "{one:?} {other:?}");
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
    assert!(failures.run_step(None).await.unwrap());
    let stopped = failures.stop(begun.id, "Bob").await.unwrap();
    assert!(matches!(&stopped.phase, Step::Stopped { why, .. } if why == "stopped by Bob"));
    world.host.advance(SECOND);
    assert!(!failures.run_step(None).await.unwrap());
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
    assert!(failures.store.audit_entries(10).await.unwrap().is_empty(), "nothing was done");
    failures.archive(&[id], "known", "Ann").await.unwrap();
    let archived = of(&world, FailureStatus::Archived).await.remove(0);
    assert_eq!(archived.state, State::Archived { why: "known".to_owned() });
    failures.delete(&[id], "not needed", "Ann").await.unwrap();
    assert!(matches!(failures.delete(&[id], "again", "Ann").await, Err(RequestRefusal::Unknown(_))));
    let entries = failures.store.audit_entries(10).await.unwrap();
    assert_eq!(entries.iter().map(|entry| entry.did.as_str()).collect::<Vec<_>>(), ["deleted", "archived"]);
}

/// The failures that a stopped operation has claimed are released, even if an outbox cannot be read.
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
