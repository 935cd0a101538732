//! Duplicates across the searches of a project, and the decisions of reviewers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use embedded::{Call, Intercept, Phase};
use imports::queues::{PARSE, SAGA, UPLOADS};
use imports::{
    CompareStudies, Duplicate, FileRef, Mark, ParsedFile, ProjectId, ReadStudies, Reason, SearchId, StudyRef,
    Tier,
};
use serde_json::{Value, json};
use service::marking::DuplicateMarking;
use service::{Deletion, ProjectAccess};
use tokio::sync::Notify;
use uuid::Uuid;

use super::{api, get, path_of, post, refusal};
use crate::world::World;

const ZINC: &str = "TY  - JOUR\nTI  - Zinc for the common cold in children\nAU  - Berg, A.\nPY  - 2020\n\
                    DO  - 10.1000/zinc\nER  - \n";
/// The same study as another database exports it, and a second study.
const AGAIN: &str = "TY  - JOUR\nTI  - Iron for the tired\nAU  - Eisen, F.\nPY  - 2001\nER  - \n\n\
                     TY  - JOUR\nTI  - ZINC for the common cold in children.\nAU  - Berg, Anna\nPY  - 2020\nER  - \n";

fn of_project(path: &str) -> String {
    format!("/projects/{}/{path}", Uuid::nil())
}

pub(super) async fn search(world: &World, name: &str, content: &str) -> SearchId {
    let announced = world.announce(&[name]).await;
    world.upload(&announced, 0, content).await;
    world.run().await;
    // The searches need different times, because neither of two that are announced simultaneously is earlier.
    world.host.advance(Duration::from_secs(1));
    announced.search_id
}

/// Returns the pairs of a list: search and id of the later study and of the study that it repeats, and the certainty.
async fn pairs(api: &Router, path: &str) -> Vec<(Value, Value, Value, Value, Value)> {
    let (items, _) = super::all(api, path).await;
    let pair = |item: &Value| {
        let mark = &item["study"]["duplicate"];
        assert_eq!(item["original"]["id"], mark["of"], "{item}");
        (
            item["search_id"].clone(),
            item["study"]["id"].clone(),
            mark["search_id"].clone(),
            mark["of"].clone(),
            mark["tier"].clone(),
        )
    };
    items.iter().map(pair).collect()
}

fn pair(
    later: SearchId,
    id: &str,
    earlier: SearchId,
    of: &str,
    tier: &str,
) -> (Value, Value, Value, Value, Value) {
    (json!(later), json!(id), json!(earlier), json!(of), json!(tier))
}

/// Makes a decision about studies, which are given by their searches and records.
async fn decide(world: &World, api: &Router, word: &str, studies: &[(SearchId, u64)]) -> (u16, Value) {
    let mut named = Vec::new();
    for (search_id, record) in studies {
        let files = get(api, &path_of(*search_id)).await["files"].clone();
        named.push(json!({ "search_id": search_id, "file_id": files[0]["file_id"], "record": record }));
    }
    let body = json!({ "decision": word, "studies": named });
    let (status, _, answer) = post(api, &of_project("duplicates/decisions"), &body).await;
    world.run().await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn study_repeats_earlier_search_in_any_reading_order() {
    for order in [[0, 1], [1, 0]] {
        let world = World::new();
        let mut searches = Vec::new();
        for content in [ZINC, AGAIN] {
            let announced = world.announce(&["a.ris"]).await;
            world.upload(&announced, 0, content).await;
            searches.push(announced.search_id);
            world.deliver_all(&[&UPLOADS, &SAGA]).await;
            world.host.advance(Duration::from_secs(1));
        }
        let mut commands = world.take(&PARSE).await;
        commands.sort_by_key(|command| {
            let message = messages::Message::decode(&command.delivery.body).unwrap();
            searches.iter().position(|search| *search == message.partition)
        });
        for index in order {
            world.deliver(&PARSE, &commands[index..=index]).await;
        }
        world.run().await;
        let (api, expected) = (api(&world), [pair(searches[1], "0-2", searches[0], "0-1", "likely")]);
        assert_eq!(pairs(&api, &of_project("duplicates")).await, expected, "{order:?}");
        assert_eq!(pairs(&api, &format!("{}/duplicates", path_of(searches[1]))).await, expected);
        assert_eq!(pairs(&api, &of_project("duplicates?least=possible&most=likely")).await, expected);
        assert_eq!(pairs(&api, &of_project("duplicates?least=possible&most=possible")).await, []);
        assert_eq!(refusal(&api, &of_project("duplicates?most=some")).await.0, 400);
        assert_eq!(pairs(&api, &format!("{}/duplicates", path_of(searches[0]))).await, []);
        let flow = get(&api, &of_project("prisma")).await;
        assert_eq!((&flow["total"]["duplicates"], &flow["total"]["left"]), (&json!(1), &json!(2)));
        assert_eq!(flow["total"]["duplicates_by"], json!({ "certain": 0, "likely": 1, "said": 0 }));
    }
}

#[tokio::test]
async fn deleting_search_moves_duplicates_to_next_study() {
    let world = World::new();
    let (first, second) = (search(&world, "a.ris", ZINC).await, search(&world, "b.ris", AGAIN).await);
    let third = search(&world, "c.ris", ZINC).await;
    let (api, all) = (api(&world), of_project("duplicates"));
    assert_eq!(
        pairs(&api, &all).await,
        [pair(third, "0-1", first, "0-1", "certain"), pair(second, "0-2", first, "0-1", "likely")]
    );
    let deletion = world.functions.start_upload.delete(&ProjectAccess::All, first).await.unwrap();
    assert!(matches!(deletion, Deletion::Accepted), "{deletion:?}");
    world.run().await;
    assert_eq!(pairs(&api, &all).await, [pair(third, "0-1", second, "0-2", "likely")]);
}

/// Blocks before the first lookup of studies that share a key.
#[derive(Default)]
struct StalledLookup {
    has_stalled: AtomicBool,
    stalled: Notify,
    resumed: Notify,
}

#[async_trait]
impl Intercept for StalledLookup {
    async fn step(&self, call: Call, phase: Phase) {
        if (call, phase) == (Call::StudiesSharing, Phase::Before)
            && !self.has_stalled.swap(true, Ordering::SeqCst)
        {
            self.stalled.notify_one();
            self.resumed.notified().await;
        }
    }
}

/// The worker knows a file that was deleted while it was blocked, and finds a newer file: no mark refers to the deleted
/// file.
#[tokio::test]
async fn stalled_worker_leaves_no_mark_of_deleted_study() {
    let world = World::new();
    let first = search(&world, "a.ris", ZINC).await;
    let file = world.store().parsed(first).await.unwrap()[0].file_id;
    let still = Arc::new(StalledLookup::default());
    let store = Arc::new(world.store().with_intercept(still.clone()));
    let late = DuplicateMarking { stored: store.clone(), compare: store.clone(), records: store };
    let meanwhile = async {
        still.stalled.notified().await;
        let deletion = world.functions.start_upload.delete(&ProjectAccess::All, first).await.unwrap();
        assert!(matches!(deletion, Deletion::Accepted), "{deletion:?}");
        world.run().await;
        search(&world, "b.ris", ZINC).await;
        still.resumed.notify_one();
    };
    let project = ProjectId::from_uuid(Uuid::nil());
    let (marked, ()) =
        tokio::join!(late.file_added(project, FileRef::new(first, file), 0, || false), meanwhile);
    assert_eq!(marked.unwrap(), None);
    assert_eq!(pairs(&api(&world), &of_project("duplicates")).await, []);
}

/// A worker was killed between storing a mark and checking that the study it refers to still exists. The decision of a
/// reviewer does not depend on shared keys.
#[tokio::test]
async fn decision_marks_study_without_shared_key() {
    let world = World::new();
    let (first, second) = (search(&world, "a.ris", ZINC).await, search(&world, "b.ris", AGAIN).await);
    let alone = search(&world, "c.ris", "TY  - JOUR\nTI  - Copper\nER  - \n").await;
    let (api, all) = (api(&world), of_project("duplicates"));
    let (by_rules, project) =
        (pair(second, "0-2", first, "0-1", "likely"), ProjectId::from_uuid(Uuid::nil()));
    let store = Arc::new(world.store().clone());
    let duplicates =
        DuplicateMarking { stored: store.clone(), compare: store.clone(), records: store.clone() };
    let file = store.parsed(second).await.unwrap()[0].clone();
    let mark = async |at: StudyRef, duplicate: Option<Duplicate>| {
        let revision = store.revise(project).await.unwrap();
        store.mark(revision, &[Mark { at, duplicate }]).await.unwrap();
    };
    let mark_again = async |file: &ParsedFile| {
        let of = FileRef::new(file.search_id, file.file_id);
        let marked = duplicates.file_added(project, of, 0, || false).await;
        assert_eq!(marked.unwrap(), None);
        pairs(&api, &all).await
    };
    let (position, tier, reason) = (0, Tier::Certain, Reason::Said);
    let left = Duplicate { search_id: second, file_id: file.file_id, position, record: 2, tier, reason };
    mark(file.study(1), Some(left)).await;
    assert_eq!(pairs(&api, &all).await.len(), 2);
    assert_eq!(mark_again(&file).await, [by_rules]);
    assert_eq!(decide(&world, &api, "same", &[(second, 1), (alone, 1)]).await.0, 202);
    let with_said = pairs(&api, &all).await;
    assert_eq!(with_said.len(), 2);
    // The file with the later study of the pair.
    let file = store.parsed(alone).await.unwrap()[0].clone();
    mark(file.study(1), None).await;
    assert_eq!(pairs(&api, &all).await.len(), 1);
    assert_eq!(mark_again(&file).await, with_said);
}

#[tokio::test]
async fn decision_overrides_rules_and_outlives_imports() {
    let world = World::new();
    let (first, second) = (search(&world, "a.ris", ZINC).await, search(&world, "b.ris", AGAIN).await);
    let (api, all) = (api(&world), of_project("duplicates"));
    let marked = [pair(second, "0-2", first, "0-1", "likely")];
    assert_eq!(pairs(&api, &all).await, marked);
    let both = [(first, 1), (second, 2)];
    assert_eq!(decide(&world, &api, "different", &both).await.0, 202);
    assert_eq!(pairs(&api, &all).await, []);
    assert_eq!(decide(&world, &api, "different", &[both[1], both[0]]).await.0, 204, "it holds");
    // A further copy is marked as a duplicate of one of them and does not affect the other.
    let third = search(&world, "c.ris", ZINC).await;
    assert_eq!(pairs(&api, &all).await, [pair(third, "0-1", first, "0-1", "certain")]);
    assert_eq!(decide(&world, &api, "undo", &both).await.0, 202);
    let all_three = [pair(third, "0-1", first, "0-1", "certain"), marked[0].clone()];
    assert_eq!(pairs(&api, &all).await, all_three);
    // A pair that no rule would find.
    assert_eq!(decide(&world, &api, "same", &[(second, 1), (first, 1)]).await.0, 202);
    let flow = get(&api, &of_project("prisma")).await;
    assert_eq!(flow["total"]["duplicates_by"], json!({ "certain": 1, "likely": 1, "said": 1 }));
    assert_eq!(decide(&world, &api, "keep", &[(third, 1)]).await.0, 202);
    let found = pairs(&api, &all).await;
    assert!(
        found.len() == 3 && found.iter().all(|(.., of, id, _)| (of, id) == (&json!(third), &json!("0-1"))),
        "{found:?}"
    );
    let (said, sizes) = super::all(&api, &of_project("duplicates/decisions?limit=3")).await;
    let words: Vec<_> = said.iter().map(|said| said["decision"].as_str().unwrap()).collect();
    assert_eq!((words, sizes), (vec!["keep", "same", "undo", "different"], vec![3, 1]));
    assert!(said.iter().all(|said| said["by"] == "somebody"), "{said:?}");
}

/// Three records with only a title are possible duplicates. A decision that one of them differs from another study
/// changes no mark, whether or not the worker has read that study.
#[tokio::test]
async fn decision_about_another_study_changes_no_possible_duplicate() {
    let world = World::new();
    let editorial = "TY  - JOUR\nTI  - Editorial\nER  - \n";
    let first = search(&world, "a.ris", editorial).await;
    let second = search(&world, "b.ris", editorial).await;
    let third = search(&world, "c.ris", editorial).await;
    let other = search(&world, "d.ris", ZINC).await;
    let (api, all) = (api(&world), of_project("duplicates?least=possible&most=possible"));
    let expected = pairs(&api, &all).await;
    assert_eq!(expected.len(), 2, "{expected:?}");
    assert!(expected.contains(&pair(second, "0-1", first, "0-1", "possible")), "{expected:?}");
    assert!(expected.contains(&pair(third, "0-1", first, "0-1", "possible")), "{expected:?}");
    for decided in [first, second] {
        assert_eq!(decide(&world, &api, "different", &[(decided, 1), (other, 1)]).await.0, 202);
        assert_eq!(pairs(&api, &all).await, expected);
    }
    let store = Arc::new(world.store().clone());
    let marking = DuplicateMarking { stored: store.clone(), compare: store.clone(), records: store.clone() };
    for search_id in [first, second, third] {
        let file_id = store.parsed(search_id).await.unwrap()[0].file_id;
        let project = ProjectId::from_uuid(Uuid::nil());
        let marked = marking.file_added(project, FileRef { search_id, file_id }, 0, || false).await;
        assert_eq!(marked.unwrap(), None);
        assert_eq!(pairs(&api, &all).await, expected);
    }
}

#[tokio::test]
async fn invalid_requests_are_refused() {
    let world = World::new();
    let (first, second) = (search(&world, "a.ris", ZINC).await, search(&world, "b.ris", AGAIN).await);
    let api = api(&world);
    for (word, studies, status, why) in [
        ("same", vec![(first, 1)], 422, "to two studies"),
        ("unkeep", vec![(first, 1), (second, 1)], 422, "\"unkeep\" to one"),
        ("same", vec![(first, 1), (second, 1), (second, 2)], 422, "to two studies"),
        ("same", vec![], 422, "to two studies"),
        ("same", vec![(first, 1), (first, 1)], 422, "the same as itself"),
        ("same", vec![(first, 1), (second, 3)], 404, "studies[1]"),
        ("merge", vec![(first, 1)], 400, "unknown variant"),
    ] {
        let (answered, problem) = decide(&world, &api, word, &studies).await;
        let detail = problem["detail"].as_str().unwrap();
        assert!(answered == status && detail.contains(why), "{word} {studies:?}: {answered} {detail}");
    }
    for path in ["duplicates?least=sure", "duplicates?after=x", "duplicates/decisions?limit=0"] {
        assert_eq!(refusal(&api, &of_project(path)).await.0, 400, "{path}");
    }
    assert!(get(&api, &of_project("duplicates/decisions")).await["items"].as_array().unwrap().is_empty());
}

/// Pages may end anywhere, including between two searches.
#[tokio::test]
async fn pages_of_project_contain_each_pair_once() {
    let world = World::new();
    let record =
        |n: u32| ZINC.replace("Zinc", &format!("Zinc number {n}")).replace("zinc", &format!("zinc{n}"));
    let file: String = (1..=3).map(record).collect();
    for name in ["a.ris", "b.ris", "c.ris", "d.ris"] {
        search(&world, name, &file).await;
    }
    let api = api(&world);
    let (all, _) = super::all(&api, &of_project("duplicates")).await;
    assert_eq!(all.len(), 9);
    for limit in 1..=10 {
        let (items, sizes) = super::all(&api, &of_project(&format!("duplicates?limit={limit}"))).await;
        assert_eq!(items, all, "{limit}: {sizes:?}");
    }
}
