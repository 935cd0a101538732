//! Decisions about many pairs at once, their undo, and the history of a review.

use std::time::Duration;

use axum::Router;
use contracts::sample;
use imports::{Job, JobState, ProjectId, SearchId};
use outbox::{View, WriteViews};
use serde_json::{Value, json};
use service::study_view::RecordPlace;
use service::{BulkRequest, Deletion, NewFile, NewSearch, ProjectAccess, Rule, ScopePlace};
use uuid::Uuid;

use super::duplicates::search;
use super::{api, get, path_of, post, refusal};
use crate::world::World;

const ZINC: &str = "TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - Berg, A.\nPY  - 2020\n\
                    DO  - 10.1000/zinc\nER  - \n";
const IRON: &str = "TY  - JOUR\nTI  - Iron tablets in tired marathon runners of both sexes\nAU  - Eisen, F.\n\
                    PY  - 2001\nDO  - 10.1000/iron\nSP  - 25\nER  - \n";
/// Another export of the same work, with another page.
const IRON_AGAIN: &str = "TY  - JOUR\nTI  - Iron tablets in tired marathon runners of both sexes\nAU  - Eisen, F.\n\
                          PY  - 2001\nDO  - 10.1000/iron\nSP  - 125\nER  - \n";

fn of_project(path: &str) -> String {
    format!("/projects/{}/{path}", Uuid::nil())
}

/// Returns a world with a certain and an uncertain pair, and the searches of the earlier and the later studies.
async fn two_pairs() -> (World, SearchId, SearchId) {
    let world = World::new();
    let first = search(&world, "a.ris", &format!("{ZINC}\n{IRON}")).await;
    let second = search(&world, "b.ris", &format!("{ZINC}\n{IRON_AGAIN}")).await;
    (world, first, second)
}

/// Decides by a rule until all pairs are examined; returns the number of decisions.
async fn bulk(world: &World, api: &Router, id: u128, rule: &str, database: Option<&str>) -> u64 {
    let (mut decided, mut after) = (0, Value::Null);
    loop {
        let asked = json!({ "id": Uuid::from_u128(id), "rule": rule, "database": database, "after": after });
        let (status, _, step) = post(api, &of_project("duplicates/bulk"), &asked).await;
        assert_eq!(status.as_u16(), 200, "{step}");
        decided += step["decided"].as_u64().unwrap();
        after = step["next"].clone();
        if after.is_null() {
            world.run().await;
            return decided;
        }
    }
}

/// Returns the reviewers' decisions: same pairs by a reviewer, likely or possible pairs, and progress.
async fn counts(api: &Router) -> [u64; 4] {
    let progress = get(api, &of_project("duplicates/progress")).await;
    let said = get(api, &of_project("prisma")).await["total"]["duplicates_by"]["said"].clone();
    [&said, &progress["decided"], &progress["open"], &progress["certain"]]
        .map(|number| number.as_u64().unwrap())
}

async fn undo(world: &World, api: &Router, id: u128) -> u16 {
    let path = of_project(&format!("duplicates/bulk/{}/undo", Uuid::from_u128(id)));
    let status = post(api, &path, &json!({})).await.0.as_u16();
    world.run().await;
    status
}

/// Decides about a record of the second search and the same record of the first.
async fn decide(
    world: &World,
    api: &Router,
    decision: &Value,
    record: u64,
    searches: impl IntoIterator<Item = SearchId>,
) -> (u16, Value) {
    let mut studies = Vec::new();
    for search_id in searches {
        let files = get(api, &path_of(search_id)).await["files"].clone();
        studies.push(json!({ "search_id": search_id, "file_id": files[0]["file_id"], "record": record }));
    }
    let mut body = decision.clone();
    body["studies"] = json!(studies);
    let (status, _, answer) = post(api, &of_project("duplicates/decisions"), &body).await;
    world.run().await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn certain_pairs_are_accepted_together_and_undone_together() {
    let (world, ..) = two_pairs().await;
    let api = api(&world);
    assert_eq!(counts(&api).await, [0, 0, 1, 1]);
    assert_eq!(bulk(&world, &api, 1, "certain", None).await, 1);
    assert_eq!(counts(&api).await, [1, 1, 1, 0]);
    assert_eq!(bulk(&world, &api, 1, "certain", None).await, 0, "a repeated request changes nothing");
    assert_eq!(bulk(&world, &api, 2, "same_doi", None).await, 1);
    assert_eq!(counts(&api).await, [2, 2, 0, 0]);
    assert_eq!((undo(&world, &api, 1).await, undo(&world, &api, 1).await), (202, 204));
    assert_eq!(counts(&api).await, [1, 1, 0, 1]);
    assert_eq!((undo(&world, &api, 2).await, undo(&world, &api, 3).await), (202, 404));
    assert_eq!(counts(&api).await, [0, 0, 1, 1]);
    let actions = get(&api, &of_project("duplicates/bulk")).await["items"].clone();
    let rules =
        actions.as_array().unwrap().iter().map(|item| (item["rule"].clone(), item["decided"].clone()));
    assert_eq!(rules.collect::<Vec<_>>(), [(json!("same_doi"), json!(1)), (json!("certain"), json!(1))]);
    assert!(actions[0]["undone_at"].is_string(), "{actions}");
}

/// Otherwise, no rule could decide the rest of the review.
#[tokio::test]
async fn damaged_study_does_not_prevent_bulk_decisions() {
    let (world, ..) = two_pairs().await;
    let api = api(&world);
    let database = rusqlite::Connection::open(world.store().dir().join("search-import.sqlite")).unwrap();
    // The first source has the originals.
    let damage = |source: &str, record: i64| {
        let sql = format!(
            "UPDATE study SET study = '{{', packed = NULL WHERE record = ?1 AND source = (SELECT {source}(source) FROM study)"
        );
        assert_eq!(database.execute(&sql, [record]).unwrap(), 1);
    };
    damage("min", 2);
    assert_eq!(bulk(&world, &api, 1, "same_doi", None).await, 1, "only the pair whose original is readable");
    assert_eq!((undo(&world, &api, 1).await, undo(&world, &api, 1).await), (202, 204));
    damage("max", 1);
    assert_eq!(bulk(&world, &api, 2, "certain", None).await, 0, "the certain study is damaged");
}

/// Clients choose the ids of their actions.
#[tokio::test]
async fn bulk_action_of_another_review_changes_nothing() {
    let (world, _, _) = two_pairs().await;
    let api = api(&world);
    assert_eq!(bulk(&world, &api, 1, "certain", None).await, 1);
    let expected = counts(&api).await;
    let other = Uuid::from_u128(77);
    for name in ["a.ris", "b.ris"] {
        let files = vec![NewFile { name: name.to_owned(), size_bytes: 100 }];
        let request = NewSearch { name: "Other".to_owned(), files };
        let announced =
            world.functions.start_upload.create(ProjectId::from_uuid(other), &request).await.unwrap();
        world.upload(&announced, 0, ZINC).await;
        world.run().await;
        world.host.advance(Duration::from_secs(1));
    }
    let asked = json!({ "id": Uuid::from_u128(1), "rule": "certain" });
    let (status, _, step) = post(&api, &format!("/projects/{other}/duplicates/bulk"), &asked).await;
    assert_eq!((status.as_u16(), &step["decided"]), (200, &json!(1)), "{step}");
    world.run().await;
    assert_eq!(counts(&api).await, expected);
    assert_eq!(undo(&world, &api, 1).await, 202);
    assert_eq!(counts(&api).await[1], 0, "the decisions of the own review are undone");
}

/// The undo restores a reviewer's earlier decision, and keeps a later one.
#[tokio::test]
async fn undo_leaves_the_decisions_of_others() {
    let (world, first, second) = two_pairs().await;
    let api = api(&world);
    let different = json!({ "decision": "different" });
    assert_eq!(decide(&world, &api, &different, 2, [second, first]).await.0, 202);
    assert_eq!(counts(&api).await, [0, 1, 0, 1]);
    // The rule leaves the decided pair as it is.
    assert_eq!(bulk(&world, &api, 1, "same_doi", None).await, 1);
    assert_eq!(counts(&api).await, [1, 2, 0, 0]);
    assert_eq!(decide(&world, &api, &different, 1, [second, first]).await.0, 202);
    assert_eq!(counts(&api).await, [0, 2, 0, 0]);
    assert_eq!(undo(&world, &api, 1).await, 202);
    assert_eq!(counts(&api).await, [0, 2, 0, 0]);
}

#[tokio::test]
async fn studies_of_the_preferred_database_are_kept() {
    let (world, _, second) = two_pairs().await;
    let api = api(&world);
    let file = get(&api, &path_of(second)).await["files"][0]["file_id"].clone();
    let sources = json!({ "files": [{ "file_id": file, "source": { "database": "Embase" } }] });
    assert_eq!(post(&api, &format!("{}/sources", path_of(second)), &sources).await.0.as_u16(), 204);
    assert_eq!(bulk(&world, &api, 1, "preferred_source", Some("EMBASE")).await, 2);
    let kept = |pairs: &Value| -> Vec<Value> {
        pairs["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|pair| pair["study"]["duplicate"]["search_id"].clone())
            .collect()
    };
    let path = of_project("duplicates");
    assert_eq!(kept(&get(&api, &path).await), [json!(second), json!(second)]);
    assert_eq!(undo(&world, &api, 1).await, 202);
    assert!(!kept(&get(&api, &path).await).contains(&json!(second)));
    let asked = json!({ "id": Uuid::from_u128(2), "rule": "preferred_source" });
    assert_eq!(post(&api, &of_project("duplicates/bulk"), &asked).await.0.as_u16(), 422);
}

/// Decides by a rule from a position on; returns the number of decisions.
async fn continued(world: &World, rule: Rule, after: ScopePlace) -> u64 {
    let request = BulkRequest { id: Uuid::from_u128(1), rule, database: None, after: Some(after) };
    let project = ProjectId::from_uuid(Uuid::nil());
    let step = world.functions.start_upload.decide_in_bulk(project, &request, "somebody").await.unwrap();
    let step = step.unwrap();
    assert_eq!(step.next, None);
    step.decided
}

/// Returns the position after the first record of an import.
async fn after_first_record(world: &World, import: SearchId) -> ScopePlace {
    let job = world.jobs().job(import).await.unwrap().unwrap();
    ScopePlace::within(&job, RecordPlace { position: 0, record: 1 })
}

#[tokio::test]
async fn bulk_decision_stays_in_its_import() {
    let (world, _, second) = two_pairs().await;
    let place = after_first_record(&world, second).await;
    search(&world, "c.ris", "TY  - JOUR\nTI  - Copper\nER  - \n").await;
    assert_eq!(continued(&world, Rule::Certain, place).await, 0, "the certain pair is before the position");
    assert_eq!(continued(&world, Rule::SameDoi, place).await, 1);
}

#[tokio::test]
async fn bulk_decision_continues_after_deleted_import() {
    let (world, ..) = two_pairs().await;
    let third = search(&world, "c.ris", "TY  - JOUR\nTI  - Copper\nER  - \n").await;
    let place = after_first_record(&world, third).await;
    let deletion = world.functions.start_upload.delete(&ProjectAccess::All, third).await.unwrap();
    assert_eq!(deletion, Deletion::Accepted);
    world.run().await;
    assert_eq!(continued(&world, Rule::Certain, place).await, 1, "the pair of the first record");
}

/// Each request reads up to 1,000 imports, and a bulk decision continues after them.
#[tokio::test]
async fn reads_of_many_imports_are_bounded() {
    let (world, ..) = two_pairs().await;
    // These imports are newer than the two imports with studies.
    let (mut views, project_id) = (Vec::new(), ProjectId::from_uuid(Uuid::nil()));
    for _ in 0..1_100 {
        let job = testing::search::job(&*world.host, sample::partition(&*world.host), 1, JobState::Completed);
        views.push(View::from(&Job { project_id, ..job }));
    }
    for views in views.chunks(100) {
        world.store().write(views).await.unwrap();
    }
    let api = api(&world);
    let mut asked = json!({ "id": Uuid::from_u128(1), "rule": "certain" });
    let (status, _, step) = post(&api, &of_project("duplicates/bulk"), &asked).await;
    assert_eq!((status.as_u16(), &step["decided"]), (200, &json!(0)), "{step}");
    asked["after"] = step["next"].clone();
    assert!(asked["after"].is_string(), "{step}");
    let (status, _, step) = post(&api, &of_project("duplicates/bulk"), &asked).await;
    assert_eq!((status.as_u16(), &step), (200, &json!({ "decided": 1, "next": null })));
    let too_many = (422, "the review has more than 1000 imports".to_owned());
    for path in ["duplicates/progress", "prisma"] {
        assert_eq!(refusal(&api, &of_project(path)).await, too_many, "{path}");
    }
    let (status, _, problem) = post(&api, &of_project("exports"), &json!({})).await;
    assert_eq!(status.as_u16(), 422, "not only the response of the download: {problem}");
    let date = json!({ "searched_on": "2026-05-17" });
    let (status, _, problem) = post(&api, &of_project("sources"), &date).await;
    assert_eq!((status.as_u16(), problem["detail"].as_str().unwrap()), (422, too_many.1.as_str()));
}

#[tokio::test]
async fn second_reviewer_learns_who_decided_first() {
    let (world, first, second) = two_pairs().await;
    let api = api(&world);
    let if_undecided = |decision: &str| json!({ "decision": decision, "if_undecided": true });
    assert_eq!(decide(&world, &api, &if_undecided("same"), 2, [second, first]).await.0, 202);
    assert_eq!(decide(&world, &api, &if_undecided("same"), 2, [first, second]).await.0, 204, "it agrees");
    let (status, problem) = decide(&world, &api, &if_undecided("different"), 2, [second, first]).await;
    assert_eq!((status, &problem["decided"]["decision"]), (409, &json!("same")), "{problem}");
    assert!(problem["decided"]["at"].is_string() && problem["decided"]["by"] == "somebody", "{problem}");
    // A reviewer who has seen the decision can change it.
    assert_eq!(decide(&world, &api, &json!({ "decision": "different" }), 2, [second, first]).await.0, 202);
}

/// A list may show a decision that another reviewer has replaced since.
#[tokio::test]
async fn undo_of_replaced_decision_changes_nothing() {
    let (world, first, second) = two_pairs().await;
    let api = api(&world);
    let latest = async |api: &Router| {
        get(api, &of_project("duplicates/decisions?limit=1")).await["items"][0]["at"].clone()
    };
    let undo = |at: &Value| json!({ "decision": "undo", "undoes": at });
    assert_eq!(decide(&world, &api, &json!({ "decision": "different" }), 2, [second, first]).await.0, 202);
    let replaced = latest(&api).await;
    assert_eq!(decide(&world, &api, &json!({ "decision": "same" }), 2, [second, first]).await.0, 202);
    let current = latest(&api).await;
    let (status, problem) = decide(&world, &api, &undo(&replaced), 2, [first, second]).await;
    assert_eq!((status, &problem["decided"]["decision"]), (409, &json!("same")), "{problem}");
    assert_eq!(problem["decided"]["at"], current);
    assert_eq!(decide(&world, &api, &undo(&current), 2, [first, second]).await.0, 202);
    assert_eq!(decide(&world, &api, &undo(&current), 2, [first, second]).await.0, 204, "it is repeated");

    let unkeep = |at: &Value| json!({ "decision": "unkeep", "undoes": at });
    assert_eq!(decide(&world, &api, &json!({ "decision": "keep" }), 2, [second]).await.0, 202);
    let kept = latest(&api).await;
    let (status, problem) = decide(&world, &api, &unkeep(&current), 2, [second]).await;
    assert_eq!((status, &problem["decided"]["decision"]), (409, &json!("keep")), "{problem}");
    assert_eq!(decide(&world, &api, &unkeep(&kept), 2, [second]).await.0, 202);
    let new = json!({ "decision": "same", "undoes": kept });
    assert_eq!(decide(&world, &api, &new, 2, [second, first]).await.0, 422);
}

#[tokio::test]
async fn study_is_kept_and_confirmed_in_one_request() {
    let (world, first, second) = two_pairs().await;
    let api = api(&world);
    assert_eq!(decide(&world, &api, &json!({ "decision": "keep" }), 2, [second, first]).await.0, 202);
    assert_eq!(counts(&api).await, [1, 1, 0, 1]);
}

#[tokio::test]
async fn history_lists_every_change_once() {
    let (world, first, second) = two_pairs().await;
    let api = api(&world);
    decide(&world, &api, &json!({ "decision": "same" }), 2, [second, first]).await;
    decide(&world, &api, &json!({ "decision": "same" }), 2, [second, first]).await;
    bulk(&world, &api, 1, "certain", None).await;
    undo(&world, &api, 1).await;
    let page = get(&api, &of_project("activity?limit=2")).await;
    let actions = |page: &Value| -> Vec<(Value, Value)> {
        page["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| (item["number"].clone(), item["action"].clone()))
            .collect()
    };
    assert_eq!(actions(&page), [(json!(3), json!("undid_bulk")), (json!(2), json!("decided_in_bulk"))]);
    let next = of_project(&format!("activity?limit=2&after={}", page["next"].as_str().unwrap()));
    let page = get(&api, &next).await;
    assert_eq!((actions(&page), &page["next"]), (vec![(json!(1), json!("decided"))], &Value::Null));
    assert_eq!(page["items"][0]["by"], "somebody");
}
