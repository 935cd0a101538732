//! Pages of lists: bounded, stable, and with cursors that are valid for one list only.

use imports::Study;
use references::Reference;
use testing::sample::search::study;

use super::{all, api, get, imported, path_of, refusal, stored};
use crate::world::World;

/// Each page starts where the previous one ended, at any depth.
#[tokio::test]
async fn pages_of_studies_have_no_gaps() {
    let world = World::new();
    let search = stored(&world, study, 3_000).await;
    let (items, sizes) = all(&api(&world), &format!("{}/studies?limit=700", path_of(search))).await;
    assert!(items.iter().map(|item| item["record"].as_u64().unwrap()).eq(1..=3_000));
    assert_eq!(sizes, [700, 700, 700, 700, 200]);
}

/// A client that searches for rare items receives empty pages with cursors, not a request of unbounded duration.
#[tokio::test]
async fn page_scan_is_bounded() {
    let world = World::new();
    let last = |search, file, record| {
        let study = study(search, file, record);
        let title = if record == 10_500 { "Rare" } else { "Common" }.to_owned();
        Study { reference: Reference { title, ..study.reference }, ..study }
    };
    let path = format!("{}/studies", path_of(stored(&world, last, 10_500).await));
    let (items, sizes) = all(&api(&world), &format!("{path}?text=rare&limit=10")).await;
    assert_eq!((items.len(), sizes), (1, vec![0, 1]));
    let page = get(&api(&world), &format!("{path}?text=rare")).await;
    assert!(page["next"].as_str().unwrap().ends_with(".0-10000"), "{page}");
}

#[tokio::test]
async fn cursor_is_rejected_by_other_lists() {
    let (world, _, path) = imported().await;
    let (api, other) = (api(&world), stored(&world, study, 2).await);
    let next = get(&api, &format!("{path}/studies?limit=1")).await["next"].as_str().unwrap().to_owned();
    let not_of_this_list = "after is not the \"next\" of a page of this list";
    for list in [
        format!("{path}/quarantine"),
        format!("{path}/duplicates"),
        format!("{}/studies", path_of(other)),
        path.rsplit_once('/').unwrap().0.to_owned(),
    ] {
        let refused = refusal(&api, &format!("{list}?after={next}")).await;
        assert_eq!(refused, (400, not_of_this_list.to_owned()), "{list}");
    }
    let filtered = get(&api, &format!("{path}/studies?limit=1&duplicates=none&after={next}")).await;
    assert_eq!(filtered["items"][0]["id"], "0-2", "a filter may change on the way");
}

#[tokio::test]
async fn invalid_requests_are_refused_with_reason() {
    let (world, _, path) = imported().await;
    let api = api(&world);
    let long = "a".repeat(256);
    let searches = path.rsplit_once('/').unwrap().0;
    for (path, status, why) in [
        (format!("{path}/studies?limit=0"), 400, "limit is from 1 to 1000"),
        (format!("{path}/studies?limit=1001"), 400, "limit is from 1 to 1000"),
        (format!("{path}/studies?limit=many"), 400, "limit"),
        (format!("{path}/duplicates?limit=201"), 400, "limit is from 1 to 200"),
        (format!("{path}/studies?after=2"), 400, "after"),
        (format!("{path}/studies?duplicates=some"), 400, "duplicates"),
        (format!("{path}/studies?text="), 400, "text has 1 to 255 characters"),
        (format!("{path}/studies?text={long}"), 400, "text has 1 to 255 characters"),
        (format!("{path}/studies?file=a.ris"), 400, "file is not the id of a file"),
        (format!("{path}/quarantine?file={}", uuid::Uuid::nil()), 404, "no such file"),
        (format!("{path}/studies/1"), 400, "the id in the path"),
        (format!("{path}/studies/0-0"), 400, "the id in the path"),
        (format!("{path}/studies/-1-1"), 400, "the id in the path"),
        (format!("{path}/studies/0-99999999999999999999"), 400, "the id in the path"),
        (format!("{path}/studies/0-9223372036854775808"), 404, "no such study"),
        (format!("{path}/studies/0-3"), 404, "no such study"),
        (format!("{path}/studies/2-1"), 404, "no such study"),
        (format!("{path}/quarantine/0-1"), 404, "no such unreadable record"),
        (format!("{searches}?limit=201"), 400, "limit is from 1 to 200"),
        (format!("{searches}?state=Done"), 400, "state is one or several of"),
        (format!("{searches}?state="), 400, "state is one or several of"),
        (format!("{searches}?text="), 400, "text"),
    ] {
        let (found, detail) = refusal(&api, &path).await;
        assert_eq!(found, status, "{path}: {detail}");
        assert!(detail.contains(why) && !detail.contains(". "), "{path}: {detail}");
    }
}
