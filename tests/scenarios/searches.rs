//! A search from its announcement to its end, in every order of events.

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
    // One by one, so that each is claimed for itself.
    let messages = world.take(&SAGA).await;
    for message in &messages {
        world.deliver(&SAGA, std::slice::from_ref(message)).await;
    }
    assert_eq!(world.take(&PARSE).await.len(), 1);
    let verdicts = world.verdicts(announced.search_id, "SearchUploadSaved").await;
    assert_eq!(verdicts, [Verdict::Handled, Verdict::Duplicate, Verdict::Duplicate]);
}

#[tokio::test]
async fn copies_in_one_batch_give_one_parse_command() {
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
async fn started_that_comes_after_the_end_is_ignored() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let started = world.take(&SAGA).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let ended = world.job(announced.search_id).await;
    assert_eq!(ended.state, JobState::Completed);

    assert_eq!(world.deliver(&SAGA, &started).await, [Disposition::Acknowledge]);
    assert_eq!(world.job(announced.search_id).await, ended);
    // With the search over its tokens are gone, so it is not even worth a look at the document.
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

    // Two replicas, each with one of the first two events, at the same time.
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
async fn a_search_whose_files_never_arrive_times_out() {
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
async fn a_file_of_which_nobody_told_is_found_before_the_search_times_out() {
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
async fn each_file_that_arrives_gives_the_others_as_much_time_again() {
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
async fn a_look_that_is_never_answered_ends_the_search_too() {
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
async fn files_that_are_never_read_end_the_search_with_their_names() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA, &SAGA]).await;
    // Nobody ever works on the second command.
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
async fn late_upload_timeout_with_an_old_token() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    // The timeout fires, but before its message is handled the file arrives.
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
async fn a_bad_file_fails_the_search_and_leaves_nothing_of_itself() {
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
async fn a_parse_command_that_is_given_up_after_it_succeeded_takes_nothing_back() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA, &SAGA]).await;
    let command = world.take(&PARSE).await;
    // It succeeds, but its acknowledgement is lost, and every later delivery too.
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
async fn a_parse_command_that_never_succeeds_ends_the_search() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    let saved = world.take(&SAGA).await;
    world.deliver(&SAGA, &saved).await;
    // Its workers die one after the other, as often as the queue allows.
    for _ in 0..3 {
        assert_eq!(world.take(&PARSE).await.len(), 1);
        world.host.advance(crate::world::VISIBILITY);
    }
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!(job.state, JobState::Error);
    assert_eq!(world.verdicts(announced.search_id, "StartParsingFaulted").await, [Verdict::Handled]);
}

/// S3 takes keys of 1,024 bytes, whatever characters they are of: what has more was uploaded and never arrived.
#[tokio::test]
async fn a_file_name_that_its_key_has_no_room_for_is_not_announced() {
    let world = World::new();
    let announce = async |name: String| {
        let files = vec![NewFile { name: "a.ris".into(), size_bytes: 1 }, NewFile { name, size_bytes: 1 }];
        let request = NewSearch { name: "Gambling harms".into(), files };
        world.functions.start_upload.create(ProjectId::from_uuid(uuid::Uuid::nil()), &request).await
    };
    let refused = announce("\u{1f4da}".repeat(220)).await.unwrap_err();
    let Error::Invalid(faults) = &refused else { panic!("{refused:?}") };
    assert_eq!(faults.iter().map(ManifestFault::file_index).collect::<Vec<_>>(), [Some(1)]);
    let said = "the file name takes 880 bytes of UTF-8, and the key of its upload has room for 868";
    assert_eq!(faults[0].to_string(), said);
    let announced = announce("\u{1f4da}".repeat(217)).await.unwrap();
    let key = &announced.files[1].upload.fields["key"];
    assert_eq!(key.len(), MAX_KEY_BYTES);
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}
