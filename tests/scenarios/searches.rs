//! A search from its announcement to its end, with events in every order.

use std::time::Duration;

use futures::future::join;
use imports::key::MAX_KEY_BYTES;
use imports::manifest::ManifestFault;
use imports::queues::{EVENTS, PARSE, SAGA, UPLOADS};
use imports::{JobState, Outcome, ProjectId};
use messages::{Disposition, ReceiveMessages, Verdict};
use service::{Error, NewFile, NewSearch};

use crate::world::{TWO_RECORDS, World, body, call};

#[tokio::test]
async fn happy_path() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.run().await;

    let search = announced.search_id;
    let job = world.job(search).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 4));
    assert_eq!(world.studies(search).await.len(), 4);
    assert_eq!(world.parsed(search).await.len(), 2);
    let events = world.take(&EVENTS).await;
    assert_eq!(events.iter().map(|event| body(event).name).collect::<Vec<_>>(), ["SearchImportCompleted"]);
}

#[tokio::test]
async fn duplicate_saved_gives_one_parse_command() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    for _ in 0..3 {
        world.deliver(&UPLOADS, &notifications).await;
    }
    // The messages are delivered one by one, so that each is claimed separately.
    let messages = world.take(&SAGA).await;
    for message in &messages {
        world.deliver(&SAGA, std::slice::from_ref(message)).await;
    }
    assert_eq!(world.take(&PARSE).await.len(), 1);
    let verdicts = world.verdicts(announced.search_id, "SearchUploadSaved").await;
    assert_eq!(verdicts, [Verdict::Handled, Verdict::Duplicate, Verdict::Duplicate]);
}

#[tokio::test]
async fn copies_in_batch_give_one_parse_command() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let notifications = world.take(&UPLOADS).await;
    for _ in 0..3 {
        world.deliver(&UPLOADS, &notifications).await;
    }
    world.run().await;
    assert_eq!(world.parsed(announced.search_id).await.len(), 1);
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn saved_before_started() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let started = world.take(&SAGA).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;
    let saved = world.take(&SAGA).await;

    world.deliver(&SAGA, &saved).await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Parsing);
    world.deliver(&SAGA, &started).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.parsed(announced.search_id).await.len(), 1);
}

#[tokio::test]
async fn started_event_after_end_is_ignored() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let started = world.take(&SAGA).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let ended = world.job(announced.search_id).await;
    assert_eq!(ended.state, JobState::Completed);

    assert_eq!(world.deliver(&SAGA, &started).await, [Disposition::Acknowledge]);
    assert_eq!(world.job(announced.search_id).await, ended);
    // The search has ended and its tokens are deleted, so the document is not even loaded.
    assert_eq!(world.verdicts(announced.search_id, "SearchUploadStarted").await, [Verdict::Duplicate]);
}

#[tokio::test]
async fn concurrent_first_events() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    let started = world.take(&SAGA).await;
    let notifications = world.take(&UPLOADS).await;
    world.deliver(&UPLOADS, &notifications).await;
    let saved = world.take(&SAGA).await;

    // Two replicas handle the first two events concurrently.
    let replica = world.functions.clone();
    let (first, second) = join(call(&world.functions, &SAGA, &started), call(&replica, &SAGA, &saved)).await;
    for (received, disposition) in started.iter().chain(&saved).zip(first.into_iter().chain(second)) {
        world.store().answer(&SAGA, &received.receipt, &disposition).await.unwrap();
    }
    world.pass(Duration::from_secs(60)).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.parsed(announced.search_id).await.len(), 1);
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn search_without_files_times_out() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.pass(Duration::from_secs(3_599)).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Uploading);

    world.pass(Duration::from_secs(2)).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Error);
    assert_eq!(job.reason.as_deref(), Some("upload timed out: 1 of 2 files arrived"));
}

#[tokio::test]
async fn unreported_file_is_found_before_timeout() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.run().await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    // The notifications are lost.
    for notification in world.take(&UPLOADS).await {
        world.store().answer(&UPLOADS, &notification.receipt, &Disposition::Acknowledge).await.unwrap();
    }
    world.pass(Duration::from_secs(3_601)).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.reason), (JobState::Completed, None));
    assert_eq!(world.studies(announced.search_id).await.len(), 4);
}

#[tokio::test]
async fn arriving_file_extends_deadline() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.run().await;
    world.pass(Duration::from_secs(3_000)).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.pass(Duration::from_secs(3_000)).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Uploading);
    world.pass(Duration::from_secs(601)).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Error);
}

#[tokio::test]
async fn unanswered_bucket_scan_ends_search() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    world.pass(Duration::from_secs(3_601)).await;
    let timeout = world.take(&SAGA).await;
    world.deliver(&SAGA, &timeout).await;
    assert_eq!(body(&world.take(&PARSE).await[0]).name, "LookForUploads");
    world.pass(Duration::from_secs(24 * 3_600)).await;
    let timeout = world.take(&SAGA).await;
    world.deliver(&SAGA, &timeout).await;
    let reason = world.job(announced.search_id).await.reason;
    let expected =
        "upload timed out: 0 of 1 files arrived, and the bucket could not be scanned for more files";
    assert_eq!(reason.as_deref(), Some(expected));
}

#[tokio::test]
async fn unread_files_end_search_with_their_names() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA, &SAGA]).await;
    // The second command is never processed.
    let commands = world.take(&PARSE).await;
    assert_eq!(commands.len(), 2);
    world.deliver(&PARSE, &commands[..1]).await;
    world.store().answer(&PARSE, &commands[1].receipt, &Disposition::Acknowledge).await.unwrap();
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Parsing);
    world.pass(Duration::from_secs(24 * 3_600)).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Error);
    let unread = job.files.iter().find(|file| file.outcome.is_none()).unwrap();
    let expected = format!("not read in time: {}", unread.name.as_deref().unwrap());
    assert_eq!(job.reason, Some(expected));
}

#[tokio::test]
async fn late_timeout_with_old_token_is_ignored() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    // The timeout fires, but the file arrives before its message is handled.
    world.pass(Duration::from_secs(3_601)).await;
    let timeout = world.take(&SAGA).await;
    assert_eq!(body(&timeout[0]).name, "UploadTimeout");
    let upload = world.functions.start_upload.presign.clone();
    let grant = imports::UploadGrant {
        key: announced.files[0].upload.fields["key"].clone(),
        size_bytes: TWO_RECORDS.len() as u64,
        metadata: imports::UploadMetadata { search_name: "Gambling harms".into(), expected_files: 1 }
            .to_map(),
        expires_at: jiff::Timestamp::MAX,
    };
    let form = upload.presign(&grant).await.unwrap();
    world.store().upload(&form, TWO_RECORDS.as_bytes()).await.unwrap();
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);

    assert_eq!(world.deliver(&SAGA, &timeout).await, [Disposition::Acknowledge]);
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.verdicts(announced.search_id, "UploadTimeout").await, [Verdict::Duplicate]);
}

#[tokio::test]
async fn bad_file_fails_search_and_stores_nothing() {
    let world = World::new();
    let announced = world.announce(&["good.ris", "bad.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, "no reference at all").await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Error);
    assert!(matches!(job.files[0].outcome, Some(Outcome::Completed(_))));
    assert!(matches!(&job.files[1].outcome, Some(Outcome::Failed { reason }) if reason.contains("no known")));
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn dead_lettering_succeeded_command_deletes_nothing() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA, &SAGA]).await;
    let command = world.take(&PARSE).await;
    // The command succeeds, but its acknowledgement and all later deliveries are lost.
    call(&world.functions, &PARSE, &command).await;
    for _ in 0..2 {
        world.host.advance(crate::world::VISIBILITY);
        assert_eq!(world.take(&PARSE).await.len(), 1);
    }
    world.host.advance(crate::world::VISIBILITY);
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn failing_parse_command_ends_search() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    let saved = world.take(&SAGA).await;
    world.deliver(&SAGA, &saved).await;
    // Three workers crash one after the other, up to the receive limit of the queue.
    for _ in 0..3 {
        assert_eq!(world.take(&PARSE).await.len(), 1);
        world.host.advance(crate::world::VISIBILITY);
    }
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Error);
    assert_eq!(world.verdicts(announced.search_id, "StartParsingFaulted").await, [Verdict::Handled]);
}

/// S3 limits keys to 1,024 bytes in any encoding: a file with a longer key would be uploaded but never arrive.
#[tokio::test]
async fn file_name_exceeding_key_size_is_refused() {
    let world = World::new();
    let announce = async |name: String| {
        let files = vec![NewFile { name: "a.ris".into(), size_bytes: 1 }, NewFile { name, size_bytes: 1 }];
        let request = NewSearch { name: "Gambling harms".into(), files };
        world.functions.start_upload.create(ProjectId::from_uuid(uuid::Uuid::nil()), &request).await
    };
    let refused = announce("\u{1f4da}".repeat(220)).await.unwrap_err();
    let Error::Invalid(faults) = &refused else { panic!("{refused:?}") };
    assert_eq!(faults.iter().map(ManifestFault::file_index).collect::<Vec<_>>(), [Some(1)]);
    let said = "the file name takes 880 bytes of UTF-8, and the key of its upload allows 868";
    assert_eq!(faults[0].to_string(), said);
    let announced = announce("\u{1f4da}".repeat(217)).await.unwrap();
    let key = &announced.files[1].upload.fields["key"];
    assert_eq!(key.len(), MAX_KEY_BYTES);
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}
