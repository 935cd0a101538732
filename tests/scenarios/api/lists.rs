//! Pages of lists: bounded, stable, and with cursors that are valid for one list only.

use axum::Router;
use imports::{SearchId, Study};
use references::Reference;
use serde_json::Value;
use service::{Deletion, ProjectAccess};
use testing::search::study;
use uuid::Uuid;

use super::duplicates::search;
use super::{all, api, get, imported, path_of, refusal, stored, titles};
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

/// Imports a file of studies with these titles.
async fn import(world: &World, titles: &[&str]) -> SearchId {
    let records = titles.iter().map(|title| format!("TY  - JOUR\nTI  - {title}\nER  - \n"));
    search(world, "a.ris", &records.collect::<Vec<_>>().join("\n")).await
}

/// Returns a page of one study of the review.
async fn page_after(api: &Router, next: Option<&str>) -> Value {
    let after = next.map(|next| format!("&after={next}")).unwrap_or_default();
    get(api, &format!("/projects/{}/studies?limit=1{after}", Uuid::nil())).await
}

/// Returns the titles of the pages that follow a page.
async fn titles_after(api: &Router, mut page: Value) -> Vec<String> {
    let mut found = Vec::new();
    while let Some(next) = page["next"].as_str().map(str::to_owned) {
        page = page_after(api, Some(&next)).await;
        found.extend(titles(page["items"].as_array().unwrap()).into_iter().map(str::to_owned));
    }
    found
}

/// A list of a review stays in the import that it is in, or continues with the next one if that import is deleted.
#[tokio::test]
async fn list_of_review_survives_new_and_deleted_imports() {
    for (is_announced, deleted, expected) in [
        (true, None, vec!["Berries", "Beans", "Apples", "Almonds"]),
        (false, Some(1), vec!["Apples", "Almonds"]),
        (true, Some(1), vec!["Apples", "Almonds"]),
        (true, Some(0), vec!["Berries", "Beans"]),
    ] {
        let world = World::new();
        let (api, first) = (api(&world), import(&world, &["Apples", "Almonds"]).await);
        let imports = [first, import(&world, &["Bread", "Berries", "Beans"]).await];
        let page = page_after(&api, None).await;
        assert_eq!(titles(page["items"].as_array().unwrap()), ["Bread"]);
        if is_announced {
            import(&world, &["Carrots", "Cherries", "Celery"]).await;
        }
        if let Some(deleted) = deleted {
            let service = &world.functions.start_upload;
            let deletion = service.delete(&ProjectAccess::All, imports[deleted]).await.unwrap();
            assert_eq!(deletion, Deletion::Accepted);
            world.run().await;
        }
        assert_eq!(titles_after(&api, page).await, expected, "{is_announced} {deleted:?}");
    }
}

#[tokio::test]
async fn cursors_of_earlier_versions_continue_list_of_review() {
    let world = World::new();
    let api = api(&world);
    import(&world, &["Apples", "Almonds"]).await;
    let last = import(&world, &["Bread", "Berries"]).await;
    let next = page_after(&api, None).await["next"].as_str().unwrap().to_owned();
    let (mark, _) = next.split_once('.').unwrap();
    let created_at = world.jobs().job(last).await.unwrap().unwrap().created_at.as_nanosecond();
    for (place, title) in [
        ("0-1_".to_owned(), "Berries"),
        (format!("0-0_{created_at}.{last}"), "Apples"),
        (format!("0-1_{created_at}.{last}"), "Almonds"),
    ] {
        let page = page_after(&api, Some(&format!("{mark}.{place}"))).await;
        assert_eq!(titles(page["items"].as_array().unwrap()), [title], "{place}");
    }
    for wrong in ["0-1", "0-1~", "0-1~x", "0~0"] {
        let path = format!("/projects/{}/studies?after={mark}.{wrong}", Uuid::nil());
        assert_eq!(refusal(&api, &path).await.0, 400, "{wrong}");
    }
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
