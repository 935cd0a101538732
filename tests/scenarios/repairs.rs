//! Repairs of searches: failed parts are read again, once, and both searches refer to each other.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::Request;
use embedded::{Call, Phase};
use http_api::router;
use imports::{FileId, JobState, SearchId};
use serde_json::{Value, json};
use service::{
    AnnouncedSearch, Deletion, FileRefusal, FileRepair, NewFile, NewRepair, ProjectAccess, Refusal, Repair,
};
use tower::ServiceExt;
use uuid::Uuid;

use crate::sessions::settle;
use crate::world::{CrashAt, Functions, TWO_RECORDS, World};

/// Content that no reader recognizes.
const NO_REFERENCES: &str = "\u{1}\u{2}\u{3}";
/// A study, and a record that is not text.
const ONE_BAD: &str =
    "TY  - JOUR\nTI  - First\nER  - \n\nTY  - JOUR\nTI  - Bad \u{1}\u{1}\u{1}\u{1}\u{1} title\nER  - \n";

fn replaced(file_id: FileId) -> FileRepair {
    let replacement = Some(NewFile { name: "better.ris".to_owned(), size_bytes: 100 });
    FileRepair { file_id, replacement, records: [].into() }
}

fn again(file_id: FileId) -> FileRepair {
    FileRepair { file_id, replacement: None, records: [].into() }
}

fn of(files: &[FileRepair]) -> NewRepair {
    NewRepair { name: None, files: files.to_vec() }
}

async fn repair(functions: &Functions, search: SearchId, request: &NewRepair) -> Repair {
    functions.start_upload.repair(&ProjectAccess::All, search, request, None).await.unwrap()
}

async fn repaired(world: &World, search: SearchId, request: &NewRepair) -> AnnouncedSearch {
    match repair(&world.functions, search, request).await {
        Repair::Announced(announced) => announced,
        other => panic!("{other:?}"),
    }
}

async fn refused(world: &World, search: SearchId, request: &NewRepair) -> Refusal {
    match repair(&world.functions, search, request).await {
        Repair::Refused(refusal) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Creates a search whose first file was read and whose second file was refused.
async fn half_failed(world: &World) -> AnnouncedSearch {
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.upload(&announced, 1, NO_REFERENCES).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Error);
    announced
}

/// Creates a search whose second file never arrived.
async fn timed_out(world: &World) -> AnnouncedSearch {
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    for _ in 0..3 {
        world.pass(Duration::from_secs(86_400)).await;
        world.run().await;
    }
    assert_eq!(world.job(announced.search_id).await.state, JobState::Error);
    announced
}

async fn shown(world: &World, search: SearchId, rest: &str) -> Value {
    let path = format!("/projects/{}/searches/{search}{rest}", Uuid::nil());
    let request = Request::get(path).body(Body::empty()).unwrap();
    let answer = router(world.functions.start_upload.clone()).oneshot(request).await.unwrap();
    serde_json::from_slice(&to_bytes(answer.into_body(), usize::MAX).await.unwrap()).unwrap()
}

#[tokio::test]
async fn bad_file_is_replaced_without_reannouncing_good_one() {
    let world = World::new();
    let search = half_failed(&world).await;
    let repair = repaired(&world, search.search_id, &of(&[replaced(search.files[1].file_id)])).await;
    assert_eq!(repair.files.len(), 1);
    world.upload(&repair, 0, TWO_RECORDS).await;
    world.run().await;
    let job = world.job(repair.search_id).await;
    assert_eq!((job.state, job.repairs), (JobState::Completed, Some(search.search_id)));
    assert_eq!(job.name, world.job(search.search_id).await.name);
    for search in [search.search_id, repair.search_id] {
        assert_eq!(world.studies(search).await.len(), 2);
    }
    let (old, new) = (shown(&world, search.search_id, "").await, shown(&world, repair.search_id, "").await);
    let other = |shown: &Value, file: usize| {
        json!({ "search_id": shown["search_id"], "file_id": shown["files"][file]["file_id"],
                "records": [], "state": "read" })
    };
    assert_eq!(old["files"][1]["repaired_by"], json!([other(&new, 0)]));
    assert_eq!(new["files"][0]["repairs"], other(&old, 1));
    assert_eq!((&new["repairs"], &old["files"][0]["repaired_by"]), (&old["search_id"], &Value::Null));
    assert_eq!(old["totals_with_repairs"]["studies"], 4);
    assert_eq!(new["totals_with_repairs"], Value::Null);
}

/// Uploads are deleted eventually, so only stored files can be read again.
#[tokio::test]
async fn arrived_files_are_reread_without_upload() {
    let world = World::new();
    let search = timed_out(&world).await;
    let [first, second] = [0, 1].map(|file| search.files[file].file_id);
    let gone = Refusal::Files(vec![(1, FileRefusal::Gone)]);
    assert_eq!(refused(&world, search.search_id, &of(&[again(first), again(second)])).await, gone);
    let repair = repaired(&world, search.search_id, &NewRepair::default()).await;
    assert_eq!(repair.files, []);
    world.run().await;
    assert_eq!(world.job(repair.search_id).await.state, JobState::Completed);
    assert_eq!(world.studies(repair.search_id).await.len(), 2);
    // The text of the study is in the original upload.
    let study = shown(&world, repair.search_id, "/studies/0-1").await;
    assert!(study["raw"].as_str().unwrap().contains("First"), "{study}");
    let under = FileRefusal::UnderRepair(repair.search_id);
    let asked = of(&[again(first)]);
    assert_eq!(refused(&world, search.search_id, &asked).await, Refusal::Files(vec![(0, under)]));
    let rest = repaired(&world, search.search_id, &of(&[replaced(second)])).await;
    world.upload(&rest, 0, ONE_BAD).await;
    world.run().await;
    assert_eq!(shown(&world, search.search_id, "").await["totals_with_repairs"]["studies"], 3);
}

#[tokio::test]
async fn concurrent_repairs_by_operators_admit_one() {
    for call in [Call::RecordsRead, Call::LedgerBegin, Call::SessionCommit] {
        let world = World::new();
        let search = half_failed(&world).await;
        let asked = of(&[replaced(search.files[1].file_id)]);
        let stall = CrashAt::new(call, Phase::Before, 1);
        let slow = world.crashing(&stall);
        let mut winner = None;
        let late = stall
            .stall(repair(&slow, search.search_id, &asked), async {
                winner = Some(repaired(&world, search.search_id, &asked).await);
            })
            .await;
        let winner = winner.unwrap();
        let Repair::Refused(told) = late else { panic!("{call:?}: {late:?}") };
        let under = FileRefusal::UnderRepair(winner.search_id);
        assert_eq!(told, Refusal::Files(vec![(0, under)]), "{call:?}");
        world.upload(&winner, 0, TWO_RECORDS).await;
        world.run().await;
        let jobs = world.jobs().of_project(imports::ProjectId::from_uuid(Uuid::nil()), None, 10).await;
        assert_eq!(jobs.unwrap().items.len(), 2, "nothing is left of the other");
    }
}

#[tokio::test]
async fn failed_repair_is_repairable_from_either_search() {
    for from_repair in [false, true] {
        let world = World::new();
        let search = half_failed(&world).await;
        let bad = search.files[1].file_id;
        let first = repaired(&world, search.search_id, &of(&[replaced(bad)])).await;
        world.upload(&first, 0, NO_REFERENCES).await;
        world.run().await;
        let (asked, file) =
            if from_repair { (first.search_id, first.files[0].file_id) } else { (search.search_id, bad) };
        let second = repaired(&world, asked, &of(&[replaced(file)])).await;
        world.upload(&second, 0, TWO_RECORDS).await;
        world.run().await;
        // All repairs refer to the original search.
        assert_eq!(world.job(second.search_id).await.repairs, Some(search.search_id));
        let under = FileRefusal::UnderRepair(second.search_id);
        for (asked, file) in [(search.search_id, bad), (first.search_id, first.files[0].file_id)] {
            let told = refused(&world, asked, &of(&[replaced(file)])).await;
            assert_eq!(told, Refusal::Files(vec![(0, under)]));
        }
        assert_eq!(shown(&world, search.search_id, "").await["totals_with_repairs"]["studies"], 4);
    }
}

#[tokio::test]
async fn corrected_record_is_counted_once() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await;
    world.upload(&search, 0, ONE_BAD).await;
    world.run().await;
    let unread = shown(&world, search.search_id, "/quarantine/0-2").await;
    assert_eq!(unread["around"], json!({ "before": "", "between": "\n\n", "after": "" }));
    let corrected = unread["raw"].as_str().unwrap().replace("\u{1}\u{1}\u{1}\u{1}\u{1}", "no more");
    let file = search.files[0].file_id;
    let asked =
        |records: &[u64]| of(&[FileRepair { records: records.iter().copied().collect(), ..replaced(file) }]);
    for (records, why) in [(&[1][..], 1), (&[2, 3], 3), (&[0], 0)] {
        let told = refused(&world, search.search_id, &asked(records)).await;
        assert_eq!(told, Refusal::Files(vec![(0, FileRefusal::NotUnread(why))]), "{records:?}");
    }
    let repair = repaired(&world, search.search_id, &asked(&[2])).await;
    let told = refused(&world, search.search_id, &asked(&[2])).await;
    assert_eq!(told, Refusal::Files(vec![(0, FileRefusal::IsCorrected(2, repair.search_id))]));
    world.upload(&repair, 0, &corrected).await;
    world.run().await;
    let listed = shown(&world, search.search_id, "/quarantine").await;
    assert_eq!(listed["items"][0]["mended_by"], json!(repair.search_id));
    let whole = shown(&world, search.search_id, "").await;
    assert_eq!(whole["totals"]["unread"], 1, "it stays as it ended");
    let expected = json!({ "records": 2, "studies": 2, "unread": 0, "unique": 2, "duplicates": 0 });
    assert_eq!(whole["totals_with_repairs"], expected);
}

#[tokio::test]
async fn crashed_repair_is_announced_or_never_happened() {
    for (call, phase, is_announced) in [
        (Call::RecordsRead, Phase::After, false),
        (Call::LedgerBegin, Phase::After, false),
        (Call::SessionCommit, Phase::Before, false),
        (Call::SessionCommit, Phase::After, true),
    ] {
        let world = World::new();
        let search = timed_out(&world).await;
        let crash = CrashAt::new(call, phase, 1);
        let functions = world.crashing(&crash);
        crash.kill(repair(&functions, search.search_id, &NewRepair::default())).await;
        settle(&world).await;
        world.run().await;
        let told = repair(&world.functions, search.search_id, &NewRepair::default()).await;
        world.run().await;
        assert_eq!(matches!(told, Repair::Refused(Refusal::Files(_))), is_announced, "{told:?}");
        let project = imports::ProjectId::from_uuid(Uuid::nil());
        let jobs = world.jobs().of_project(project, None, 10).await.unwrap().items;
        let completed: Vec<_> = jobs.iter().filter(|job| job.state == JobState::Completed).collect();
        assert_eq!(completed.len(), 1, "{call:?} {phase:?}: {jobs:?}");
        assert_eq!(world.studies(completed[0].search_id).await.len(), 2);
    }
}

#[tokio::test]
async fn search_is_kept_while_repair_reads_file() {
    let world = World::new();
    let search = timed_out(&world).await;
    let repair = repaired(&world, search.search_id, &NewRepair::default()).await;
    let start_upload = &world.functions.start_upload;
    let asked = start_upload.delete(&ProjectAccess::All, search.search_id).await.unwrap();
    assert_eq!(asked, Deletion::Needed(repair.search_id));
    world.run().await;
    assert_eq!(world.studies(repair.search_id).await.len(), 2);
    let asked = start_upload.delete(&ProjectAccess::All, search.search_id).await.unwrap();
    assert_eq!(asked, Deletion::Accepted);
    world.run().await;
    assert_eq!(world.studies(repair.search_id).await.len(), 2, "what was repaired stays");
}

/// The repair has checked the stored data and is about to be announced.
#[tokio::test]
async fn concurrent_repair_and_deletion_are_serialized() {
    let world = World::new();
    let search = timed_out(&world).await;
    let stall = CrashAt::new(Call::SessionCommit, Phase::Before, 1);
    let slow = world.crashing(&stall);
    let late = stall
        .stall(repair(&slow, search.search_id, &NewRepair::default()), async {
            let deleted = world.functions.start_upload.delete(&ProjectAccess::All, search.search_id).await;
            assert_eq!(deleted.unwrap(), Deletion::Accepted);
        })
        .await;
    assert!(matches!(late, Repair::Refused(Refusal::Deleted)), "{late:?}");
}

#[tokio::test]
async fn keyed_repair_is_announced_once() {
    let world = World::new();
    let search = half_failed(&world).await;
    let asked = of(&[replaced(search.files[1].file_id)]);
    let under = async |key: &str, asked: &NewRepair| {
        let start_upload = &world.functions.start_upload;
        start_upload.repair(&ProjectAccess::All, search.search_id, asked, Some(key)).await.unwrap()
    };
    let [Repair::Announced(first), Repair::Announced(second)] =
        [under("key", &asked).await, under("key", &asked).await]
    else {
        panic!("refused");
    };
    assert_eq!(first, second);
    let other = under("key", &NewRepair::default()).await;
    assert!(matches!(other, Repair::Refused(Refusal::KeyUsed)), "{other:?}");
    let other = under("another key", &asked).await;
    assert!(matches!(other, Repair::Refused(Refusal::Files(_))), "{other:?}");
}

/// A client deletes its corrections when the response to a repeated request has no forms.
#[tokio::test]
async fn key_of_repair_that_ended_without_its_file_is_refused() {
    let world = World::new();
    let search = half_failed(&world).await;
    let asked = of(&[replaced(search.files[1].file_id)]);
    let path = format!("/projects/{}/searches/{}/repair", Uuid::nil(), search.search_id);
    let post = async |key: &str| {
        let request = Request::post(&path).header("content-type", "application/json");
        let request = request.header("idempotency-key", key);
        let request = request.body(Body::from(serde_json::to_vec(&asked).unwrap())).unwrap();
        let answer = router(world.functions.start_upload.clone()).oneshot(request).await.unwrap();
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, announced) = post("key").await;
    assert_eq!(status, 201, "{announced}");
    for _ in 0..3 {
        world.pass(Duration::from_secs(86_400)).await;
        world.run().await;
    }
    let (status, problem) = post("key").await;
    assert_eq!((status, &problem["ended_import"]), (409, &announced["search_id"]), "{problem}");
    let (status, other) = post("another key").await;
    assert_eq!((status, other["files"].as_array().map(Vec::len)), (201, Some(1)), "{other}");
    assert_ne!(other["search_id"], announced["search_id"]);
}

/// The ledger has forgotten the tokens of the deleted repair.
#[tokio::test]
async fn key_of_deleted_repair_announces_nothing() {
    let world = World::new();
    let search = half_failed(&world).await;
    let asked = of(&[replaced(search.files[1].file_id)]);
    let repair = async || {
        let start_upload = &world.functions.start_upload;
        start_upload.repair(&ProjectAccess::All, search.search_id, &asked, Some("key")).await.unwrap()
    };
    let Repair::Announced(repaired) = repair().await else { panic!("refused") };
    for _ in 0..3 {
        world.pass(Duration::from_secs(86_400)).await;
        world.run().await;
    }
    let deleted = world.functions.start_upload.delete(&ProjectAccess::All, repaired.search_id).await;
    assert_eq!(deleted.unwrap(), Deletion::Accepted);
    for days in [0, 40] {
        world.run().await;
        world.pass(Duration::from_hours(24 * days)).await;
        let again = repair().await;
        assert!(matches!(again, Repair::Refused(Refusal::KeyUnknown)), "{days}: {again:?}");
    }
}

#[tokio::test]
async fn invalid_repair_is_refused_with_reason() {
    let world = World::new();
    let running = world.announce(&["a.ris"]).await;
    assert_eq!(refused(&world, running.search_id, &NewRepair::default()).await, Refusal::Running);
    let search = half_failed(&world).await;
    let [good, bad] = [0, 1].map(|file| search.files[file].file_id);
    let unknown = running.files[0].file_id;
    let records = FileRepair { records: [1].into(), ..again(good) };
    let asked =
        of(&[again(good), again(unknown), replaced(bad), again(bad), records.clone(), replaced(good)]);
    use FileRefusal::{NoReplacement, NotRead, NotUnread, Twice, Unknown, WasRead};
    let told = vec![(0, WasRead), (1, Unknown), (3, Twice), (4, Twice), (5, Twice)];
    assert_eq!(refused(&world, search.search_id, &asked).await, Refusal::Files(told));
    for (asked, told) in [
        (records, NoReplacement),
        (FileRepair { records: [1].into(), ..replaced(bad) }, NotRead),
        (FileRepair { records: [9].into(), ..replaced(good) }, NotUnread(9)),
    ] {
        assert_eq!(refused(&world, search.search_id, &of(&[asked])).await, Refusal::Files(vec![(0, told)]));
    }
    let many = FileRepair { records: (1..=10_001).collect(), ..replaced(good) };
    assert_eq!(refused(&world, search.search_id, &of(&[many])).await, Refusal::TooManyRecords);
    let path = format!("/projects/{}/searches/{}/repair", Uuid::nil(), running.search_id);
    for (body, status) in
        [("{}", 409), ("{\"files\": [{\"file_id\": \"x\"}]}", 400), ("{\"filse\": []}", 400), ("[", 400)]
    {
        let request = Request::post(&path).header("content-type", "application/json");
        let request = request.body(Body::from(body)).unwrap();
        let answer = router(world.functions.start_upload.clone()).oneshot(request).await.unwrap();
        assert_eq!(answer.status().as_u16(), status, "{body}");
    }
}

/// The text that a client needs to send a single record of a table or of XML.
#[tokio::test]
async fn surrounding_text_completes_corrected_record() {
    let table = "Title,Year\nFirst,2001\nBad \u{1}\u{1}\u{1}\u{1}\u{1} title,2002\n";
    let xml = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<xml><records>\
               <record><titles><title>First</title></titles></record>\
               <record><titles><title>Bad \u{1}\u{1}\u{1}\u{1}\u{1} title</title></titles></record></records></xml>\n";
    for (name, content) in [("a.csv", table), ("a.xml", xml)] {
        let world = World::new();
        let search = world.announce(&[name]).await;
        world.upload(&search, 0, content).await;
        world.run().await;
        let unread = shown(&world, search.search_id, "/quarantine/0-2").await;
        let text = |value: &Value| value.as_str().unwrap_or_else(|| panic!("{name}: {unread}")).to_owned();
        let [before, after] = ["before", "after"].map(|side| text(&unread["around"][side]));
        let corrected = text(&unread["raw"]).replace("\u{1}\u{1}\u{1}\u{1}\u{1}", "ö");
        let file = FileRepair { records: [2].into(), ..replaced(search.files[0].file_id) };
        let repair = repaired(&world, search.search_id, &of(&[file])).await;
        world.upload(&repair, 0, &format!("{before}{corrected}{after}")).await;
        world.run().await;
        let studies = world.studies(repair.search_id).await;
        let titles: Vec<&str> = studies.iter().map(|study| study.reference.title.as_str()).collect();
        assert_eq!(titles, ["Bad ö title"], "{name}: {before:?} {after:?}");
    }
}
