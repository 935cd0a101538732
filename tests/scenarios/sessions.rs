//! The transactional session of `start-upload`: data stored and message sent, or neither.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dedup::{Admission, Claim, ClaimCondition, Tokens};
use embedded::{Call, Phase};
use imports::messages::{SearchImportEnded, SearchWithdrawn};
use imports::ports::Quota;
use imports::queues::{CONTROL, SAGA};
use imports::{FileId, ImportEvent, Job, JobFile, JobState, Manifest, ProjectId, SearchEvent, SearchId, ids};
use messages::{
    AttemptId, Consumer, Host, Outgoing, PartitionKey, ReceiveMessages, SendError, SendMessages, StoreError,
};
use outbox::session::{CommitError, Options, SessionRecord};
use outbox::{
    CommitOutcome, CommitSession, DispatchOutbox, Key, ObserveSessions, SessionOutcome, SettledSession, View,
    WriteViews,
};
use serde_json::json;
use service::{Cancellation, CreateOutcome, NewFile, NewSearch, ProjectAccess};
use uuid::Uuid;

use crate::world::{CrashAt, TWO_RECORDS, World, deliveries};

fn request() -> NewSearch {
    NewSearch { name: "s".into(), files: vec![NewFile { name: "a.ris".into(), size_bytes: 1 }] }
}

fn project() -> ProjectId {
    ProjectId::from_uuid(uuid::Uuid::nil())
}

/// Delivers the control message until it stops checking for the session.
pub(crate) async fn settle(world: &World) {
    for _ in 0..4 {
        let control = world.take(&CONTROL).await;
        world.deliver(&CONTROL, &control).await;
        world.host.advance(Duration::from_secs(8));
    }
}

#[tokio::test]
async fn crash_before_commit_leaves_neither_job_nor_message() {
    let world = World::new();
    let crash = CrashAt::new(Call::SessionCommit, Phase::Before, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    settle(&world).await;
    assert_eq!(world.jobs().unfinished().await.unwrap(), []);
    assert_eq!(world.take(&SAGA).await, []);
    assert_eq!(world.take(&CONTROL).await, [], "the session was abandoned");
}

#[tokio::test]
async fn crash_after_commit_keeps_job_and_message() {
    let world = World::new();
    let crash = CrashAt::new(Call::SessionCommit, Phase::After, 1);
    crash.kill(world.crashing(&crash).start_upload.create(project(), &request())).await;
    assert_eq!(world.take(&SAGA).await, []);
    settle(&world).await;
    assert_eq!(world.jobs().unfinished().await.unwrap().len(), 1);
    assert_eq!(world.take(&SAGA).await.len(), 1);
}

#[tokio::test]
async fn invalid_manifest_stores_nothing_and_lists_errors() {
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
async fn cancelled_search_ends_and_ignores_late_files() {
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
    // A client that lost the response and repeats the request gets the same response, and nothing more is sent.
    assert_eq!(
        world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap(),
        Cancellation::Accepted
    );
    assert_eq!(world.take(&SAGA).await, []);
}

#[tokio::test]
async fn withdrawal_before_announcement_is_not_lost() {
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
async fn search_being_read_is_not_withdrawn() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    // The cancellation is in flight when the last file arrives.
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
async fn crashed_withdrawal_takes_effect_or_leaves_nothing() {
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
        supersedes: None,
        requires: ClaimCondition::ItemExists,
        new_tokens: Vec::new(),
        max_tokens: 0,
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
async fn repeated_request_returns_same_uploads_without_tokens() {
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
async fn concurrent_requests_with_one_key_announce_once() {
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
            CreateOutcome::Ended(_) | CreateOutcome::Differs | CreateOutcome::Unknown => None,
        })
        .collect();
    let [announced] = announced.as_slice() else { panic!("{announced:?}") };
    for index in 0..announced.files.len() {
        world.upload(announced, index, TWO_RECORDS).await;
    }
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// Neither ended searches nor other projects count.
#[tokio::test]
async fn open_searches_of_project_are_limited() {
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
    assert!(tries(&request()).await.is_ok(), "a request within its share is only counted");
    let refused = tries(&request()).await.unwrap_err();
    assert!(matches!(refused, service::Error::TooMany { searches: 3 }), "{refused}");
    assert!(start_upload.create(ProjectId::from_uuid(Uuid::from_u128(77)), &request()).await.is_ok());
    start_upload.cancel(&ProjectAccess::All, first.search_id).await.unwrap();
    world.run().await;
    let keyed = start_upload.create_once(project(), &request(), "key").await.unwrap();
    assert!(matches!(keyed, CreateOutcome::Announced(_)));
    let again = start_upload.create_once(project(), &request(), "key").await.unwrap();
    assert!(matches!(again, CreateOutcome::Announced(_)), "an announced request is not counted twice");
}

/// The project and the key do not reveal the search, and each deployment has its own secret.
#[tokio::test]
async fn keyed_search_id_is_stable_and_unguessable() {
    let (world, other) = (World::new(), World::new());
    // The hosts of two tests generate the same ids in the same order.
    (0..100).for_each(|_| _ = other.host.random_id());
    let id = async |world: &World| world.functions.start_upload.keyed_search(project(), "key").await.unwrap();
    let (one, two) = tokio::join!(id(&world), id(&world));
    assert_eq!(one, two, "concurrent creation of the secret yields one secret");
    assert_eq!(id(&world).await, one);
    assert_ne!(id(&other).await, one);
    assert_ne!(one, ids::guessable_keyed_search(project(), "key"));
}

/// A client that repeats a request across an upgrade gets the search that the earlier version announced.
#[tokio::test]
async fn search_with_guessable_id_is_found_by_key() {
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
async fn request_is_recognized_after_early_file() {
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
async fn key_matches_file_sizes_before_and_after_upload() {
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

/// A client repeats its request until all files have arrived. It must not mistake the end of the import for the arrival
/// of the files.
#[tokio::test]
async fn repeated_request_is_refused_after_import_ended_without_files() {
    let world = World::new();
    let start_upload = &world.functions.start_upload;
    let second = NewFile { name: "b.ris".into(), size_bytes: 1 };
    let request = NewSearch { files: vec![request().files[0].clone(), second], ..request() };
    for (key, arriving, is_cancelled) in
        [("late", 1, false), ("cancelled", 1, true), ("never", 0, false), ("complete", 2, false)]
    {
        let answer = start_upload.create_once(project(), &request, key).await.unwrap();
        let CreateOutcome::Announced(announced) = answer else { panic!("{key}: {answer:?}") };
        for index in 0..arriving {
            world.upload(&announced, index, "\u{1}\u{2}\u{3}").await;
        }
        world.run().await;
        if is_cancelled {
            start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
            world.run().await;
        }
        for _ in 0..3 {
            world.pass(Duration::from_secs(86_400)).await;
            world.run().await;
        }
        assert_eq!(world.job(announced.search_id).await.state, JobState::Error, "{key}");
        match start_upload.create_once(project(), &request, key).await.unwrap() {
            CreateOutcome::Ended(search) => {
                assert_eq!((search, arriving < 2), (announced.search_id, true), "{key}");
            }
            CreateOutcome::Announced(again) => {
                assert_eq!((again.files.len(), arriving), (0, 2), "{key}: {again:?}");
            }
            other => panic!("{key}: {other:?}"),
        }
    }
}

/// Aborts a request with a key before and after each of its calls.
#[tokio::test]
async fn keyed_request_survives_crash_at_any_call() {
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
async fn slow_commit_is_retried_in_another_session() {
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
                        other => panic!("nothing else was asked for: {other:?}"),
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

/// The item of a partition that never ends would fill with them.
#[tokio::test]
async fn tokens_of_refused_sessions_are_revoked() {
    let world = World::new();
    let entry = world.backend.ports.engine.entry_point("http").unwrap();
    let (partition, key) = (SearchId::from_uuid(Uuid::from_u128(7)), Key::new("counter", "all"));
    let manifest = Manifest { name: "s".to_owned(), files: Vec::new(), repairs: None };
    let withdrawal = SearchEvent::SearchWithdrawn(SearchWithdrawn { project_id: project(), manifest });
    let session = async || {
        let mut session = entry.session(partition);
        session.read(key.clone()).await.unwrap();
        session.write(key.clone(), json!(1));
        session.send(&withdrawal).unwrap();
        session
    };
    let (mut first, mut second) = (session().await, session().await);
    first.commit().await.unwrap();
    for _ in 0..2 {
        assert!(matches!(second.commit().await, Err(CommitError::Changed)));
    }
    assert_eq!(tokens(&world, partition).await, 1, "the token of the first session");
}

/// A sender that no queue answers, once it is cut off.
struct CutOff {
    send: Arc<dyn SendMessages>,
    is_cut: AtomicBool,
}

#[async_trait]
impl SendMessages for CutOff {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        if self.is_cut.load(Ordering::Relaxed) {
            return messages
                .iter()
                .map(|message| Err(SendError::UnknownQueue(message.queue.clone())))
                .collect();
        }
        self.send.send(messages).await
    }
}

/// A store that stores sessions, and loses its responses.
struct Silent(Arc<dyn CommitSession>);

#[async_trait]
impl CommitSession for Silent {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        self.0.commit(session).await?;
        Err(StoreError::unavailable("committing a session", "the response is lost"))
    }
}

/// The caller may repeat the commit. A late copy of a revocation would take the tokens away from the repetition.
#[tokio::test]
async fn tokens_of_unannounced_sessions_remain() {
    for is_stored in [false, true] {
        let world = World::new();
        let partition = SearchId::from_uuid(Uuid::from_u128(7));
        let manifest = Manifest { name: "s".to_owned(), files: Vec::new(), repairs: None };
        let withdrawal = SearchEvent::SearchWithdrawn(SearchWithdrawn { project_id: project(), manifest });
        let mut engine = world.backend.ports.engine.clone();
        let send = Arc::new(CutOff { send: Arc::clone(&engine.send), is_cut: AtomicBool::new(!is_stored) });
        engine.send = Arc::clone(&send) as Arc<dyn SendMessages>;
        let entry = engine.entry_point("http").unwrap();
        let mut session = entry.session(partition);
        session.send(&withdrawal).unwrap();
        if is_stored {
            let silent = Silent(Arc::clone(&engine.stores().unwrap().commit_sessions));
            assert!(matches!(session.commit_with(&silent).await, Err(CommitError::Store(_))));
            send.is_cut.store(true, Ordering::Relaxed);
        }
        for _ in 0..2 {
            assert!(matches!(session.commit().await, Err(CommitError::Control(_))));
        }
        assert_eq!(tokens(&world, partition).await, 1);
        send.is_cut.store(false, Ordering::Relaxed);
        session.commit().await.unwrap();
        assert_eq!(tokens(&world, partition).await, 1);
        let sent = world.take(&SAGA).await;
        world.deliver(&SAGA, &sent).await;
        assert_eq!(world.verdicts(partition, "SearchWithdrawn").await, [messages::Verdict::Handled]);
    }
}

/// The session's record and the search's document expire. The record of the first request stays.
#[tokio::test]
async fn keyed_request_repeated_after_year_announces_nothing() {
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

/// Two equal requests, such as two equal payments, are two sessions. Neither admits a copy of the other's event.
#[tokio::test]
async fn sessions_of_one_partition_share_no_tokens() {
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

fn stock() -> Key {
    Key::new("stock", "apples")
}

/// The store has the session's record, so a second commit of the same session stores nothing.
#[tokio::test]
async fn session_extended_after_commit_is_refused() {
    let world = World::new();
    let entry = world.backend.ports.engine.entry_point("tests").unwrap();
    let partition = PartitionKey::named("tests", "one");
    let mut session = entry.session(partition);
    session.write(stock(), json!(1));
    session.commit().await.unwrap();
    session.commit().await.expect("a repetition changes nothing");
    session.write(stock(), json!(2));
    let refused = session.commit().await;
    assert!(matches!(refused, Err(CommitError::Extended)), "{refused:?}");
    let stored = entry.session(partition).read(stock()).await.unwrap().unwrap();
    assert_eq!(stored.body, json!(1));
}

/// Records the outcomes of sessions. The first call fails.
#[derive(Default)]
struct Outcomes(Mutex<Vec<(SessionOutcome, BTreeMap<String, String>)>>);

#[async_trait]
impl ObserveSessions for Outcomes {
    async fn settled(&self, session: SettledSession<'_>) -> Result<(), StoreError> {
        let mut outcomes = self.0.lock().unwrap();
        outcomes.push((session.outcome, session.metadata.clone()));
        match outcomes.len() {
            1 => Err(StoreError::unavailable("notifying the client", "no connection")),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn observer_receives_outcome_and_metadata_of_session() {
    for (phase, outcome) in
        [(Phase::Before, SessionOutcome::Abandoned), (Phase::After, SessionOutcome::Committed)]
    {
        let world = World::new();
        let crash = CrashAt::new(Call::SessionCommit, phase, 1);
        let entry = world.crashing(&crash).start_upload.entry;
        let metadata = BTreeMap::from([("request".to_owned(), "7".to_owned())]);
        let options = Options { metadata: metadata.clone(), ..Options::default() };
        let mut session = entry.session_with(PartitionKey::named("tests", "one"), &options);
        let removed = ImportEvent::SearchImportFailed(SearchImportEnded {
            project_id: project(),
            studies: 0,
            reason: None,
        });
        session.send(&removed).unwrap();
        crash.kill(session.commit()).await;
        let observer = Arc::new(Outcomes::default());
        let observed: Arc<dyn ObserveSessions> = observer.clone();
        let settling = DispatchOutbox { observer: Some(observed), ..world.functions.dispatch_outbox.clone() };
        for _ in 0..8 {
            let received = world.take(&CONTROL).await;
            let answers = settling.consume(&deliveries(&received), None).await;
            for (received, answer) in received.iter().zip(answers) {
                world.store().answer(&CONTROL, &received.receipt, &answer).await.unwrap();
            }
            world.host.advance(Duration::from_secs(30));
        }
        let outcomes = observer.0.lock().unwrap().clone();
        assert_eq!(outcomes, [(outcome, metadata.clone()), (outcome, metadata)], "{outcome:?}");
    }
}

#[tokio::test]
async fn expired_session_is_not_reported_as_abandoned() {
    let world = World::new();
    let entry = world.backend.ports.engine.entry_point("tests").unwrap();
    let mut session = entry.session(PartitionKey::named("tests", "one"));
    let removed = SearchImportEnded { project_id: project(), studies: 0, reason: None };
    session.send(&ImportEvent::SearchImportFailed(removed)).unwrap();
    session.commit().await.unwrap();
    let control = deliveries(&world.take(&CONTROL).await);
    assert_eq!(control.len(), 1);
    world.functions.dispatch_outbox.consume(&control, None).await;
    // An operator retries the control message after the session's record has expired.
    world.host.advance(Duration::from_secs(8 * 24 * 3600));
    world.store().purge(world.host.now()).await.unwrap();
    let observer = Arc::new(Outcomes::default());
    let observed: Arc<dyn ObserveSessions> = observer.clone();
    let settling = DispatchOutbox { observer: Some(observed), ..world.functions.dispatch_outbox.clone() };
    for _ in 0..8 {
        settling.consume(&control, None).await;
        for sent in deliveries(&world.take(&CONTROL).await) {
            settling.consume(&[sent], None).await;
        }
        world.host.advance(Duration::from_secs(30));
    }
    assert_eq!(observer.0.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn session_reads_its_own_writes() {
    let world = World::new();
    let entry = world.backend.ports.engine.entry_point("tests").unwrap();
    let partition = PartitionKey::named("tests", "one");
    for total in [2, 4] {
        let mut session = entry.session(partition);
        for _ in 0..2 {
            let found = session.read(stock()).await.unwrap();
            let count = found.map_or(0, |record| record.body.as_u64().unwrap());
            session.write(stock(), json!(count + 1));
        }
        session.commit().await.unwrap();
        let stored = entry.session(partition).read(stock()).await.unwrap().unwrap();
        assert_eq!(stored.body, json!(total));
    }
}
