//! Crashes at every step of the worker, the parser and the sweep, and the state after recovery.

use std::sync::Arc;
use std::time::Duration;

use embedded::{Call, Phase};
use imports::JobState;
use imports::queues::{PARSE, SAGA, UPLOADS};
use messages::{Disposition, Message, ReceiveMessages, ReceivedMessage, SendMessages, Verdict, send_one};

use crate::world::{CrashAt, TWO_RECORDS, VISIBILITY, World, call};

/// Returns a search whose only file is stored, with its `SearchUploadSaved` received.
async fn saved(world: &World) -> (imports::SearchId, Vec<ReceivedMessage>) {
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;
    (announced.search_id, world.take(&SAGA).await)
}

/// Waits until leases and visibility timeouts have expired, and finishes the work.
async fn recover(world: &World) {
    world.host.advance(VISIBILITY);
    world.run().await;
    world.pass(Duration::from_secs(301)).await;
    world.run().await;
}

#[tokio::test]
async fn crash_between_persist_and_dispatch_loses_nothing() {
    let world = World::new();
    let (search, message) = saved(&world).await;
    let crash = CrashAt::new(Call::QueueSend, Phase::Before, 1);
    crash.kill(call(&world.crashing(&crash), &SAGA, &message)).await;
    assert_eq!(world.take(&PARSE).await, [], "the command was not sent");

    // The redelivery finds the message already processed and completes the remaining steps.
    world.host.advance(VISIBILITY);
    let again = world.take(&SAGA).await;
    world.deliver(&SAGA, &again).await;
    assert_eq!(world.verdicts(search, "SearchUploadSaved").await, [Verdict::Recovered]);
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
    assert_eq!(world.parsed(search).await.len(), 1);
}

#[tokio::test]
async fn sweep_sends_entries_left_by_crash() {
    let world = World::new();
    let (search, message) = saved(&world).await;
    let crash = CrashAt::new(Call::QueueSend, Phase::Before, 1);
    crash.kill(call(&world.crashing(&crash), &SAGA, &message)).await;
    for received in &message {
        world.store().answer(&SAGA, &received.receipt, &Disposition::Acknowledge).await.unwrap();
    }
    // A recent claim is respected; a claim older than five minutes counts as stuck.
    world.pass(Duration::from_secs(299)).await;
    assert_eq!(world.take(&PARSE).await, []);
    world.pass(Duration::from_secs(2)).await;
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
}

#[tokio::test]
async fn crash_at_any_worker_step_is_recovered() {
    let steps = [Call::SagaLoad, Call::LedgerClaim, Call::SagaPersist, Call::QueueSend, Call::SagaSettle];
    for step in steps {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let (search, message) = saved(&world).await;
            let crash = CrashAt::new(step, phase, 1);
            crash.kill(call(&world.crashing(&crash), &SAGA, &message)).await;
            recover(&world).await;
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{step:?} {phase:?}");
            assert_eq!(world.parsed(search).await.len(), 1, "{step:?} {phase:?}");
        }
    }
}

/// The end of a search releases the partition without the tokens of earlier messages. No duplicate of those messages
/// restores the search after its document was deleted.
#[tokio::test]
async fn crash_at_search_end_is_recovered() {
    for step in [Call::SagaLoad, Call::LedgerClaim, Call::SagaPersist, Call::SagaSettle, Call::LedgerRelease]
    {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let (search, message) = saved(&world).await;
            world.deliver(&SAGA, &message).await;
            let command = world.take(&PARSE).await;
            world.deliver(&PARSE, &command).await;
            let reply = world.take(&SAGA).await;
            let crash = CrashAt::new(step, phase, 1);
            crash.kill(call(&world.crashing(&crash), &SAGA, &reply)).await;
            recover(&world).await;
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{step:?} {phase:?}");
            world.host.advance(Duration::from_secs(8 * 24 * 3_600));
            let now = messages::Host::now(world.host.as_ref());
            world.store().purge(now).await.unwrap();
            for copy in [&message, &reply] {
                world.deliver(&SAGA, copy).await;
            }
            assert_eq!(world.document(search).await, None, "{step:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn crash_at_any_sweep_step_is_recovered() {
    for step in [Call::OutboxDue, Call::OutboxClaim, Call::ViewsWrite, Call::OutboxSettle] {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let (search, message) = saved(&world).await;
            world.deliver(&SAGA, &message).await;
            world.run().await;
            // Selects the first call for the saga, not for the session before it.
            let nth = if step == Call::OutboxDue { 2 } else { 1 };
            let crash = CrashAt::new(step, phase, nth);
            crash.kill(world.crashing(&crash).dispatch_outbox.sweep(None)).await;
            world.pass(Duration::from_secs(360)).await;
            // The state after the document was deleted.
            world.host.advance(Duration::from_secs(8 * 24 * 3_600));
            world.store().purge(messages::Host::now(world.host.as_ref())).await.unwrap();
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{step:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn crash_at_any_parser_step_is_recovered() {
    let steps = [
        Call::ProcessedLook,
        Call::LedgerCheck,
        Call::ReadingBegin,
        Call::ObjectsOpen,
        Call::StudiesStore,
        Call::ProgressReport,
        Call::ReadingPause,
        Call::QueueSend,
        Call::ProcessedRemember,
    ];
    for step in steps {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let (search, message) = saved(&world).await;
            world.deliver(&SAGA, &message).await;
            let command = world.take(&PARSE).await;
            let crash = CrashAt::new(step, phase, 1);
            crash.kill(call(&world.crashing(&crash), &PARSE, &command)).await;
            recover(&world).await;
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{step:?} {phase:?}");
            assert_eq!(world.studies(search).await.len(), 2, "{step:?} {phase:?}");
            // Once answered, the command is a duplicate, whether or not the answer was recorded.
            let noted = usize::from((step, phase) != (Call::QueueSend, Phase::After));
            assert_eq!(world.parsed(search).await.len(), noted, "{step:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn worker_outliving_lease_overwrites_nothing() {
    let world = World::new();
    let (search, message) = saved(&world).await;
    // The first worker stalls between its claim and its write. Its lease expires, and a second worker does the work.
    let stall = CrashAt::new(Call::SagaPersist, Phase::Before, 1);
    let slow = world.crashing(&stall);
    let second = async {
        world.host.advance(VISIBILITY);
        let again = world.take(&SAGA).await;
        world.deliver(&SAGA, &again).await;
        assert_eq!(world.verdicts(search, "SearchUploadSaved").await, [Verdict::Handled]);
    };
    // The first worker wakes up and tries to store its result.
    let said = stall.stall(call(&slow, &SAGA, &message), second).await;
    assert_eq!(said, [Disposition::Acknowledge]);
    assert_eq!(world.take(&PARSE).await.len(), 1, "one command");
    // A third, late copy is also a duplicate.
    let store: Arc<dyn SendMessages> = world.store.clone();
    let copy = Message::decode(&message[0].delivery.body).unwrap();
    send_one(store.as_ref(), &copy, SAGA, Duration::ZERO).await.unwrap();
    let late = world.take(&SAGA).await;
    world.deliver(&SAGA, &late).await;
    let expected = [Verdict::Handled, Verdict::Duplicate, Verdict::Duplicate];
    assert_eq!(world.verdicts(search, "SearchUploadSaved").await, expected);
    // The second worker's write admits the reply to its command.
    recover(&world).await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
    assert_eq!(world.parsed(search).await.len(), 1);
}
