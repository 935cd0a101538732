//! The list of searches, and polling.

use axum::http::StatusCode;
use contracts::sample;
use imports::{Job, JobState, ProjectId};
use outbox::{View, WriteViews};
use uuid::Uuid;

use super::{all, api, ask, get, imported};
use crate::world::World;

const SEARCHES: &str = "/projects/00000000-0000-0000-0000-000000000000/searches";

/// Stores searches without documents, only with views, the oldest first.
async fn write(world: &World, searches: &[(&str, JobState)]) {
    let jobs = searches.iter().zip(0..).map(|((name, state), age)| {
        let search = sample::partition(&*world.host);
        let job = testing::search::job(&*world.host, search, 1, *state);
        let created_at = sample::later(job.created_at, age);
        let (project_id, name) = (ProjectId::from_uuid(Uuid::nil()), Some((*name).to_owned()));
        View::from(&Job { project_id, name, created_at, ..job })
    });
    world.store().write(&jobs.collect::<Vec<_>>()).await.unwrap();
}

#[tokio::test]
async fn searches_are_found_by_state_and_name() {
    let world = World::new();
    write(
        &world,
        &[
            ("Ärzte", JobState::Error),
            ("Alcohol", JobState::Completed),
            ("Gambling", JobState::Completed),
            ("gambling again", JobState::Parsing),
        ],
    )
    .await;
    let api = api(&world);
    for (query, expected) in [
        ("limit=1", &["gambling again", "Gambling", "Alcohol", "Ärzte"][..]),
        ("state=Completed&limit=1", &["Gambling", "Alcohol"]),
        ("state=Parsing,Error&limit=1", &["gambling again", "Ärzte"]),
        ("text=GAMBL", &["gambling again", "Gambling"]),
        ("text=%C3%A4rzt", &["Ärzte"]),
        ("text=gambl&state=Completed", &["Gambling"]),
        ("state=Uploading", &[]),
    ] {
        let (items, _) = all(&api, &format!("{SEARCHES}?{query}")).await;
        let names: Vec<&str> = items.iter().map(|item| item["name"].as_str().unwrap()).collect();
        assert_eq!(names, expected, "{query}");
    }
}

/// The view of a search may be out of date, but its document is current.
#[tokio::test]
async fn filter_uses_current_state() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let search = async |state: &str| {
        let (items, _) = all(&api(&world), &format!("{SEARCHES}?state={state}")).await;
        items.first().map(|item| item["search_id"].as_str().unwrap().to_owned())
    };
    let id = Some(announced.search_id.to_string());
    assert_eq!((search("Uploading").await, search("Completed").await), (id.clone(), None));
    world.upload(&announced, 0, super::SECOND).await;
    world.run().await;
    assert_eq!((search("Uploading").await, search("Completed").await), (None, id));
}

/// A request scans up to 1,000 entries, regardless of the number that match.
#[tokio::test]
async fn page_scan_of_searches_is_bounded() {
    let world = World::new();
    let mut searches = vec![("the first", JobState::Error)];
    searches.extend([("another", JobState::Completed); 1_050]);
    write(&world, &searches).await;
    let (items, sizes) = all(&api(&world), &format!("{SEARCHES}?state=Error&limit=3")).await;
    assert_eq!((items.len(), sizes), (1, vec![0, 1]));
    let (items, sizes) = all(&api(&world), &format!("{SEARCHES}?limit=200")).await;
    assert_eq!((items.len(), sizes), (1_051, vec![200, 200, 200, 200, 200, 51]));
}

#[tokio::test]
async fn polling_client_receives_only_new_changes() {
    let (world, _, path) = imported().await;
    let api = api(&world);
    for polled in [SEARCHES, &path] {
        let (status, headers, body) = ask(&api, polled, None).await;
        let tag = headers["etag"].to_str().unwrap();
        assert_eq!((status, body.is_empty()), (StatusCode::OK, false));
        let (status, headers, body) = ask(&api, polled, Some(tag)).await;
        assert_eq!((status, headers["etag"].to_str().unwrap()), (StatusCode::NOT_MODIFIED, tag));
        assert_eq!(body, b"");
        let (status, _, _) = ask(&api, polled, Some("\"another\"")).await;
        assert_eq!(status, StatusCode::OK);
    }
    let (_, headers, _) = ask(&api, SEARCHES, None).await;
    world.announce(&["c.ris"]).await;
    let (status, _, _) = ask(&api, SEARCHES, Some(headers["etag"].to_str().unwrap())).await;
    assert_eq!(status, StatusCode::OK, "a search was added");
}

#[tokio::test]
async fn config_returns_limits_of_deployment() {
    let world = World::new();
    let config = get(&api(&world), "/config.json").await;
    assert_eq!(config["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        config["features"],
        serde_json::json!({ "live": true, "stream_exports": true, "trials": false })
    );
    assert_eq!((&config["limits"]["max_files"], &config["formats"][0]), (&50.into(), &"RIS".into()));
}
