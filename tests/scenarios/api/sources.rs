//! The sources of files, and the PRISMA counts of a review.

use axum::Router;
use imports::{ProjectId, SearchId};
use serde_json::{Value, json};
use service::{AnnouncedSearch, Deletion, ProjectAccess};
use uuid::Uuid;

use super::{api, get, imported, path_of, post, refusal};
use crate::world::World;

fn prisma() -> String {
    format!("/projects/{}/prisma", Uuid::nil())
}

/// Returns the sources of a search's files: database, platform, date, and whether they are detected.
async fn sources(api: &Router, path: &str) -> Vec<[Value; 4]> {
    let files = get(api, path).await["files"].clone();
    let source = |file: &Value| {
        ["database", "platform", "searched_on", "is_guessed"].map(|key| file["source"][key].clone())
    };
    files.as_array().unwrap().iter().map(source).collect()
}

/// Sets the sources of files by their ids.
async fn say(api: &Router, path: &str, files: &Value) -> (u16, Value) {
    let file = |(id, source): (&String, &Value)| json!({ "file_id": id, "source": source });
    let files: Vec<Value> = files.as_object().unwrap().iter().map(file).collect();
    let (status, _, answer) = post(api, &format!("{path}/sources"), &json!({ "files": files })).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn set_source_stands_and_missing_source_is_detected() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    let record = "TY  - JOUR\nTI  - A\nDB  - psyh\nDP  - EBSCOhost\nER  - \n";
    for index in 0..2 {
        world.upload(&announced, index, record).await;
    }
    let (api, path) = (api(&world), path_of(announced.search_id));
    let ids = [0, 1].map(|n| announced.files[n].file_id.to_string());
    // This source is set before the file is read.
    let medline = json!({ "database": "MEDLINE", "platform": "Ovid", "searched_on": "2026-05-17" });
    assert_eq!(say(&api, &path, &json!({ &ids[0]: medline })).await.0, 204);
    world.run().await;
    let given = [json!("MEDLINE"), json!("Ovid"), json!("2026-05-17"), json!(false)];
    let guessed = [json!("APA PsycInfo"), json!("EBSCOhost"), Value::Null, json!(true)];
    assert_eq!(sources(&api, &path).await, [given.clone(), guessed.clone()]);
    // This source is set for the other file, later. The first source is kept.
    assert_eq!(say(&api, &path, &json!({ &ids[1]: { "database": "Embase" } })).await.0, 204);
    let embase = [json!("Embase"), Value::Null, Value::Null, json!(false)];
    assert_eq!(sources(&api, &path).await, [given.clone(), embase]);
    // Setting only the date keeps the source detected from the file.
    assert_eq!(say(&api, &path, &json!({ &ids[1]: { "searched_on": "2026-05-18" } })).await.0, 204);
    let dated = [json!("APA PsycInfo"), json!("EBSCOhost"), json!("2026-05-18"), json!(true)];
    assert_eq!(sources(&api, &path).await, [given.clone(), dated]);
    assert_eq!(say(&api, &path, &json!({ &ids[1]: null })).await.0, 204);
    assert_eq!(sources(&api, &path).await, [given, guessed]);
}

/// A number of Web of Science shows where its own record was found. Other records of the file may contradict it.
#[tokio::test]
async fn first_number_is_compared_with_further_records() {
    let world = World::new();
    let announced = world.announce(&["collection.ris", "all-databases.ris", "library.ris"]).await;
    let [medline, core] = ["AN  - MEDLINE:33333333", "AN  - WOS:000600000100001"];
    let files = [[medline, medline], [medline, core], [core, "DB  - Scopus"]];
    for (index, tags) in files.iter().enumerate() {
        let records = tags.map(|tag| format!("TY  - JOUR\nTI  - A\n{tag}\nER  - \n"));
        world.upload(&announced, index, &records.concat()).await;
    }
    world.run().await;
    let names = [
        [json!("MEDLINE"), json!("Web of Science")],
        [json!("Web of Science"), Value::Null],
        [Value::Null, Value::Null],
    ];
    let expected = names.map(|[database, platform]| [database, platform, Value::Null, json!(true)]);
    assert_eq!(sources(&api(&world), &path_of(announced.search_id)).await, expected);
}

#[tokio::test]
async fn invalid_requests_change_nothing() {
    let (world, announced, path) = imported().await;
    let (api, id) = (api(&world), announced.files[0].file_id.to_string());
    let before = sources(&api, &path).await;
    for (files, status, why) in [
        (json!({ Uuid::from_u128(9).to_string(): {} }), 422, "has no file"),
        (json!({ &id: { "database": " " } }), 422, "the database is 1 to 255"),
        (json!({ &id: { "platform": "a\u{7}" } }), 422, "the platform is 1 to 255"),
        (json!({ &id: { "database": "x".repeat(256) } }), 422, "the database is 1 to 255"),
        (json!({ &id: { "searched_on": "yesterday" } }), 400, "not a list of sources"),
        (json!({ &id: { "name": "MEDLINE" } }), 400, "unknown field"),
        (json!({ "x": {} }), 400, "not a list of sources"),
    ] {
        let (answered, problem) = say(&api, &path, &files).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(answered == status && detail.contains(why), "{files}: {answered} {detail}");
    }
    assert_eq!(sources(&api, &path).await, before);
    let unknown = path_of(contracts::sample::partition(&*world.host));
    assert_eq!(say(&api, &unknown, &json!({})).await.0, 404);
}

/// Three spellings of a name are one source, also those that an earlier version stored as they were entered.
#[tokio::test]
async fn spellings_of_a_name_are_one_source() {
    let (world, announced, path) = imported().await;
    let (api, ids) = (api(&world), [0, 1].map(|n| announced.files[n].file_id.to_string()));
    let given = [
        json!({ "database": "Medline", "platform": "ovid" }),
        json!({ "database": "medline ", "platform": "OVID" }),
    ];
    for (id, source) in ids.iter().zip(given) {
        assert_eq!(say(&api, &path, &json!({ id: source })).await.0, 204);
    }
    let flow = get(&api, &prisma()).await;
    assert_eq!(flow["sources"].as_array().unwrap().len(), 1, "{flow}");
    assert_eq!(flow["sources"][0]["source"]["name"], "MEDLINE (Ovid)");
}

/// Changes the sources of a review; returns the number of changed files.
async fn change(api: &Router, change: &Value) -> Value {
    let (status, _, answer) = post(api, &format!("/projects/{}/sources", Uuid::nil()), change).await;
    assert_eq!(status.as_u16(), 200, "{answer}");
    answer["files"].clone()
}

#[tokio::test]
async fn source_is_replaced_and_dated_throughout_review() {
    let (world, announced, path) = imported().await;
    let (api, ids) = (api(&world), [0, 1].map(|n| announced.files[n].file_id.to_string()));
    for id in &ids {
        assert_eq!(say(&api, &path, &json!({ id: { "database": "Embase" } })).await.0, 204);
    }
    let replace =
        json!({ "replace": { "from": { "database": "Embase" }, "to": { "database": "ISRCTN registry" } } });
    assert_eq!(change(&api, &replace).await, 2);
    assert_eq!(change(&api, &replace).await, 0, "the source no longer exists");
    assert_eq!(change(&api, &json!({ "searched_on": "2026-05-17" })).await, 2);
    let expected = [json!("ISRCTN"), Value::Null, json!("2026-05-17"), json!(false)];
    assert_eq!(sources(&api, &path).await, [expected.clone(), expected]);
    let flow = get(&api, &prisma()).await;
    closes(&flow);
    assert_eq!(flow["sources"][0]["method"], "register");
    assert_eq!(flow["drawing"]["boxes"][1]["lines"][1]["text"], "Registers (n = 5)");
    let invalid = json!({ "replace": { "from": {}, "to": { "database": "" } } });
    let (status, _, problem) = post(&api, &format!("/projects/{}/sources", Uuid::nil()), &invalid).await;
    assert_eq!(status.as_u16(), 422, "{problem}");
}

#[tokio::test]
async fn concurrent_decisions_are_both_kept() {
    let (world, announced, path) = imported().await;
    let (api, ids) = (api(&world), [0, 1].map(|n| announced.files[n].file_id.to_string()));
    let [first, second] =
        [("A", &ids[0]), ("B", &ids[1])].map(|(name, id)| json!({ id: { "database": name } }));
    let (one, other) = tokio::join!(say(&api, &path, &first), say(&api, &path, &second));
    assert_eq!((one.0, other.0), (204, 204));
    let names: Vec<Value> = sources(&api, &path).await.into_iter().map(|[name, ..]| name).collect();
    assert_eq!(names, ["A", "B"]);
}

/// Each record is counted once, as a study or as not imported, and each study once, as a duplicate or as remaining.
#[track_caller]
fn closes(flow: &Value) {
    let number = |of: &Value, key: &str| of[key].as_u64().unwrap();
    let lines = flow["sources"].as_array().unwrap();
    for sums in lines.iter().map(|line| &line["found"]).chain([&flow["total"]]) {
        assert_eq!(number(sums, "records"), number(sums, "unread") + number(sums, "studies"), "{flow}");
        assert_eq!(number(sums, "studies"), number(sums, "duplicates") + number(sums, "left"), "{flow}");
    }
    for key in ["files", "records", "unread", "studies", "duplicates", "left"] {
        let all: u64 = lines.iter().map(|line| number(&line["found"], key)).sum();
        assert_eq!(all, number(&flow["total"], key), "{key}: {flow}");
    }
}

#[tokio::test]
async fn prisma_counts_account_for_every_record() {
    let (world, announced, path) = imported().await;
    let api = api(&world);
    let names = [("MEDLINE", 0), ("Embase", 1)];
    for (name, index) in names {
        let id = announced.files[index].file_id.to_string();
        assert_eq!(say(&api, &path, &json!({ id: { "database": name } })).await.0, 204);
    }
    world.announce(&["later.ris"]).await;
    let flow = get(&api, &prisma()).await;
    closes(&flow);
    let total =
        ["files", "records", "unread", "studies", "duplicates", "left"].map(|key| flow["total"][key].clone());
    assert_eq!(total, [2, 5, 1, 4, 1, 3].map(|number| json!(number)));
    assert_eq!((&flow["searches"], &flow["open_searches"]), (&json!(1), &json!(1)));
    let said = "5 records were identified from 2 databases (Embase (n = 2); MEDLINE (n = 3)). Before screening, 1 duplicate and 1 record \
                that could not be read were removed; 3 records were left.";
    assert_eq!(flow["sentence"], said);
    assert_eq!(flow["drawing"]["boxes"][2]["lines"][0]["text"], "Records to be screened (n = 3)");
    let lines = flow["sources"].as_array().unwrap();
    let told = lines.iter().map(|line| (&line["source"]["database"], &line["found"]["duplicates"]));
    assert_eq!(told.collect::<Vec<_>>(), [(&json!("Embase"), &json!(1)), (&json!("MEDLINE"), &json!(0))]);
    let other = ProjectId::from_uuid(Uuid::from_u128(9));
    assert_eq!(get(&api, &format!("/projects/{other}/prisma")).await["total"]["records"], 0);
    assert_eq!(refusal(&api, "/projects/x/prisma").await.0, 400);
}

/// Returns an imported search whose first file has the source MEDLINE, and its path.
async fn of_medline() -> (World, AnnouncedSearch, String) {
    let (world, announced, path) = imported().await;
    let id = announced.files[0].file_id.to_string();
    assert_eq!(say(&api(&world), &path, &json!({ id: { "database": "MEDLINE" } })).await.0, 204);
    (world, announced, path)
}

/// Corrects the unreadable record of a search's only file; returns the repairing search.
async fn correct_record(world: &World, api: &Router, path: &str, id: &str) -> SearchId {
    let corrected = "TY  - JOUR\nTI  - Bad title\nER  - \n";
    let replacement = json!({ "name": "corrected.ris", "size_bytes": 100 });
    let asked = json!({ "files": [{ "file_id": id, "replacement": replacement, "records": [3] }] });
    let before = get(api, &prisma()).await;
    let (status, _, repair) = post(api, &format!("{path}/repair"), &asked).await;
    assert_eq!(status.as_u16(), 201, "{repair}");
    assert_eq!(
        get(api, &prisma()).await["total"]["unread"],
        before["total"]["unread"],
        "the correction is not read yet"
    );
    let form = serde_json::from_value(repair["files"][0]["upload"].clone()).unwrap();
    world.upload_with(&form, 1, corrected).await;
    world.run().await;
    SearchId::from_uuid(repair["search_id"].as_str().unwrap().parse().unwrap())
}

/// A corrected record counts as identified once, at the source of its file.
#[tokio::test]
async fn corrected_record_counts_once_at_its_source() {
    let (world, announced, path) = of_medline().await;
    let (api, id) = (api(&world), announced.files[0].file_id.to_string());
    let search = correct_record(&world, &api, &path, &id).await;
    let flow = get(&api, &prisma()).await;
    closes(&flow);
    assert_eq!((&flow["total"]["records"], &flow["total"]["unread"]), (&json!(5), &json!(0)), "{flow}");
    let medline =
        flow["sources"].as_array().unwrap().iter().find(|line| line["source"]["database"] == "MEDLINE");
    assert_eq!(medline.unwrap()["found"]["records"], 3, "including the corrected record: {flow}");
    assert_eq!(sources(&api, &path_of(search)).await[0][0], "MEDLINE");
}

/// The repairing file has the same source, which stays after the other search is deleted.
#[tokio::test]
async fn source_of_deleted_search_lasts_for_its_repair() {
    let (world, announced, path) = of_medline().await;
    let (api, id) = (api(&world), announced.files[0].file_id.to_string());
    let search = correct_record(&world, &api, &path, &id).await;
    for (deleted, told) in [(announced.search_id, 1), (search, 0)] {
        let answer = world.functions.start_upload.delete(&ProjectAccess::All, deleted).await.unwrap();
        assert_eq!(answer, Deletion::Accepted);
        world.run().await;
        assert_eq!(records_of_medline(&world), told);
        if told == 1 {
            assert_eq!(sources(&api, &path_of(search)).await[0][0], "MEDLINE");
        }
    }
}

/// Returns the number of stored records that mention MEDLINE.
fn records_of_medline(world: &World) -> i64 {
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    let kept = "SELECT count(*) FROM record WHERE body LIKE '%MEDLINE%'";
    database.query_row(kept, [], |row| row.get(0)).unwrap()
}

/// The sources set for a search are deleted with it.
#[tokio::test]
async fn deleted_search_is_not_reported() {
    let (world, announced, _) = of_medline().await;
    let api = api(&world);
    world.functions.start_upload.delete(&ProjectAccess::All, announced.search_id).await.unwrap();
    world.run().await;
    let flow = get(&api, &prisma()).await;
    assert_eq!((&flow["total"]["records"], &flow["sources"]), (&json!(0), &json!([])));
    assert_eq!(records_of_medline(&world), 0);
}
