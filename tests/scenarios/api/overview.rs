//! What operators see of all projects.

use std::time::Duration;

use imports::{Job, JobState, ProjectId};
use jiff::SignedDuration;
use messages::Host;
use outbox::{View, WriteViews};
use serde_json::Value;
use testing::sample;
use uuid::Uuid;

use super::{SECOND, all, api, get, refusal};
use crate::world::World;

const SEARCHES: &str = "/admin/searches";

/// Searches of two projects that are stored with nothing but their views: how many hours old each is.
async fn write(world: &World, searches: &[(&str, u128, JobState, i64)]) {
    let now = world.host.now();
    let views = searches.iter().map(|(name, project, state, hours)| {
        let job = sample::search::job(&*world.host, sample::partition(&*world.host), 1, *state);
        let created_at = now.checked_sub(SignedDuration::from_hours(*hours)).unwrap();
        let (project_id, name) = (ProjectId::from_uuid(Uuid::from_u128(*project)), Some((*name).to_owned()));
        View::from(&Job { project_id, name, created_at, ..job })
    });
    world.store().write(&views.collect::<Vec<_>>()).await.unwrap();
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn searches_of_all_projects_are_listed_with_what_is_stuck_first() {
    let world = World::new();
    write(
        &world,
        &[
            ("fresh", 1, JobState::Uploading, 0),
            ("stuck", 2, JobState::Parsing, 30),
            ("slow", 1, JobState::Parsing, 3),
            ("old", 1, JobState::Completed, 40),
            ("broken", 2, JobState::Error, 2),
            ("done", 2, JobState::Completed, 1),
        ],
    )
    .await;
    let api = api(&world);
    for (query, expected) in [
        ("", &["stuck", "slow", "fresh", "done", "broken", "old"][..]),
        ("state=Parsing", &["stuck", "slow"]),
        ("state=Parsing&older_than=4h", &["stuck"]),
        ("older_than=5400", &["stuck", "slow", "broken", "old"]),
        ("older_than=1d 12h", &["old"]),
        ("state=Error,Uploading", &["fresh", "broken"]),
        ("state=Completed", &["done", "old"]),
        ("project=00000000-0000-0000-0000-000000000002", &["stuck", "done", "broken"]),
        ("project=00000000-0000-0000-0000-000000000002&state=Error", &["broken"]),
        ("project=00000000-0000-0000-0000-000000000003", &[]),
    ] {
        for limit in [1, 2, 50] {
            let (items, sizes) = all(&api, &format!("{SEARCHES}?limit={limit}&{query}")).await;
            assert_eq!(names(&items), expected, "{query}");
            assert!(sizes.iter().all(|size| *size <= limit), "{sizes:?}");
        }
    }
}

#[tokio::test]
async fn a_search_is_in_the_state_that_it_is_in_now_and_a_deleted_one_in_none() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let api = api(&world);
    let state = async || get(&api, SEARCHES).await["items"][0]["state"].clone();
    assert_eq!(state().await, "Uploading");
    world.upload(&announced, 0, SECOND).await;
    world.run().await;
    assert_eq!(state().await, "Completed", "before anybody has written that down");
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(state().await, "Completed");
    let everywhere = functions::start_upload::Caller::Everywhere;
    world.functions.start_upload.delete(&everywhere, announced.search_id).await.unwrap();
    assert_eq!(get(&api, SEARCHES).await["items"], serde_json::json!([]));
}

/// However many do not match, a request looks at a thousand.
#[tokio::test]
async fn what_is_looked_through_for_a_page_is_bounded() {
    let world = World::new();
    let mut searches = vec![("the first", 1, JobState::Error, 9)];
    searches.extend([("another", 1, JobState::Completed, 1); 700]);
    searches.extend([("open", 1, JobState::Uploading, 1); 400]);
    write(&world, &searches).await;
    let (items, sizes) = all(&api(&world), &format!("{SEARCHES}?state=Error,Parsing&limit=3")).await;
    assert_eq!((names(&items), sizes), (vec!["the first"], vec![0, 1]));
}

#[tokio::test]
async fn what_cannot_be_meant_is_refused() {
    let world = World::new();
    let api = api(&world);
    for query in
        ["state=Lost", "older_than=soon", "older_than=-1h", "project=x", "limit=0", "limit=201", "after=x"]
    {
        assert_eq!(refusal(&api, &format!("{SEARCHES}?{query}")).await.0, 400, "{query}");
    }
}
