//! Reviews: their list, and the studies and exports of a whole review.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request};
use http_api::{BodyMode, router_for};
use imports::{ProjectId, SearchId};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use service::{FileRepair, NewFile, NewRepair, ProjectAccess, Repair};
use tower::ServiceExt;
use uuid::Uuid;

use super::{api, ask, get, imported, path_of, post, refusal};
use crate::world::World;

/// The record of `FIRST` that could not be read, corrected.
const CORRECTED: &str = "TY  - JOUR\nTI  - Corrected title\nAB  - Randomised; Nothing else\nER  - \n";

fn review() -> String {
    format!("/projects/{}", Uuid::nil())
}

async fn delete(api: &Router, path: &str) -> u16 {
    let request = Request::delete(path).body(Body::empty()).unwrap();
    api.clone().oneshot(request).await.unwrap().status().as_u16()
}

async fn names(api: &Router) -> Vec<String> {
    let list = get(api, "/projects").await;
    list["items"].as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn review_is_created_once_regardless_of_case() {
    let world = World::new();
    let api = api(&world);
    assert_eq!(names(&api).await, [""; 0]);
    let (status, headers, made) = post(&api, "/projects", &json!({ "name": " Sleep " })).await;
    let id = made["project_id"].as_str().unwrap();
    assert_eq!((status.as_u16(), &made["name"], &made["archived_at"]), (201, &json!("Sleep"), &Value::Null));
    assert_eq!(headers["location"], format!("/projects/{id}").as_str());
    // The command line derives the same id from the name.
    assert_eq!(id, ProjectId::named("Sleep").unwrap().to_string());
    let (status, _, again) = post(&api, "/projects", &json!({ "name": "SLEEP" })).await;
    assert_eq!((status.as_u16(), &again), (200, &made));
    for refused in [json!({ "name": "" }), json!({ "name": "a\nb" }), json!({ "name": Uuid::nil() })] {
        assert_eq!(post(&api, "/projects", &refused).await.0.as_u16(), 422, "{refused}");
    }
}

#[tokio::test]
async fn review_is_renamed_archived_and_restored() {
    let world = World::new();
    let api = api(&world);
    let (_, _, made) = post(&api, "/projects", &json!({ "name": "Sleep" })).await;
    post(&api, "/projects", &json!({ "name": "Zinc" })).await;
    let path = format!("/projects/{}", made["project_id"].as_str().unwrap());
    let (status, _, changed) = post(&api, &path, &json!({ "name": "Sleep apnoea", "archived": true })).await;
    assert_eq!((status.as_u16(), &changed["name"]), (200, &json!("Sleep apnoea")));
    assert!(changed["archived_at"].is_string(), "{changed}");
    assert_eq!(names(&api).await, ["Sleep apnoea", "Zinc"]);
    let (status, _, problem) = post(&api, &path, &json!({ "name": "zinc" })).await;
    assert_eq!((status.as_u16(), problem["detail"].as_str().unwrap().contains("\"Zinc\"")), (409, true));
    let (_, _, restored) = post(&api, &path, &json!({ "archived": false })).await;
    assert_eq!(restored["archived_at"], Value::Null);
    // The earlier name is free. The new review has its own id.
    let (status, _, other) = post(&api, "/projects", &json!({ "name": "sleep" })).await;
    assert_eq!(status.as_u16(), 201);
    assert_ne!(other["project_id"], made["project_id"]);
    // The default review has no name until it is given one.
    assert_eq!(post(&api, &review(), &json!({ "archived": true })).await.0.as_u16(), 422);
    assert_eq!(post(&api, &review(), &json!({ "name": "Everything else" })).await.0.as_u16(), 200);
    assert_eq!(names(&api).await, ["Everything else", "sleep", "Sleep apnoea", "Zinc"]);
}

#[tokio::test]
async fn concurrent_creations_list_each_review() {
    let world = World::new();
    let api = api(&world);
    let bodies: Vec<Value> = ["Sleep", "Zinc", "sleep"].map(|name| json!({ "name": name })).to_vec();
    let done = futures::future::join_all(bodies.iter().map(|body| post(&api, "/projects", body))).await;
    assert!(done.iter().all(|(status, _, _)| status.is_success()));
    assert_eq!(names(&api).await.len(), 2);
}

#[tokio::test]
async fn callers_see_and_change_their_reviews_only() {
    let world = World::new();
    let (_, _, sleep) = post(&api(&world), "/projects", &json!({ "name": "Sleep" })).await;
    let (_, _, zinc) = post(&api(&world), "/projects", &json!({ "name": "Zinc" })).await;
    let mine = ProjectId::from_uuid(sleep["project_id"].as_str().unwrap().parse().unwrap());
    let access = move |_: &axum::http::Extensions| ProjectAccess::to(mine);
    let limited = router_for(world.functions.start_upload.clone(), BodyMode::Streaming, access);
    assert_eq!(names(&limited).await, ["Sleep"]);
    assert_eq!(post(&limited, "/projects", &json!({ "name": "Iron" })).await.0.as_u16(), 403);
    let other = format!("/projects/{}", zinc["project_id"].as_str().unwrap());
    assert_eq!(post(&limited, &other, &json!({ "name": "Mine" })).await.0.as_u16(), 404);
    assert_eq!(delete(&limited, &other).await, 404);
    assert_eq!(names(&api(&world)).await, ["Sleep", "Zinc"]);
}

#[tokio::test]
async fn deleted_review_has_neither_imports_nor_decisions() {
    let (world, announced, path) = imported().await;
    let api = api(&world);
    post(&api, &review(), &json!({ "name": "Everything" })).await;
    let study = |file: usize| json!({ "search_id": announced.search_id, "file_id": announced.files[file].file_id, "record": 1 });
    let decision = json!({ "decision": "different", "studies": [study(0), study(1)] });
    assert_eq!(post(&api, &format!("{}/duplicates/decisions", review()), &decision).await.0.as_u16(), 202);
    let open = world.announce(&["later.ris"]).await;
    assert_eq!(delete(&api, &review()).await, 409, "an import has not ended");
    assert_eq!(post(&api, &format!("{}/cancel", path_of(open.search_id)), &json!({})).await.0.as_u16(), 202);
    world.run().await;
    assert_eq!(delete(&api, &review()).await, 204);
    world.run().await;
    assert_eq!(names(&api).await, [""; 0]);
    assert_eq!(refusal(&api, &path).await.0, 404);
    assert_eq!(get(&api, &format!("{}/duplicates/decisions", review())).await["items"], json!([]));
    assert_eq!(delete(&api, &review()).await, 204, "it is idempotent");
}

/// Corrects the bad record of `FIRST`.
async fn corrected(world: &World, search: SearchId, file: imports::FileId) -> SearchId {
    corrected_by(world, search, file, CORRECTED).await
}

async fn corrected_by(world: &World, search: SearchId, file: imports::FileId, content: &str) -> SearchId {
    let replacement = Some(NewFile { name: "corrected.ris".to_owned(), size_bytes: content.len() as u64 });
    let files = vec![FileRepair { file_id: file, replacement, records: [3].into() }];
    let request = NewRepair { name: None, files };
    let start = &world.functions.start_upload;
    let repair = start.repair(&ProjectAccess::All, search, &request, None).await.unwrap();
    let Repair::Announced(announced) = repair else { panic!("{repair:?}") };
    world.upload(&announced, 0, content).await;
    world.run().await;
    announced.search_id
}

/// Returns the titles of a list of studies, and those of the export with the same selection.
async fn titles(api: &Router, query: &str) -> (Vec<String>, Vec<String>) {
    let title = |study: &Value| study["title"].as_str().unwrap().to_owned();
    let (items, _) = super::all(api, &format!("{}/studies?limit=1&{query}", review())).await;
    let (status, _, body) = ask(api, &format!("{}/export?{query}", review()), None).await;
    assert_eq!(status.as_u16(), 200);
    let lines = String::from_utf8(body).unwrap();
    let exported = lines.lines().map(|line| title(&serde_json::from_str(line).unwrap())).collect();
    (items.iter().map(title).collect(), exported)
}

#[tokio::test]
async fn export_contains_what_list_shows_with_corrected_records() {
    let (world, announced, _) = imported().await;
    let search = announced.search_id;
    corrected(&world, search, announced.files[0].file_id).await;
    let other = world.announce(&["other.ris"]).await;
    world.upload(&other, 0, "TY  - JOUR\nTI  - Alone\nER  - \n").await;
    world.run().await;
    let api = api(&world);
    let of_file = |file: usize| format!("search={search}&file={}", announced.files[file].file_id);
    let own = ["First", "Zweite Ärztestudie", "The first one", "Third"];
    for (query, expected) in [
        (format!("search={search}"), [&own[..], &["Corrected title"]].concat()),
        (of_file(0), vec!["First", "Zweite Ärztestudie", "Corrected title"]),
        (of_file(1), vec!["The first one", "Third"]),
        (format!("search={search}&text=randomised;"), vec!["Corrected title"]),
        (format!("search={search}&text=ärzte&studies=unique"), vec!["Zweite Ärztestudie"]),
        ("studies=all&text=alone".to_owned(), vec!["Alone"]),
        ("text=nothing of this".to_owned(), vec![]),
    ] {
        let (listed, exported) = titles(&api, &query).await;
        assert_eq!(
            (listed, exported),
            (
                expected.iter().map(ToString::to_string).collect::<Vec<_>>(),
                expected.iter().map(ToString::to_string).collect()
            ),
            "{query}"
        );
    }
    let (listed, exported) = titles(&api, "").await;
    assert_eq!((listed.len(), &listed), (6, &exported));
    for (query, status) in
        [("file=x", 400), (&*format!("file={}", Uuid::nil()), 400), ("search=x", 400), ("texts=a", 400)]
    {
        assert_eq!(refusal(&api, &format!("{}/export?{query}", review())).await.0, status, "{query}");
        assert_eq!(refusal(&api, &format!("{}/studies?{query}", review())).await.0, status, "{query}");
    }
    let unknown = format!("{}/export?search={}", review(), Uuid::from_u128(7));
    assert_eq!(refusal(&api, &unknown).await.0, 404);
}

#[tokio::test]
async fn list_of_import_ends_after_repair_is_deleted() {
    let (world, announced, _) = imported().await;
    let search = announced.search_id;
    let repair = corrected_by(&world, search, announced.files[0].file_id, &CORRECTED.repeat(2)).await;
    let api = api(&world);
    let path = format!("{}/studies?search={search}", review());
    let page = get(&api, &format!("{path}&limit=5")).await;
    assert_eq!(page["items"][4]["search_id"], json!(repair), "{page}");
    world.functions.start_upload.delete(&ProjectAccess::All, repair).await.unwrap();
    world.run().await;
    let page = get(&api, &format!("{path}&after={}", page["next"].as_str().unwrap())).await;
    assert_eq!((&page["items"], &page["next"]), (&json!([]), &Value::Null));
}

async fn exported(api: &Router, body: &Value) -> (HeaderMap, Value) {
    let (status, headers, view) = post(api, &format!("{}/exports", review()), body).await;
    assert!(status.is_success(), "{view}");
    (headers, view)
}

/// A deployment that does not stream creates the same export as an object.
#[tokio::test]
async fn prepared_export_of_review_equals_streamed_export() {
    let (world, announced, _) = imported().await;
    corrected(&world, announced.search_id, announced.files[0].file_id).await;
    let (streaming, all) = (api(&world), |_: &axum::http::Extensions| ProjectAccess::All);
    let buffered = router_for(world.functions.start_upload.clone(), BodyMode::Buffered, all);
    for body in [
        json!({ "format": "ris" }),
        json!({ "format": "csv", "search": announced.search_id, "studies": "unique", "text": "ärzte & \"co\"" }),
        json!({ "format": "csv", "search": announced.search_id, "text": "TITLE" }),
        json!({ "search": announced.search_id, "file": announced.files[0].file_id }),
    ] {
        let (_, view) = exported(&streaming, &body).await;
        assert_eq!((&view["state"], &view["search_id"]), (&json!("ready"), &Value::Null));
        let (status, _, streamed) = ask(&streaming, view["url"].as_str().unwrap(), None).await;
        assert_eq!(status.as_u16(), 200);
        let (headers, view) = exported(&buffered, &body).await;
        let location = headers["location"].to_str().unwrap();
        let (search, export) = (view["search_id"].as_str().unwrap(), view["export_id"].as_str().unwrap());
        assert_eq!(location, format!("{}/searches/{search}/exports/{export}", review()));
        world.run().await;
        let ready = get(&buffered, location).await;
        let url = ready["url"].as_str().unwrap().strip_prefix("file://").unwrap();
        let made = std::fs::read(&*percent_decode_str(url).decode_utf8().unwrap()).unwrap();
        assert!(made == streamed, "{body}: {}", String::from_utf8_lossy(&made));
    }
    let empty = json!({ "search": Uuid::from_u128(7) });
    assert_eq!(post(&streaming, &format!("{}/exports", review()), &empty).await.0.as_u16(), 404);
    let other = format!("/projects/{}/exports", Uuid::from_u128(7));
    assert_eq!(post(&buffered, &other, &json!({})).await.0.as_u16(), 422, "the review has no imports");
}

#[tokio::test]
async fn export_file_is_named_after_review_and_import() {
    let (world, announced, path) = imported().await;
    let api = api(&world);
    let disposition = async |path: String| {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let (parts, body) = api.clone().oneshot(request).await.unwrap().into_parts();
        to_bytes(body, usize::MAX).await.unwrap();
        parts.headers["content-disposition"].to_str().unwrap().to_owned()
    };
    let import = get(&api, &path).await["name"].as_str().unwrap().to_owned();
    let whole = format!("{}/export?format=ris", review());
    assert_eq!(disposition(whole.clone()).await, "attachment; filename=\"studies.ris\"");
    post(&api, &review(), &json!({ "name": "Schlaf: \"Apnoe\"/2026" })).await;
    assert_eq!(disposition(whole).await, "attachment; filename=\"Schlaf-Apnoe-2026-studies.ris\"");
    let one = format!("{}/export?search={}&format=csv", review(), announced.search_id);
    let named = disposition(one).await;
    let import = import.split(|c: char| !c.is_alphanumeric()).collect::<Vec<_>>().join("-");
    assert_eq!(named, format!("attachment; filename=\"Schlaf-Apnoe-2026-{import}-studies.csv\""));
    post(&api, &review(), &json!({ "name": "Schläfrigkeit" })).await;
    let named = disposition(format!("{path}/export")).await;
    assert!(named.contains("filename*=UTF-8''Schl%C3%A4frigkeit-"), "{named}");
}
