//! The transactional session of `start-upload`: data stored and message sent, or neither.

use std::time::Duration;

use dedup::{Admission, Claim, ClaimCondition, Tokens};
use embedded::{Call, Phase};
use imports::ports::Quota;
use imports::queues::{CONTROL, SAGA};
use imports::{FileId, Job, JobFile, JobState, ProjectId, SearchId, ids};
use messages::{AttemptId, Host};
use outbox::{View, WriteViews};
use service::{Cancellation, CreateOutcome, NewFile, NewSearch, ProjectAccess};
use uuid::Uuid;

use crate::world::{CrashAt, TWO_RECORDS, World};

fn request() -> NewSearch {
    NewSearch { name: "s".into(), files: vec![NewFile { name: "a.ris".into(), size_bytes: 1 }] }
}

fn project() -> ProjectId {
    ProjectId::from_uuid(uuid::Uuid::nil())
}

/// Lets the control message look for the session as often as it does.
pub(crate) async fn settle(world: &World) {
    for _ in 0..4 {
        let control = world.take(&CONTROL).await;
        world.deliver(&CONTROL, &control).await;
        world.host.advance(Duration::from_secs(8));
    }
}

#[tokio::test]
async fn a_crash_before_the_commit_leaves_neither_job_nor_message() {
    let world = World::new();
    let crash = CrashAt::new(Call::SessionCommit, Phase::Before, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    settle(&world).await;
    assert_eq!(world.jobs().unfinished().await.unwrap(), []);
    assert_eq!(world.take(&SAGA).await, []);
    assert_eq!(world.take(&CONTROL).await, [], "the session was given up");
}

#[tokio::test]
async fn a_crash_after_the_commit_leaves_both() {
    let world = World::new();
    let crash = CrashAt::new(Call::SessionCommit, Phase::After, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    assert_eq!(world.take(&SAGA).await, []);
    settle(&world).await;
    assert_eq!(world.jobs().unfinished().await.unwrap().len(), 1);
    assert_eq!(world.take(&SAGA).await.len(), 1);
}

#[tokio::test]
async fn an_invalid_manifest_stores_nothing_and_names_every_fault() {
    let world = World::new();
    let files = vec![
        NewFile { name: "../a.ris".into(), size_bytes: 1 },
        NewFile { name: "b.ris".into(), size_bytes: 0 },
    ];
    let error = world.functions.start_upload.create(project(), &NewSearch { name: "s".into(), files }).await;
    let Err(service::Error::Invalid(faults)) = error else { panic!("{error:?}") };
    assert_eq!(faults.len(), 2);
    assert_eq!(world.jobs().unfinished().await.unwrap(), []);
    assert_eq!(world.take(&CONTROL).await, []);
}

#[tokio::test]
async fn a_search_that_is_withdrawn_ends_and_its_late_files_are_not_read() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let search = announced.search_id;
    assert_eq!(
        world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap(),
        Cancellation::Accepted
    );
    world.run().await;
    let ended = world.job(search).await;
    assert_eq!(ended.state, JobState::Error);
    assert_eq!(ended.reason.as_deref(), Some("withdrawn before its files were read"));

    world.upload(&announced, 1, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(world.job(search).await, ended);
    assert_eq!(world.parsed(search).await.len(), 0);
    // Whoever asks again, because the answer was lost, gets it again; nothing more is sent.
    assert_eq!(
        world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap(),
        Cancellation::Accepted
    );
    assert_eq!(world.take(&SAGA).await, []);
}

#[tokio::test]
async fn a_withdrawal_that_overtakes_the_announcement_is_not_lost() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let started = world.take(&SAGA).await;
    world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
    world.run().await;
    world.deliver(&SAGA, &started).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.name.as_deref()), (JobState::Error, Some("Gambling harms")));
    assert_eq!(job.files.len(), 1);
    assert_eq!(world.parsed(announced.search_id).await.len(), 0);
}

#[tokio::test]
async fn a_search_whose_files_are_being_read_is_not_withdrawn() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    // The withdrawal is on its way when the last file arrives.
    world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
    let messages = world.take(&SAGA).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.deliver(&SAGA, &messages).await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    let late = world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
    assert_eq!(late, Cancellation::TooLate);
    let unknown = imports::SearchId::from_uuid(uuid::Uuid::max());
    assert_eq!(
        world.functions.start_upload.cancel(&ProjectAccess::All, unknown).await.unwrap(),
        Cancellation::Unknown
    );
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

#[tokio::test]
async fn a_withdrawal_takes_effect_or_leaves_nothing_wherever_it_crashes() {
    for (call, phase) in [
        (Call::LedgerGrant, Phase::After),
        (Call::QueueSend, Phase::After),
        (Call::SessionCommit, Phase::Before),
        (Call::SessionCommit, Phase::After),
    ] {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.run().await;
        let crash = CrashAt::new(call, phase, 1);
        crash
            .kill(world.crashing(&crash).start_upload.cancel(&ProjectAccess::All, announced.search_id))
            .await;
        settle(&world).await;
        world.run().await;
        let committed = (call, phase) == (Call::SessionCommit, Phase::After);
        let expected = if committed { JobState::Error } else { JobState::Uploading };
        assert_eq!(world.job(announced.search_id).await.state, expected, "{call:?} {phase:?}");
    }
}

async fn tokens(world: &World, partition: SearchId) -> usize {
    let claim = Claim {
        partition,
        attempt: AttemptId::from_uuid(world.host.fresh_id()),
        now: world.host.now(),
        lease: jiff::SignedDuration::ZERO,
        finished: None,
        requires: ClaimCondition::ItemExists,
        mint: Vec::new(),
        room: 0,
        fence: 0,
        above: 0,
        until: world.host.now(),
    };
    match dedup::ledger::ask(world.store(), claim).await.unwrap().1 {
        Admission::Admitted(admitted) => match admitted.tokens {
            Tokens::Listed(tokens) => tokens.len(),
            Tokens::Unchecked => panic!("there is a ledger"),
        },
        other => panic!("not admitted: {other:?}"),
    }
}

#[tokio::test]
async fn a_request_that_is_made_again_leaves_no_more_tokens_and_gives_out_the_same_uploads() {
    let world = World::new();
    let search = world.functions.start_upload.keyed_search(project(), "key").await.unwrap();
    let mut forms = Vec::new();
    for _ in 0..20 {
        let answer = world.functions.start_upload.create_once(project(), &request(), "key").await.unwrap();
        let CreateOutcome::Announced(announced) = answer else { panic!("{answer:?}") };
        forms.push(announced.files[0].upload.fields.clone());
        world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
    }
    forms.dedup();
    assert_eq!(forms.len(), 1);
    assert_eq!(tokens(&world, search).await, 3, "the announcement, the file and the withdrawal");
}

#[tokio::test]
async fn of_two_searches_under_one_key_at_once_one_is_announced_and_its_upload_completes_it() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let second = NewFile { name: "b.ris".into(), size_bytes: 1 };
    let larger = NewSearch { files: vec![request().files[0].clone(), second], ..request() };
    let small = request();
    let (one, other) = tokio::join!(
        start_upload.create_once(project(), &small, "key"),
        start_upload.create_once(project(), &larger, "key"),
    );
    let announced: Vec<_> = [one.unwrap(), other.unwrap()]
        .into_iter()
        .filter_map(|answer| match answer {
            CreateOutcome::Announced(announced) => Some(announced),
            CreateOutcome::Differs => None,
        })
        .collect();
    let [announced] = announced.as_slice() else { panic!("{announced:?}") };
    for index in 0..announced.files.len() {
        world.upload(announced, index, TWO_RECORDS).await;
    }
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// What has ended does not count, and neither do other projects.
#[tokio::test]
async fn a_project_has_no_more_under_way_than_it_may() {
    let world = World::new();
    let mut start_upload = world.functions.start_upload.clone();
    let size_bytes = request().files[0].size_bytes;
    start_upload.settings.quota = Quota { searches: 3, bytes: 4 * size_bytes };
    let first = start_upload.create(project(), &request()).await.unwrap();
    let twice = NewSearch { files: vec![request().files[0].clone(); 2], ..request() };
    let tries = async |request: &NewSearch| start_upload.create(project(), request).await;
    assert!(tries(&twice).await.is_ok());
    let refused = tries(&twice).await.unwrap_err();
    assert!(matches!(refused, service::Error::TooMuch { wanted: 5, bytes: 4 }), "{refused}");
    assert!(tries(&request()).await.is_ok(), "one that takes no more than its share is only counted");
    let refused = tries(&request()).await.unwrap_err();
    assert!(matches!(refused, service::Error::TooMany { searches: 3 }), "{refused}");
    assert!(start_upload.create(ProjectId::from_uuid(Uuid::from_u128(77)), &request()).await.is_ok());
    start_upload.cancel(&ProjectAccess::All, first.search_id).await.unwrap();
    world.run().await;
    let keyed = start_upload.create_once(project(), &request(), "key").await.unwrap();
    assert!(matches!(keyed, CreateOutcome::Announced(_)));
    let again = start_upload.create_once(project(), &request(), "key").await.unwrap();
    assert!(matches!(again, CreateOutcome::Announced(_)), "what is announced already is not counted twice");
}

/// Somebody who knows project and key does not know the search; and each deployment has its own.
#[tokio::test]
async fn the_id_of_a_keyed_search_cannot_be_guessed_and_stays_the_same() {
    let (world, other) = (World::new(), World::new());
    // The hosts of two tests draw the same ids, one after the other.
    (0..100).for_each(|_| _ = other.host.random_id());
    let id = async |world: &World| world.functions.start_upload.keyed_search(project(), "key").await.unwrap();
    let (one, two) = tokio::join!(id(&world), id(&world));
    assert_eq!(one, two, "of two who make the secret at once one does");
    assert_eq!(id(&world).await, one);
    assert_ne!(id(&other).await, one);
    assert_ne!(one, ids::guessable_keyed_search(project(), "key"));
}

/// Whoever repeats across an upgrade what an earlier release has announced is answered with that search.
#[tokio::test]
async fn a_search_that_was_announced_under_a_guessable_id_is_found_under_its_key() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let known = ids::guessable_keyed_search(project(), "key");
    let NewFile { name, size_bytes } = request().files.remove(0);
    let file = JobFile {
        file_id: FileId::announced(known, 0),
        name: Some(name),
        size_bytes: Some(size_bytes),
        announced_bytes: None,
        received: false,
        outcome: None,
    };
    let job = Job {
        search_id: known,
        project_id: project(),
        name: Some(request().name),
        state: JobState::Uploading,
        reason: None,
        files: vec![file],
        repairs: None,
        created_at: world.host.now(),
        completed_at: None,
        revision: 0,
    };
    world.store().write(&[View::from(&job)]).await.unwrap();
    let again = start_upload.create_once(project(), &request(), "key").await.unwrap();
    let CreateOutcome::Announced(again) = again else { panic!("{again:?}") };
    assert_eq!((again.search_id, again.files.len()), (known, 1));
}

#[tokio::test]
async fn a_request_is_recognised_although_a_file_has_overtaken_the_announcement() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let second = NewFile { name: "b.ris".into(), size_bytes: 1 };
    let request = NewSearch { files: vec![request().files[0].clone(), second], ..request() };
    let answer = start_upload.create_once(project(), &request, "key").await.unwrap();
    let CreateOutcome::Announced(announced) = answer else { panic!("{answer:?}") };
    let started = world.take(&SAGA).await;
    for (index, missing) in [(0, &["b.ris"][..]), (1, &[])] {
        world.upload(&announced, index, TWO_RECORDS).await;
        world.run().await;
        let again = start_upload.create_once(project(), &request, "key").await.unwrap();
        let CreateOutcome::Announced(again) = again else { panic!("{again:?}") };
        assert_eq!(again.files.iter().map(|file| &file.name[..]).collect::<Vec<_>>(), missing);
    }
    world.deliver(&SAGA, &started).await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
    let larger = NewFile { name: "b.ris".into(), size_bytes: 2 };
    let resized = NewSearch { files: vec![request.files[0].clone(), larger], ..request };
    let other = start_upload.create_once(project(), &resized, "key").await.unwrap();
    assert!(matches!(other, CreateOutcome::Differs), "{other:?}");
}

#[tokio::test]
async fn a_key_stands_for_files_of_these_sizes_before_and_after_they_arrive() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let resized = NewFile { name: "a.ris".into(), size_bytes: 2 };
    let resized = NewSearch { files: vec![resized], ..request() };
    let answer = start_upload.create_once(project(), &request(), "key").await.unwrap();
    let CreateOutcome::Announced(announced) = answer else { panic!("{answer:?}") };
    for arrived in [false, true] {
        if arrived {
            world.upload(&announced, 0, TWO_RECORDS).await;
            world.run().await;
        }
        let again = start_upload.create_once(project(), &request(), "key").await.unwrap();
        assert!(matches!(again, CreateOutcome::Announced(_)), "{again:?}");
        let other = start_upload.create_once(project(), &resized, "key").await.unwrap();
        assert!(matches!(other, CreateOutcome::Differs), "{other:?}");
    }
}

/// Each call that a request under a key makes, broken off before and after it.
#[tokio::test]
async fn a_key_survives_a_crash_at_any_call_of_its_request() {
    for (call, phase) in [
        (Call::RecordsRead, Phase::After),
        (Call::LedgerBegin, Phase::After),
        (Call::QueueSend, Phase::Before),
        (Call::QueueSend, Phase::After),
        (Call::SessionCommit, Phase::Before),
        (Call::SessionCommit, Phase::After),
        (Call::OutboxSettle, Phase::Before),
    ] {
        let world = World::new();
        let search = world.functions.start_upload.keyed_search(project(), "key").await.unwrap();
        let crash = CrashAt::new(call, phase, 1);
        crash.kill(world.crashing(&crash).start_upload.create_once(project(), &request(), "key")).await;
        settle(&world).await;
        let again = world.functions.start_upload.create_once(project(), &request(), "key").await.unwrap();
        let CreateOutcome::Announced(announced) = again else { panic!("{call:?} {phase:?}: {again:?}") };
        assert_eq!(announced.search_id, search);
        world.upload(&announced, 0, TWO_RECORDS).await;
        settle(&world).await;
        world.run().await;
        assert_eq!(world.job(search).await.state, JobState::Completed, "{call:?} {phase:?}");
        let started = world.verdicts(search, "SearchUploadStarted").await;
        let handled = started.iter().filter(|verdict| **verdict == messages::Verdict::Handled);
        assert_eq!(handled.count(), 1, "{call:?} {phase:?}: {started:?}");
    }
}

#[tokio::test]
async fn a_request_whose_commit_is_slow_goes_on_in_another_session() {
    for key in [Some("key"), None] {
        let world = World::new();
        world.functions.start_upload.keyed_search(project(), "key").await.unwrap();
        let slow = CrashAt::new(Call::SessionCommit, Phase::Before, 1);
        let functions = world.crashing(&slow);
        let create = async {
            match key {
                Some(key) => {
                    match functions.start_upload.create_once(project(), &request(), key).await.unwrap() {
                        CreateOutcome::Announced(announced) => announced,
                        CreateOutcome::Differs => panic!("nothing else was asked for"),
                    }
                }
                None => functions.start_upload.create(project(), &request()).await.unwrap(),
            }
        };
        let announced = slow.stall(create, settle(&world)).await;
        world.upload(&announced, 0, TWO_RECORDS).await;
        world.run().await;
        assert_eq!(world.job(announced.search_id).await.state, JobState::Completed, "{key:?}");
    }
}

/// The session's record and the search's document are removed after a time. The record of the first request stays.
#[tokio::test]
async fn a_keyed_request_that_is_repeated_after_a_year_announces_nothing() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let answer = start_upload.create_once(project(), &request(), "key").await.unwrap();
    let CreateOutcome::Announced(announced) = answer else { panic!("{answer:?}") };
    let started = world.take(&SAGA).await;
    world.deliver(&SAGA, &started).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let ended = world.job(announced.search_id).await;
    assert_eq!(ended.state, JobState::Completed);
    world.pass(Duration::from_secs(365 * 24 * 3_600)).await;
    world.store().purge(world.host.now()).await.unwrap();
    let again = start_upload.create_once(project(), &request(), "key").await.unwrap();
    let CreateOutcome::Announced(again) = again else { panic!("{again:?}") };
    assert_eq!((again.search_id, again.files.len()), (announced.search_id, 0));
    world.deliver(&SAGA, &started).await;
    assert_eq!(world.take(&SAGA).await, []);
    assert_eq!(world.job(announced.search_id).await, ended);
}

/// Two requests for the same thing, such as two equal payments, are two sessions. Neither admits a copy of the other's
/// event.
#[tokio::test]
async fn two_sessions_of_one_partition_share_neither_message_nor_token() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.run().await;
    let search = announced.search_id;
    let entry = world.backend.ports.engine.entry_point("start-upload").unwrap();
    let withdraw = async || {
        let job = world.job(search).await;
        let manifest = imports::Manifest { name: "s".into(), files: Vec::new(), repairs: None };
        let withdrawn = imports::messages::SearchWithdrawn { project_id: job.project_id, manifest };
        let mut session = entry.session(search);
        session.send(&imports::SearchEvent::SearchWithdrawn(withdrawn)).unwrap();
        session.commit().await.unwrap().remove(0)
    };
    let first = withdraw().await;
    let copies = world.take(&SAGA).await;
    world.deliver(&SAGA, &copies).await;
    for days in [0, 8] {
        world.pass(Duration::from_secs(days * 24 * 3_600)).await;
        world.store().purge(world.host.now()).await.unwrap();
        let second = withdraw().await;
        assert_ne!((first.id, &first.token), (second.id, &second.token));
        world.deliver(&SAGA, &copies).await;
    }
    let verdicts = world.verdicts(search, "SearchWithdrawn").await;
    assert_eq!(
        verdicts,
        [messages::Verdict::Handled, messages::Verdict::Duplicate, messages::Verdict::Duplicate]
    );
}
