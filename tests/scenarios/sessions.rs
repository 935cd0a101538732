//! The transactional session of `start-upload`: data stored and message sent, or neither.

use std::time::Duration;

use contracts::ProjectId;
use embedded::Phase;
use imports::ReadJobs;
use outbox::Queue;
use start_upload::{NewFile, NewSearch};

use crate::world::{CrashAt, World};

fn request() -> NewSearch {
    NewSearch { name: "s".into(), files: vec![NewFile { name: "a.ris".into(), size_bytes: 1 }] }
}

fn project() -> ProjectId {
    ProjectId::from_uuid(uuid::Uuid::nil())
}

/// Lets the control message look for the session as often as it does.
async fn settle(world: &World) {
    for _ in 0..4 {
        let control = world.take(Queue::Control).await;
        world.deliver(Queue::Control, &control).await;
        world.host.advance(Duration::from_secs(8));
    }
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_neither_job_nor_message() {
    let world = World::new();
    let crash = CrashAt::new("session.commit", Phase::Before, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    settle(&world).await;
    assert_eq!(world.store().unfinished().await.unwrap(), []);
    assert_eq!(world.take(Queue::Saga).await, []);
    assert_eq!(world.take(Queue::Control).await, [], "the session was given up");
}

#[tokio::test]
async fn a_crash_after_the_commit_leaves_both() {
    let world = World::new();
    let crash = CrashAt::new("session.commit", Phase::After, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    assert_eq!(world.take(Queue::Saga).await, []);
    settle(&world).await;
    assert_eq!(world.store().unfinished().await.unwrap().len(), 1);
    assert_eq!(world.take(Queue::Saga).await.len(), 1);
}

#[tokio::test]
async fn an_invalid_manifest_stores_nothing_and_names_every_fault() {
    let world = World::new();
    let files = vec![
        NewFile { name: "../a.ris".into(), size_bytes: 1 },
        NewFile { name: "b.ris".into(), size_bytes: 0 },
    ];
    let error = world.functions.start_upload.create(project(), &NewSearch { name: "s".into(), files }).await;
    let Err(start_upload::Error::Invalid(faults)) = error else { panic!("{error:?}") };
    assert_eq!(faults.len(), 2);
    assert_eq!(world.store().unfinished().await.unwrap(), []);
    assert_eq!(world.take(Queue::Control).await, []);
}
