//! Studies, duplicates, unreadable records, and exports.

use axum::http::StatusCode;
use http_api::{BodyMode, router_for};
use imports::queues::{CONTROL, PARSE, SAGA, UPLOADS};
use imports::{ProjectId, ReadStudies, Study};
use references::Reference;
use service::ProjectAccess;
use testing::search::study;
use uuid::Uuid;

use super::{all, api, ask, get, imported, path_of, refusal, stored, titles};
use crate::world::World;

#[tokio::test]
async fn search_accounts_for_every_record() {
    let (world, announced, path) = imported().await;
    let search = get(&api(&world), &path).await;
    let totals = serde_json::json!({ "records": 5, "studies": 4, "unread": 1, "unique": 3, "duplicates": 1 });
    assert_eq!(search["totals"], totals);
    for (file, duplicates) in [(0, 0), (1, 1)] {
        let shown = &search["files"][file];
        assert_eq!(shown["file_id"], announced.files[file].file_id.to_string());
        assert_eq!((&shown["phase"], &shown["outcome"]["duplicates"]), (&"done".into(), &duplicates.into()));
        assert_eq!(shown["outcome"]["format_certainty"], "certain");
    }
}

#[tokio::test]
async fn studies_are_listed_in_pages_and_filtered() {
    let (world, announced, path) = imported().await;
    let api = api(&world);
    let everything = ["First", "Zweite Ärztestudie", "The first one", "Third"];
    for (limit, pages) in [(1, vec![1; 4]), (3, vec![3, 1]), (4, vec![4]), (1_000, vec![4])] {
        let (items, sizes) = all(&api, &format!("{path}/studies?limit={limit}")).await;
        assert_eq!((titles(&items), sizes), (everything.to_vec(), pages), "{limit}");
    }
    let second = announced.files[1].file_id;
    for (query, expected) in [
        (format!("file={second}"), &everything[2..]),
        ("duplicates=only".to_owned(), &everything[2..3]),
        ("duplicates=none&limit=1".to_owned(), &["First", "Zweite Ärztestudie", "Third"]),
        ("text=ÄRZTE".to_owned(), &everything[1..2]),
        ("text=one, an".to_owned(), &everything[..1]),
        ("text=gambl".to_owned(), &everything[1..2]),
        ("text=10.5555/A&limit=1".to_owned(), &["First", "The first one"]),
        (format!("text=first&file={second}&duplicates=none"), &[]),
        ("text=nobody".to_owned(), &[]),
    ] {
        let query = query.replace('Ä', "%C3%84");
        let (items, _) = all(&api, &format!("{path}/studies?{query}")).await;
        assert_eq!(titles(&items), expected, "{query}");
    }
    let (items, _) = all(&api, &format!("{path}/studies?duplicates=only")).await;
    let duplicate = serde_json::json!({
        "of": "0-1",
        "search_id": announced.search_id,
        "file_id": announced.files[0].file_id,
        "tier": "likely",
        "reason": "doi_author_alike",
        "because": "the same DOI and first author, and titles or abstracts that are alike",
    });
    assert_eq!((&items[0]["id"], &items[0]["duplicate"]), (&"1-1".into(), &duplicate));
}

#[tokio::test]
async fn duplicate_is_listed_with_original() {
    let (world, _, path) = imported().await;
    let (pairs, _) = all(&api(&world), &format!("{path}/duplicates?limit=1")).await;
    let [pair] = pairs.as_slice() else { panic!("{pairs:?}") };
    let ids = (&pair["study"]["id"], &pair["original"]["id"]);
    assert_eq!(ids, (&"1-1".into(), &"0-1".into()));
    assert_eq!(titles(&[pair["study"].clone(), pair["original"].clone()]), ["The first one", "First"]);
    assert_eq!(pair["study"]["duplicate"]["reason"], "doi_author_alike");
}

#[tokio::test]
async fn unreadable_records_are_listed_with_reasons() {
    let (world, announced, path) = imported().await;
    let (unread, _) = all(&api(&world), &format!("{path}/quarantine?limit=1")).await;
    let [unread] = unread.as_slice() else { panic!("{unread:?}") };
    assert_eq!((&unread["id"], &unread["record"], &unread["line"]), (&"0-3".into(), &3.into(), &12.into()));
    assert!(unread["reason"].as_str().unwrap().contains("not text"), "{unread}");
    assert!(unread["excerpt"].as_str().unwrap().starts_with("TY  - JOUR"), "{unread}");
    let other = format!("{path}/quarantine?file={}", announced.files[1].file_id);
    assert!(all(&api(&world), &other).await.0.is_empty());
}

/// The stored results of a file in progress may still be rolled back.
#[tokio::test]
async fn unfinished_files_are_not_listed() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    for index in 0..2 {
        world.upload(&announced, index, super::FIRST).await;
    }
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
    let commands = world.take(&PARSE).await;
    world.deliver(&PARSE, &commands[..1]).await;
    let (file, search) = (announced.files[0].file_id, announced.search_id);
    assert_eq!(
        world.store().studies(search, file, 0, 9).await.unwrap().len(),
        2,
        "it is read, and not said to be"
    );
    let (api, path) = (api(&world), path_of(announced.search_id));
    for list in ["studies", "quarantine", "duplicates"] {
        assert_eq!(all(&api, &format!("{path}/{list}")).await, (Vec::new(), vec![0]));
    }
    let named = format!("{path}/studies?file={}", announced.files[0].file_id);
    assert!(all(&api, &named).await.0.is_empty());
    assert_eq!(refusal(&api, &format!("{path}/studies/0-1")).await.0, 404);
    let shown = get(&api, &path).await;
    let phases = [0, 1].map(|n| shown["files"][n]["phase"].as_str().unwrap());
    assert_eq!(phases, ["marking_duplicates", "waiting"]);
}

fn long(bytes: usize) -> impl Fn(imports::SearchId, imports::FileId, u64) -> Study {
    move |search, file, record| {
        let study = study(search, file, record);
        let reference = Reference { r#abstract: Some("\"".repeat(bytes / 2)), ..study.reference };
        Study { reference, ..study }
    }
}

#[tokio::test]
async fn page_size_is_limited_and_list_continues() {
    let world = World::new();
    let search = stored(&world, long(900_000), 9).await;
    let path = format!("{}/studies", path_of(search));
    let api = api(&world);
    let (items, sizes) = all(&api, &path).await;
    assert_eq!((items.len(), sizes), (9, vec![4, 4, 1]));
    let (_, _, body) = ask(&api, &path, None).await;
    assert!(body.len() < 5_000_000, "{}", body.len());
    assert_eq!(items[0]["shortened"], false);
}

/// The limit applies to the page, not to each import.
#[tokio::test]
async fn page_size_of_review_is_limited() {
    let world = World::new();
    for _ in 0..9 {
        stored(&world, long(900_000), 1).await;
    }
    let (items, sizes) = all(&api(&world), &format!("/projects/{}/studies", Uuid::nil())).await;
    assert_eq!((items.len(), sizes), (9, vec![4, 4, 1]));
}

/// A record larger than any response does not hide the next one.
#[tokio::test]
async fn oversized_study_is_shortened() {
    let world = World::new();
    let search = stored(&world, long(4 << 20), 3).await;
    let (path, api) = (path_of(search), api(&world));
    let (items, _) = all(&api, &format!("{path}/studies")).await;
    assert_eq!(items.len(), 3);
    for item in &items {
        assert_eq!(item["shortened"], true);
        assert_eq!(item["abstract"].as_str().unwrap().len(), 1_000);
    }
    assert_eq!(get(&api, &format!("{path}/studies/0-2")).await["study"]["shortened"], true);
    let (_, _, export) = ask(&api, &format!("{path}/export"), None).await;
    assert!(export.len() > 3 * (4 << 20), "an export has all of it: {}", export.len());
}

#[tokio::test]
async fn export_has_one_study_per_line() {
    let (world, _, path) = imported().await;
    let api = api(&world);
    let (items, _) = all(&api, &format!("{path}/studies")).await;
    let (status, headers, body) = ask(&api, &format!("{path}/export?format=jsonl"), None).await;
    assert_eq!((status, &headers["content-type"]), (StatusCode::OK, &"application/jsonl".parse().unwrap()));
    let lines = String::from_utf8(body).unwrap();
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, items);
    for wrong in ["format=doc", "format=", "studies=some"] {
        assert_eq!(refusal(&api, &format!("{path}/export?{wrong}")).await.0, 400, "{wrong}");
    }
}

#[tokio::test]
async fn large_export_without_streaming_is_refused() {
    let world = World::new();
    let (small, large) = (stored(&world, study, 2_000).await, stored(&world, long(900_000), 6).await);
    let whole = router_for(world.functions.start_upload.clone(), BodyMode::Buffered, |_| ProjectAccess::All);
    let (status, _, body) = ask(&whole, &format!("{}/export", path_of(small)), None).await;
    let lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
    assert_eq!((status, lines), (StatusCode::OK, 2_000));
    let (status, why) = refusal(&whole, &format!("{}/export", path_of(large))).await;
    assert_eq!((status, why.contains("instead")), (413, true), "{why}");
    let (status, _, body) = ask(&api(&world), &format!("{}/export", path_of(large)), None).await;
    assert_eq!((status, body.len() > 5_000_000), (StatusCode::OK, true));
}

#[tokio::test]
async fn results_of_other_projects_are_hidden() {
    let (world, _, path) = imported().await;
    let other = ProjectId::from_uuid(Uuid::from_u128(7));
    let api = router_for(world.functions.start_upload.clone(), BodyMode::Streaming, move |_| {
        ProjectAccess::to(other)
    });
    for rest in ["", "/studies", "/studies/0-1", "/quarantine", "/quarantine/0-3", "/duplicates", "/export"] {
        let ours = path.replace(&Uuid::nil().to_string(), &other.to_string());
        for path in [&path, &ours] {
            assert_eq!(refusal(&api, &format!("{path}{rest}")).await.0, 404, "{path}{rest}");
        }
    }
}
