//! Exports stored as objects, for results that are too large for a response.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use embedded::{Call, Intercept, Phase};
use http_api::{BodyMode, router_for};
use imports::queues::PARSE;
use imports::{
    CompareStudies, Duplicate, ExportFolder, ExportKey, FileId, FindObjects, Mark, ProjectId, Reason,
    SearchId, StudyId, StudyRef, Tier,
};
use messages::{Disposition, Host, ReceiveMessages};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use service::ProjectAccess;
use service::exported_studies::{Export, ExportOptions, FileToExport};
use testing::search::study;
use tower::ServiceExt;
use uuid::Uuid;
use writers::Format;

use super::{api, ask, get, path_of, post, refusal, stored};
use crate::world::{self, CrashAt, World, deliveries};

/// Returns the API with the limits of a Lambda function.
fn on_lambda(world: &World) -> Router {
    router_for(world.functions.start_upload.clone(), BodyMode::Buffered, |_| ProjectAccess::All)
}

/// Requests an export and returns the location of its status.
async fn asked(api: &Router, search: SearchId) -> String {
    let (status, headers, view) = post(api, &format!("{}/exports", path_of(search)), &json!({})).await;
    assert_eq!((status.as_u16(), &view["state"], &view["url"]), (202, &json!("being_made"), &Value::Null));
    assert_eq!(headers["retry-after"], "2");
    let location = headers["location"].to_str().unwrap().to_owned();
    let id = view["export_id"].as_str().unwrap();
    assert_eq!(location, format!("{}/exports/{id}", path_of(search)));
    location
}

fn downloaded(view: &Value) -> Vec<u8> {
    let url = view["url"].as_str().unwrap().strip_prefix("file://").unwrap();
    let bytes = std::fs::read(&*percent_decode_str(url).decode_utf8().unwrap()).unwrap();
    assert_eq!(view["size_bytes"], bytes.len());
    bytes
}

async fn kept(world: &World, search: SearchId) -> usize {
    let folder = ExportFolder::Search(ProjectId::from_uuid(Uuid::nil()), search);
    world.store().find(&folder.to_string()).await.unwrap().len()
}

#[tokio::test]
async fn prepared_export_equals_streamed_export() {
    let world = World::new();
    let search = stored(&world, study, 2_500).await;
    let on_lambda = on_lambda(&world);
    let location = asked(&on_lambda, search).await;
    let awaited = get(&on_lambda, &location).await;
    assert_eq!((&awaited["state"], &awaited["url"]), (&json!("being_made"), &Value::Null));
    world.run().await;
    let view = get(&on_lambda, &location).await;
    assert_eq!(view["state"], "ready");
    let expires_at: jiff::Timestamp = view["expires_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(world.host.now().until(expires_at).unwrap().get_seconds(), 15 * 60);
    let (_, _, streamed) = ask(&api(&world), &format!("{}/export", path_of(search)), None).await;
    assert_eq!(downloaded(&view), streamed);
    assert_eq!(streamed.iter().filter(|byte| **byte == b'\n').count(), 2_500);
}

fn database(world: &World) -> rusqlite::Connection {
    rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap()
}

/// Damages the study of a record. Returns its stored columns.
fn damage(world: &World, record: i64) -> (Option<String>, Option<Vec<u8>>) {
    let database = database(world);
    let sql = "SELECT study, packed FROM study WHERE record = ?1";
    let stored = database.query_row(sql, [record], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let sql = "UPDATE study SET study = '{', packed = NULL WHERE record = ?1";
    assert_eq!(database.execute(sql, [record]).unwrap(), 1);
    stored
}

/// An export without the study would lack it silently.
#[tokio::test]
async fn damaged_study_fails_export_with_reason() {
    let world = World::new();
    let search = super::stored(&world, study, 2_500).await;
    let reason = "record 1200 of \"none.ris\" is damaged; restore a backup, or delete its import and upload its files again";
    let stored = damage(&world, 1_200);
    let on_lambda = on_lambda(&world);
    let location = asked(&on_lambda, search).await;
    world.run().await;
    let view = get(&on_lambda, &location).await;
    assert_eq!(
        (&view["state"], &view["reason"], &view["url"]),
        (&json!("failed"), &json!(reason), &Value::Null)
    );
    let buffered = refusal(&on_lambda, &format!("{}/export", path_of(search))).await;
    assert_eq!(buffered, (409, reason.to_owned()));

    let api = api(&world);
    let export = format!("{}/export", path_of(search));
    let response = api.clone().oneshot(Request::get(&export).body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200, "nothing of it was read yet");
    assert!(axum::body::to_bytes(response.into_body(), usize::MAX).await.is_err());
    let refused = (409, reason.to_owned());
    assert_eq!(refusal(&api, &export).await, refused);
    let (status, _, problem) = post(&api, &format!("{}/exports", path_of(search)), &json!({})).await;
    assert_eq!((status.as_u16(), &problem["detail"]), (409, &json!(reason)));
    // No duplicate is damaged.
    let (status, ..) = ask(&api, &format!("{export}?studies=duplicates"), None).await;
    assert_eq!(status, 200);

    let sql = "UPDATE study SET study = ?1, packed = ?2 WHERE record = 1200";
    assert_eq!(database(&world).execute(sql, stored).unwrap(), 1);
    let (status, _, body) = ask(&api, &export, None).await;
    assert_eq!((status.as_u16(), body.iter().filter(|byte| **byte == b'\n').count()), (200, 2_500));
}

/// The other studies of its page are listed.
#[tokio::test]
async fn damaged_study_is_named_in_lists() {
    let world = World::new();
    let search = stored(&world, study, 2_500).await;
    for record in [1, 1_200, 1_201, 2_500] {
        damage(&world, record);
    }
    let api = api(&world);
    for (path, filter) in [
        (format!("{}/studies", path_of(search)), ""),
        (format!("/projects/{}/studies", Uuid::nil()), "&studies=unique"),
    ] {
        let (mut records, mut damaged, mut after) = (Vec::new(), Vec::new(), String::new());
        loop {
            let page = get(&api, &format!("{path}?limit=700{filter}{after}")).await;
            records.extend(
                page["items"].as_array().unwrap().iter().map(|study| study["record"].as_u64().unwrap()),
            );
            damaged.extend(
                page["damaged"].as_array().into_iter().flatten().map(|one| one["record"].as_u64().unwrap()),
            );
            let Some(next) = page["next"].as_str() else { break };
            after = format!("&after={next}");
        }
        assert_eq!(damaged, [1, 1_200, 1_201, 2_500], "{path}");
        let sound: Vec<u64> = (1..=2_500).filter(|record| !damaged.contains(record)).collect();
        assert_eq!(records, sound, "{path}");
    }
    let one = refusal(&api, &format!("{}/studies/0-1200", path_of(search))).await;
    assert_eq!(one.0, 409);
}

/// The duplicates may belong to another import.
#[tokio::test]
async fn merged_export_completes_studies_with_their_duplicates() {
    let world = World::new();
    let mut searches = Vec::new();
    for (name, more) in [("a.ris", "PY  - 2019\n"), ("b.ris", "AB  - Background.\nJO  - J Sleep\n")] {
        let announced = world.announce(&[name]).await;
        let record = "TY  - JOUR\nTI  - Sleep and health in adults\nAU  - One, Ann\nDO  - 10.5555/a\n";
        world.upload(&announced, 0, &format!("{record}{more}ER  - \n")).await;
        world.run().await;
        searches.push(announced.search_id);
    }
    let exported = async |search: SearchId, query: &str| {
        let (_, _, body) = ask(&api(&world), &format!("{}/export?{query}", path_of(search)), None).await;
        serde_json::from_slice::<Value>(&body).unwrap()
    };
    let values = |study: &Value| ["year", "journal", "abstract"].map(|field| study[field].clone());
    let as_read = exported(searches[0], "merged=false").await;
    assert_eq!(values(&as_read), [json!(2019), Value::Null, Value::Null]);
    let merged = exported(searches[0], "merged=true").await;
    assert_eq!(values(&merged), [json!(2019), json!("J Sleep"), json!("Background.")]);
    assert_eq!(merged["study_key"], as_read["study_key"]);
    let duplicate = exported(searches[1], "merged=true").await;
    assert_eq!(values(&duplicate), [Value::Null, json!("J Sleep"), json!("Background.")]);

    let on_lambda = on_lambda(&world);
    let (_, headers, _) =
        post(&on_lambda, &format!("{}/exports", path_of(searches[0])), &json!({ "merged": true })).await;
    world.run().await;
    let prepared = downloaded(&get(&on_lambda, headers["location"].to_str().unwrap()).await);
    assert_eq!(serde_json::from_slice::<Value>(&prepared).unwrap(), merged);
    let refused = refusal(&api(&world), &format!("{}/export?merged=perhaps", path_of(searches[0]))).await;
    assert_eq!(refused.0, 400);
}

/// Duplicates with long abstracts would otherwise fill the memory, because the records that they complete are short.
#[tokio::test]
async fn chunks_of_merged_export_are_bounded() {
    const COUNT: usize = 24;
    const ABSTRACT: usize = 1 << 20;
    let world = World::new();
    let mut searches = Vec::new();
    for (name, length) in [("a.ris", 8), ("b.ris", ABSTRACT)] {
        let announced = world.announce(&[name]).await;
        let record = |number: usize| {
            let text = "x".repeat(length);
            format!(
                "TY  - JOUR\nTI  - Sleep and health in adults {number}\nDO  - 10.5555/{number}\nAB  - {text}\nER  - \n"
            )
        };
        world.upload(&announced, 0, &(0..COUNT).map(record).collect::<String>()).await;
        world.run().await;
        searches.push(announced.search_id);
    }
    let stored = &world.functions.start_upload;
    let files = stored.studies.parsed(searches[0]).await.unwrap();
    let files = files.into_iter().map(|file| FileToExport { search: searches[0], file }).collect();
    let options = ExportOptions { format: Format::Jsonl, merged: true, ..ExportOptions::default() };
    let mut export = Export::of(Arc::clone(&stored.studies), files, &options, BTreeMap::new(), &stored.jobs);
    let mut exported = String::new();
    while let Some(chunk) = export.next().await.unwrap() {
        assert!(chunk.len() < 6 * ABSTRACT, "a chunk has {} bytes", chunk.len());
        exported.push_str(std::str::from_utf8(&chunk).unwrap());
    }
    let abstracts = exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let lengths: Vec<usize> = abstracts.map(|study| study["abstract"].as_str().unwrap().len()).collect();
    assert_eq!(lengths, [ABSTRACT; COUNT]);
}

/// The duplicate command may arrive during or after the export.
#[tokio::test]
async fn duplicate_command_makes_one_export() {
    let world = World::new();
    let search = stored(&world, study, 10).await;
    let location = asked(&on_lambda(&world), search).await;
    let batch = world.take(&PARSE).await;
    let function = world.functions.behind(&PARSE);
    let (body, copy) = (deliveries(&batch), deliveries(&batch));
    let (first, second) = tokio::join!(function.consume(&body, None), function.consume(&copy, None));
    assert_eq!((first, second), (vec![Disposition::Acknowledge], vec![Disposition::Acknowledge]));
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    assert_eq!(kept(&world, search).await, 1);
    assert!(!downloaded(&get(&on_lambda(&world), &location).await).is_empty());
}

#[tokio::test]
async fn overdue_export_leaves_nothing_and_is_retried() {
    let world = World::new();
    let search = stored(&world, study, 10).await;
    let location = asked(&on_lambda(&world), search).await;
    let batch = world.take(&PARSE).await;
    let function = world.functions.behind(&PARSE);
    let answers = function.consume(&deliveries(&batch), Some(world.host.now())).await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]), "{answers:?}");
    assert_eq!(kept(&world, search).await, 0);
    assert_eq!(get(&on_lambda(&world), &location).await["state"], "being_made");
    function.consume(&deliveries(&batch), None).await;
    assert_eq!(get(&on_lambda(&world), &location).await["state"], "ready");
}

/// An export that fails permanently is shown to operators, and its client does not wait indefinitely.
#[tokio::test]
async fn failed_export_is_gone_after_an_hour() {
    let world = World::new();
    let search = stored(&world, study, 10).await;
    let location = asked(&on_lambda(&world), search).await;
    let given_up = Disposition::DeadLetter { reason: "the store is away".to_owned() };
    for received in world.take(&PARSE).await {
        world.store().answer(&PARSE, &received.receipt, &given_up).await.unwrap();
    }
    world.run().await;
    let failures = get(&on_lambda(&world), "/admin/failures?state=closed").await;
    assert_eq!(failures["items"][0]["message"], "MakeExport", "{failures}");
    world.host.advance(Duration::from_secs(59 * 60));
    assert_eq!(get(&on_lambda(&world), &location).await["state"], "being_made");
    world.pass(Duration::from_secs(120)).await;
    let (status, why) = refusal(&on_lambda(&world), &location).await;
    assert_eq!((status, why.contains("it was not created")), (404, true), "{why}");
    let made_up = location.replace(&location[location.len() - 36..], &Uuid::from_u128(7).to_string());
    assert_eq!(refusal(&on_lambda(&world), &made_up).await.0, 404);
    assert_eq!(refusal(&on_lambda(&world), &format!("{location}x")).await.0, 400);
}

#[tokio::test]
async fn exports_are_deleted_with_search() {
    for made_before in [true, false] {
        let world = World::new();
        let search = stored(&world, study, 10).await;
        let location = asked(&on_lambda(&world), search).await;
        let commands = world.take(&PARSE).await;
        if made_before {
            world.deliver(&PARSE, &commands).await;
            assert_eq!(kept(&world, search).await, 1);
        }
        world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        assert_eq!(refusal(&on_lambda(&world), &location).await.0, 404, "the export is no longer accessible");
        world.run().await;
        if !made_before {
            world.deliver(&PARSE, &commands).await;
        }
        assert_eq!(kept(&world, search).await, 0);
    }
}

/// The export of a review is stored apart from those of its imports.
#[tokio::test]
async fn review_export_is_deleted_with_any_import() {
    for deleted in [0, 1] {
        for made_before in [true, false] {
            let world = World::new();
            let searches = [stored(&world, study, 10).await, stored(&world, study, 10).await];
            let on_lambda = on_lambda(&world);
            let path = format!("/projects/{}/exports", Uuid::nil());
            let (status, headers, _) = post(&on_lambda, &path, &json!({})).await;
            assert_eq!(status, 202);
            let location = headers["location"].to_str().unwrap().to_owned();
            let commands = world.take(&PARSE).await;
            let folder = ExportFolder::Review(ProjectId::from_uuid(Uuid::nil())).to_string();
            if made_before {
                world.deliver(&PARSE, &commands).await;
                let view = get(&on_lambda, &location).await;
                assert_eq!(view["state"], "ready");
                assert_eq!(downloaded(&view).iter().filter(|byte| **byte == b'\n').count(), 20);
                assert_eq!(world.store().find(&folder).await.unwrap().len(), 1);
            }
            world.functions.start_upload.delete(&ProjectAccess::All, searches[deleted]).await.unwrap();
            world.run().await;
            if !made_before {
                world.deliver(&PARSE, &commands).await;
            }
            let left = world.store().find(&folder).await.unwrap();
            assert!(
                left.iter().all(|object| !ExportKey::has_studies(&object.key)),
                "import {deleted}: {left:?}"
            );
        }
    }
}

/// Its clients neither wait for an hour nor are refused new exports.
#[tokio::test]
async fn export_removed_by_another_deletion_is_known() {
    let world = World::new();
    let searches = [stored(&world, study, 10).await, stored(&world, study, 10).await];
    let on_lambda = on_lambda(&world);
    let path = format!("/projects/{}/exports", Uuid::nil());
    let mut locations = Vec::new();
    for _ in 0..service::MAX_IN_PROGRESS {
        let (status, headers, _) =
            post(&on_lambda, &path, &json!({ "search": searches[0], "merged": true })).await;
        assert_eq!(status, 202);
        locations.push(headers["location"].to_str().unwrap().to_owned());
    }
    world.run().await;
    assert_eq!(get(&on_lambda, &locations[0]).await["state"], "ready");
    world.functions.start_upload.delete(&ProjectAccess::All, searches[1]).await.unwrap();
    world.run().await;
    assert_eq!(
        refusal(&on_lambda, &locations[0]).await.0,
        404,
        "it may contain values of the deleted import"
    );
    let (status, ..) = post(&on_lambda, &path, &json!({})).await;
    assert_eq!(status, 202);
}

/// Counts the reads of studies.
#[derive(Default)]
struct Reads(AtomicUsize);

#[async_trait]
impl Intercept for Reads {
    async fn step(&self, call: Call, phase: Phase) {
        if (call, phase) == (Call::StudiesRead, Phase::Before) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn export_reads_each_study_once() {
    for format in ["jsonl", "ris"] {
        let world = World::new();
        let search = stored(&world, study, 2_500).await;
        let path = format!("{}/exports", path_of(search));
        post(&on_lambda(&world), &path, &json!({ "format": format })).await;
        let (commands, reads) = (world.take(&PARSE).await, Arc::new(Reads::default()));
        world::call(&world.crashing(&reads), &PARSE, &commands).await;
        assert_eq!(reads.0.load(Ordering::SeqCst), 6, "500 at a time, and the end: {format}");
        assert_eq!(kept(&world, search).await, 1);
    }
}

/// Two crash points in sequence.
struct CrashPoints([Arc<CrashAt>; 2]);

#[async_trait]
impl Intercept for CrashPoints {
    async fn step(&self, call: Call, phase: Phase) {
        for point in &self.0 {
            point.step(call, phase).await;
        }
    }
}

/// The search is deleted just before the export is stored, and the worker crashes between storing it and checking
/// whether the search still exists.
#[tokio::test]
async fn export_of_deleted_search_is_deleted_after_crash() {
    let world = World::new();
    let search = stored(&world, study, 10).await;
    asked(&on_lambda(&world), search).await;
    let commands = world.take(&PARSE).await;
    let points = [Phase::Before, Phase::After].map(|phase| CrashAt::new(Call::ExportsKeep, phase, 1));
    let [before, after] = points.clone();
    let functions = world.crashing(&Arc::new(CrashPoints(points)));
    let deleted = async {
        world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        let deletion = world.take(&PARSE).await;
        world.deliver(&PARSE, &deletion).await;
    };
    after.kill(before.stall(world::call(&functions, &PARSE, &commands), deleted)).await;
    assert_eq!(kept(&world, search).await, 1);
    world.deliver(&PARSE, &commands).await;
    assert_eq!(kept(&world, search).await, 0);
}

#[tokio::test]
async fn exports_of_search_are_limited() {
    let world = World::new();
    let search = stored(&world, study, 1).await;
    let (api, path) = (on_lambda(&world), format!("{}/exports", path_of(search)));
    for _ in 0..20 {
        asked(&api, search).await;
        world.run().await;
    }
    let (status, _, problem) = post(&api, &path, &json!({})).await;
    let why = problem["detail"].as_str().unwrap();
    assert_eq!((status.as_u16(), why.contains("20 exports")), (429, true), "{problem}");
    let refused = [json!({ "format": "doc" }), json!({ "studies": "some" }), json!({ "x": 1 }), json!("x")];
    for (body, expected) in refused.map(|body| (body, 400)) {
        assert_eq!(post(&api, &path, &body).await.0.as_u16(), expected, "{body}");
    }
}

/// The limit counts pending exports of all searches, until they are ready or abandoned.
#[tokio::test]
async fn pending_exports_are_limited_per_project() {
    let world = World::new();
    let searches = [stored(&world, study, 1).await, stored(&world, study, 1).await];
    let (api, path) = (on_lambda(&world), |search| format!("{}/exports", path_of(search)));
    let refused = async |search| {
        let (status, _, problem) = post(&api, &path(search), &json!({})).await;
        let why = problem["detail"].as_str().unwrap();
        assert_eq!((status.as_u16(), why.contains("4 exports")), (429, true), "{problem}");
    };
    let asked_at_once = searches.iter().cycle().take(4).map(|search| asked(&api, *search));
    futures::future::join_all(asked_at_once).await;
    refused(searches[0]).await;
    refused(searches[1]).await;
    let commands = world.take(&PARSE).await;
    world.deliver(&PARSE, &commands[..1]).await;
    asked(&api, searches[0]).await;
    refused(searches[1]).await;
    world.pass(Duration::from_secs(3_601)).await;
    asked(&api, searches[1]).await;
}

#[tokio::test]
async fn streamed_exports_are_limited_per_project() {
    let world = World::new();
    let search = stored(&world, study, 1).await;
    let (api, path) = (api(&world), format!("{}/export", path_of(search)));
    let mut sent = Vec::new();
    for _ in 0..8 {
        let request = Request::get(&path).body(Body::empty()).unwrap();
        sent.push(api.clone().oneshot(request).await.unwrap());
    }
    let (status, why) = refusal(&api, &path).await;
    assert_eq!((status, why.contains("8 exports")), (429, true), "{why}");
    // A browser would not show the error of the download.
    let requests = [format!("{path}s"), format!("/projects/{}/exports", Uuid::nil())];
    for path in &requests {
        let (status, _, problem) = post(&api, path, &json!({})).await;
        assert_eq!((status.as_u16(), &problem["detail"]), (429, &json!(why)), "{path}");
    }
    sent.pop();
    for path in &requests {
        assert_eq!(post(&api, path, &json!({})).await.0.as_u16(), 200, "{path}");
    }
    assert_eq!(ask(&api, &path, None).await.0.as_u16(), 200);
}

/// A streaming deployment never has to wait for an export.
#[tokio::test]
async fn streamable_export_is_ready_immediately() {
    let world = World::new();
    let search = stored(&world, study, 10).await;
    let (status, _, view) = post(&api(&world), &format!("{}/exports", path_of(search)), &json!({})).await;
    assert_eq!((status.as_u16(), &view["state"], &view["export_id"]), (200, &json!("ready"), &Value::Null));
    let (status, _, body) = ask(&api(&world), view["url"].as_str().unwrap(), None).await;
    assert_eq!((status.as_u16(), body.split(|byte| *byte == b'\n').count()), (200, 11));
    assert_eq!(world.take(&PARSE).await.len(), 0);
}

/// Checks every format, prepared and streamed.
#[tokio::test]
async fn export_has_requested_format() {
    let world = World::new();
    let search = stored(&world, study, 1_200).await;
    let (on_lambda, streaming) = (on_lambda(&world), api(&world));
    for format in Format::ALL {
        let path = path_of(search);
        let body = json!({ "format": format.name() });
        let (status, headers, _) = post(&on_lambda, &format!("{path}/exports"), &body).await;
        assert_eq!(status.as_u16(), 202, "{format}");
        let location = headers["location"].to_str().unwrap().to_owned();
        assert_eq!(get(&on_lambda, &location).await["state"], "being_made", "{format}");
        world.run().await;
        let made = downloaded(&get(&on_lambda, &location).await);
        let (_, _, view) = post(&streaming, &format!("{path}/exports"), &body).await;
        let (_, headers, streamed) = ask(&streaming, view["url"].as_str().unwrap(), None).await;
        assert!(made == streamed, "{format}");
        assert_eq!(headers["content-type"], format.media_type());
        let name = format!("attachment; filename=\"revision-1-studies.{}\"", format.ending());
        assert_eq!(headers["content-disposition"], name.as_str());
        let whole = String::from_utf8_lossy(&streamed).into_owned();
        let entries = match format {
            Format::Jsonl => whole.matches("\"title\":").count(),
            Format::Ris => whole.matches("TY  - ").count(),
            Format::Csv | Format::Rayyan | Format::Asreview => whole.matches("\r\n").count() - 1,
            Format::Bibtex => whole.matches("\n@").count() + 1,
            Format::EndnoteXml => whole.matches("<record>").count(),
            Format::Nbib => whole.matches("[study-key]").count(),
            Format::CslJson => serde_json::from_str::<Vec<Value>>(&whole).unwrap().len(),
            // A workbook is compressed.
            Format::Xlsx => usize::from(whole.starts_with("PK")) * 1_200,
        };
        assert_eq!(entries, 1_200, "{format}");
    }
}

/// Exports of this format name the sources and the key of each study.
#[tokio::test]
async fn export_contains_sources_and_keys() {
    let world = World::new();
    let search = stored(&world, study, 3).await;
    let (api, path) = (api(&world), path_of(search));
    let file = get(&api, &path).await["files"][0]["file_id"].clone();
    let source = json!({ "database": "Embase", "platform": "Ovid", "searched_on": "2026-05-17" });
    let said = json!({ "files": [{ "file_id": file, "source": source }] });
    assert_eq!(post(&api, &format!("{path}/sources"), &said).await.0.as_u16(), 204);
    let (_, _, csv) = ask(&api, &format!("{path}/export?format=csv"), None).await;
    let csv = String::from_utf8(csv).unwrap();
    assert_eq!(csv.matches("Embase,Ovid,2026-05-17").count(), 3, "{csv}");
    let file = FileId::from_uuid(file.as_str().unwrap().parse().unwrap());
    for record in 1..=3 {
        let key = StudyId::of(search, file, record).as_uuid().to_string();
        assert!(csv.contains(&format!("\n{key},")), "{key}: {csv}");
    }
}

/// Marks these studies of a file as duplicates of its first.
async fn mark(world: &World, search_id: SearchId, file_id: FileId, records: impl Iterator<Item = u64>) {
    let (tier, reason) = (Tier::Certain, Reason::DoiTitle);
    let duplicate = Duplicate { search_id, file_id, position: 0, record: 1, tier, reason };
    let mark = |record| Mark { at: StudyRef { search_id, file_id, record }, duplicate: Some(duplicate) };
    let marks: Vec<Mark> = records.map(mark).collect();
    for marks in marks.chunks(1_000) {
        world.store().mark(1, marks).await.unwrap();
    }
}

/// Repeats a large search: the new studies fit into a response, but there is not enough time to find them.
#[tokio::test]
async fn sparse_selection_requires_prepared_export() {
    let world = World::new();
    let search = stored(&world, study, 20_500).await;
    let (on_lambda, path) = (on_lambda(&world), path_of(search));
    let file = get(&api(&world), &path).await["files"][0]["file_id"].as_str().unwrap().parse().unwrap();
    mark(&world, search, FileId::from_uuid(file), 2..=20_500).await;
    let (status, why) = refusal(&on_lambda, &format!("{path}/export?studies=unique")).await;
    assert_eq!((status, why.contains("POST")), (413, true), "{why}");
    let body = json!({ "studies": "unique" });
    let (_, headers, _) = post(&on_lambda, &format!("{path}/exports"), &body).await;
    world.run().await;
    let made = downloaded(&get(&on_lambda, headers["location"].to_str().unwrap()).await);
    assert_eq!(made.iter().filter(|byte| **byte == b'\n').count(), 1);
}

/// Duplicates are omitted or are the only studies, both in prepared and in streamed exports.
#[tokio::test]
async fn export_contains_requested_studies() {
    let world = World::new();
    let search = stored(&world, study, 1_200).await;
    let (on_lambda, streaming, path) = (on_lambda(&world), api(&world), path_of(search));
    let file = get(&streaming, &path).await["files"][0]["file_id"].as_str().unwrap().parse().unwrap();
    let file_id = FileId::from_uuid(file);
    mark(&world, search, file_id, (2..=1_200).step_by(3)).await;
    for (format, studies, expected) in [
        ("jsonl", "all", 1_200),
        ("jsonl", "unique", 800),
        ("jsonl", "duplicates", 400),
        ("csv", "all", 1_200),
        ("csv", "unique", 800),
        ("csv", "duplicates", 400),
    ] {
        let body = json!({ "format": format, "studies": studies });
        let (_, headers, _) = post(&on_lambda, &format!("{path}/exports"), &body).await;
        world.run().await;
        let made = downloaded(&get(&on_lambda, headers["location"].to_str().unwrap()).await);
        let query = format!("{path}/export?format={format}&studies={studies}");
        let (_, _, streamed) = ask(&streaming, &query, None).await;
        assert!(made == streamed, "{format} {studies}");
        let lines = streamed.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines - usize::from(format == "csv"), expected, "{format} {studies}");
        if (format, studies) == ("csv", "duplicates") {
            let original = StudyId::of(search, file_id, 1).as_uuid().to_string();
            assert_eq!(
                String::from_utf8(streamed).unwrap().matches(&format!(",{original}\r\n")).count(),
                400
            );
        }
    }
}
