//! A crash at every step of the worker, the parser and the sweep, and what is there afterwards.

use std::sync::Arc;
use std::time::Duration;

use embedded::{Call, Phase};
use imports::JobState;
use imports::queues::{PARSE, SAGA, UPLOADS};
use messages::{Disposition, Message, ReceiveMessages, Received, SendMessages, Verdict, send_one};

use crate::world::{CrashAt, TWO_RECORDS, VISIBILITY, World, call};

/// A search whose only file is stored, and its `SearchUploadSaved` received.
async fn saved(world: &World) -> (imports::SearchId, Vec<Received>) {
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;
    (announced.search_id, world.take(&SAGA).await)
}

/// Lets leases and visibility timeouts run out, and finishes.
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

    // Redelivery finds the message already processed, and finishes what was left to do.
    world.host.advance(VISIBILITY);
    let again = world.take(&SAGA).await;
    world.deliver(&SAGA, &again).await;
    assert_eq!(world.verdicts(search, "SearchUploadSaved").await, [Verdict::Recovered]);
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
    assert_eq!(world.parsed(search).await.len(), 1);
}

#[tokio::test]
async fn without_redelivery_the_sweep_sends_what_a_crash_left() {
    let world = World::new();
    let (search, message) = saved(&world).await;
    let crash = CrashAt::new(Call::QueueSend, Phase::Before, 1);
    crash.kill(call(&world.crashing(&crash), &SAGA, &message)).await;
    for received in &message {
        world.store().answer(&SAGA, &received.receipt, &Disposition::Acknowledge).await.unwrap();
    }
    // A fresh claim is respected; one that is older than five minutes counts as stuck.
    world.pass(Duration::from_secs(299)).await;
    assert_eq!(world.take(&PARSE).await, []);
    world.pass(Duration::from_secs(2)).await;
    world.run().await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
}

#[tokio::test]
async fn a_crash_at_any_step_of_the_worker_changes_nothing_in_the_end() {
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

/// The partition is given back then, without the tokens that earlier messages have left. No copy of any of them brings
/// the search back once its document is gone.
#[tokio::test]
async fn a_crash_at_any_step_of_the_end_of_a_search_changes_nothing_in_the_end() {
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
async fn a_crash_at_any_step_of_the_sweep_that_writes_the_job_changes_nothing_in_the_end() {
    for step in [Call::OutboxDue, Call::OutboxClaim, Call::ViewsWrite, Call::OutboxSettle] {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let (search, message) = saved(&world).await;
            world.deliver(&SAGA, &message).await;
            world.run().await;
            // The first time each of these is called, for the sagas and not for the sessions before them.
            let nth = if step == Call::OutboxDue { 2 } else { 1 };
            let crash = CrashAt::new(step, phase, nth);
            crash.kill(world.crashing(&crash).dispatch_outbox.sweep(None)).await;
            world.pass(Duration::from_secs(360)).await;
            // What is left once the document is gone.
            world.host.advance(Duration::from_secs(8 * 24 * 3_600));
            world.store().purge(messages::Host::now(world.host.as_ref())).await.unwrap();
            let job = world.job(search).await;
            assert_eq!((job.state, job.studies()), (JobState::Completed, 2), "{step:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn a_crash_at_any_step_of_the_parser_changes_nothing_in_the_end() {
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
            // Once it is answered it is a duplicate, whether or not anybody took note of it.
            let noted = usize::from((step, phase) != (Call::QueueSend, Phase::After));
            assert_eq!(world.parsed(search).await.len(), noted, "{step:?} {phase:?}");
        }
    }
}

#[tokio::test]
async fn a_worker_that_outlives_its_lease_stores_nothing_over_the_others_work() {
    let world = World::new();
    let (search, message) = saved(&world).await;
    // The first worker stalls between its claim and its write; its lease ends, and a second one does the work.
    let stall = CrashAt::new(Call::SagaPersist, Phase::Before, 1);
    let slow = world.crashing(&stall);
    let second = async {
        world.host.advance(VISIBILITY);
        let again = world.take(&SAGA).await;
        world.deliver(&SAGA, &again).await;
        assert_eq!(world.verdicts(search, "SearchUploadSaved").await, [Verdict::Handled]);
    };
    // The first wakes, and goes on with what it was about to store.
    let said = stall.stall(call(&slow, &SAGA, &message), second).await;
    assert_eq!(said, [Disposition::Acknowledge]);
    assert_eq!(world.take(&PARSE).await.len(), 1, "one command");
    // A third, late copy is a duplicate too.
    let store: Arc<dyn SendMessages> = world.store.clone();
    let copy = Message::decode(&message[0].delivery.body).unwrap();
    send_one(store.as_ref(), &copy, SAGA, Duration::ZERO).await.unwrap();
    let late = world.take(&SAGA).await;
    world.deliver(&SAGA, &late).await;
    let expected = [Verdict::Handled, Verdict::Duplicate, Verdict::Duplicate];
    assert_eq!(world.verdicts(search, "SearchUploadSaved").await, expected);
    // What the second worker has stored admits the reply to its command.
    recover(&world).await;
    assert_eq!(world.job(search).await.state, JobState::Completed);
    assert_eq!(world.parsed(search).await.len(), 1);
}
