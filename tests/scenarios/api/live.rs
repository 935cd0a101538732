//! Streams of changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::{Request, StatusCode};
use embedded::{Call, Intercept, Phase};
use futures::StreamExt;
use http_api::{BodyMode, router_for};
use imports::{Progress, ProjectId, ReportProgress, SearchId};
use serde_json::Value;
use service::ProjectAccess;
use tower::ServiceExt;
use uuid::Uuid;

use super::{api, ask, get, path_of, post, refusal};
use crate::world::{TWO_RECORDS, World};

const HEARTBEAT: &str = ":\n\n";

/// A streaming response.
struct Events(BodyDataStream);

impl Events {
    /// Opens a stream and returns the status and the body of the response.
    async fn open(api: &Router, path: &str, seen: Option<&str>) -> (StatusCode, Self) {
        let request = Request::get(path);
        let request = seen.into_iter().fold(request, |request, id| request.header("Last-Event-ID", id));
        let answer = api.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        (answer.status(), Self(answer.into_body().into_data_stream()))
    }

    /// Returns the next chunk, or `None` at the end.
    async fn piece(&mut self) -> Option<String> {
        let piece = self.0.next().await?.unwrap();
        Some(String::from_utf8(piece.into()).unwrap())
    }

    /// Returns the events and their ids of the next chunk that contains any.
    async fn next(&mut self) -> Option<Vec<(Option<String>, Value)>> {
        loop {
            let piece = self.piece().await?;
            assert!(piece.ends_with("\n\n"), "{piece:?} is not whole");
            let field = |event: &str, name: &str| {
                event.lines().find_map(|line| Some(line.strip_prefix(name)?.to_owned()))
            };
            let event = |event: &str| {
                let (name, data) = (field(event, "event: ")?, field(event, "data: ")?);
                if name == "activity" {
                    return None;
                }
                let shown: Value = serde_json::from_str(&data).unwrap();
                let is_deleted = shown.as_object().unwrap().len() == 1;
                assert_eq!(name, if is_deleted { "deleted" } else { "search" }, "{data}");
                Some((field(event, "id: "), shown))
            };
            let events: Vec<_> = piece.split("\n\n").filter_map(event).collect();
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    async fn one(&mut self) -> (String, Value) {
        let mut events = self.next().await.unwrap();
        assert_eq!(events.len(), 1, "{events:?}");
        let (id, shown) = events.remove(0);
        (id.unwrap(), shown)
    }
}

fn of_project() -> String {
    format!("/projects/{}/events", Uuid::nil())
}

fn of(search: SearchId) -> String {
    format!("{}/events", path_of(search))
}

#[tokio::test]
async fn twelve_clients_see_end_of_search() {
    let world = World::new();
    let api = api(&world);
    assert_eq!(get(&api, "/config.json").await["features"]["live"], true);
    let announced = world.announce(&["a.ris"]).await;
    let mut clients = Vec::new();
    for _ in 0..12 {
        let (status, mut events) = Events::open(&api, &of_project(), None).await;
        assert_eq!((status, &events.one().await.1["state"]), (StatusCode::OK, &"Uploading".into()));
        clients.push(events);
    }
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let shown = get(&api, &path_of(announced.search_id)).await;
    assert_eq!((&shown["state"], &shown["files"][0]["phase"]), (&"Completed".into(), &"done".into()));
    let mut ids = std::collections::BTreeSet::new();
    for client in &mut clients {
        let (id, seen) = client.one().await;
        assert_eq!(seen, shown, "the response to a request for the search");
        ids.insert(id);
    }
    assert_eq!(ids.len(), 1, "an id identifies one state");
}

#[tokio::test]
async fn stream_resumes_after_last_event_id() {
    let world = World::new();
    let api = api(&world);
    let first = world.announce(&["a.ris"]).await;
    let (_, mut events) = Events::open(&api, &of_project(), None).await;
    let (seen, _) = events.one().await;
    drop(events);
    let (_, mut resumed) = Events::open(&api, &of_project(), Some(&seen)).await;
    assert_eq!(resumed.piece().await.unwrap(), "retry: 2000\n\n", "nothing has changed");
    let second = world.announce(&["b.ris"]).await;
    let (later, shown) = resumed.one().await;
    assert_eq!(shown["search_id"], second.search_id.to_string(), "the first one is known");
    world.upload(&first, 0, TWO_RECORDS).await;
    world.run().await;

    let (_, mut late) = Events::open(&api, &of_project(), Some(&later)).await;
    let missed = late.next().await.unwrap();
    let states: Vec<&str> = missed.iter().map(|(_, shown)| shown["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["Completed", "Uploading"], "all of it, as something was missed");
    let ids: Vec<bool> = missed.iter().map(|(id, _)| id.is_some()).collect();
    assert_eq!(ids, [false, true], "only the last event of a batch has an id");
}

#[tokio::test]
async fn stream_ends_and_returns_204_when_search_ended() {
    let world = World::new();
    let api = api(&world);
    let announced = world.announce(&["a.ris"]).await;
    let path = of(announced.search_id);
    let (_, mut events) = Events::open(&api, &path, None).await;
    assert_eq!(events.one().await.1["files"][0]["phase"], "awaited");
    world.announce(&["other.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let (id, shown) = events.one().await;
    assert_eq!((&shown["state"], &shown["totals"]["studies"]), (&"Completed".into(), &2.into()));
    assert_eq!(events.piece().await, None);
    assert_eq!(Events::open(&api, &path, Some(&id)).await.0, StatusCode::NO_CONTENT);
    let (status, mut late) = Events::open(&api, &path, Some("of another time")).await;
    assert_eq!((status, late.one().await.1), (StatusCode::OK, shown));
    assert_eq!(late.piece().await, None);
}

#[tokio::test]
async fn stream_reports_deletion_once() {
    let world = World::new();
    let api = api(&world);
    let (old, new) = (world.announce(&["a.ris"]).await, world.announce(&["b.ris"]).await);
    world.upload(&old, 0, TWO_RECORDS).await;
    world.run().await;
    let (_, mut of_project) = Events::open(&api, &of_project(), None).await;
    assert_eq!(of_project.next().await.unwrap().len(), 2);
    world.functions.start_upload.delete(&ProjectAccess::All, old.search_id).await.unwrap();
    let (id, told) = of_project.one().await;
    assert_eq!(told, serde_json::json!({ "search_id": old.search_id.to_string() }));
    let (_, mut resumed) = Events::open(&api, &self::of_project(), Some(&id)).await;
    assert_eq!(resumed.piece().await.unwrap(), "retry: 2000\n\n", "nothing has changed");
    world.run().await;
    world.upload(&new, 0, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(of_project.one().await.1["search_id"], new.search_id.to_string(), "and of what comes then");
}

#[tokio::test]
async fn stream_ends_when_search_is_deleted() {
    let world = World::new();
    let api = api(&world);
    let announced = world.announce(&["a.ris"]).await;
    let search = announced.search_id;
    let (_, mut events) = Events::open(&api, &of(search), None).await;
    events.one().await;
    // The search ends and is deleted before the next poll.
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
    assert_eq!(events.one().await.1, serde_json::json!({ "search_id": search.to_string() }));
    assert_eq!(events.piece().await, None);
    assert_eq!(
        refusal(&api, &of(search)).await.0,
        404,
        "a client that reconnects gets the status of a deleted search"
    );
}

#[tokio::test]
async fn searches_evicted_from_cursor_are_not_deleted() {
    let world = World::new();
    let api = api(&world);
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let (_, mut events) = Events::open(&api, &of_project(), None).await;
    events.one().await;
    for _ in 0..25 {
        world.announce(&["b.ris"]).await;
    }
    let told = events.next().await.unwrap();
    assert_eq!(told.len(), 25);
    assert!(told.iter().all(|(_, shown)| shown["state"] == "Uploading"), "{told:?}");
    world.functions.start_upload.delete(&ProjectAccess::All, announced.search_id).await.unwrap();
    let deleted = serde_json::json!({ "search_id": announced.search_id.to_string() });
    assert_eq!(events.one().await.1, deleted, "it is still followed");
}

/// The counts follow a decision, a deletion or a repair after the import has ended.
#[tokio::test]
async fn ended_search_is_sent_again_if_its_counts_change() {
    let world = World::new();
    let api = api(&world);
    let records = TWO_RECORDS.replace("Ann", "Ann\nDO  - 10.5555/a").replace("Bob", "Bob\nDO  - 10.5555/b");
    let mut searches = Vec::new();
    for name in ["a.ris", "b.ris"] {
        let announced = world.announce(&[name]).await;
        world.upload(&announced, 0, &records).await;
        world.run().await;
        searches.push(announced.search_id);
    }
    let (_, mut events) = Events::open(&api, &of_project(), None).await;
    assert_eq!(events.next().await.unwrap().len(), 2);
    let mut studies = Vec::new();
    for search in &searches {
        let files = get(&api, &path_of(*search)).await["files"].clone();
        studies.push(serde_json::json!({ "search_id": search, "file_id": files[0]["file_id"], "record": 1 }));
    }
    let decision = serde_json::json!({ "decision": "different", "studies": studies });
    let path = format!("/projects/{}/duplicates/decisions", Uuid::nil());
    assert_eq!(post(&api, &path, &decision).await.0, StatusCode::ACCEPTED);
    assert_eq!(events.piece().await.map(|piece| piece.contains("event: activity")), Some(true));
    world.run().await;
    let (_, shown) = events.one().await;
    assert_eq!(
        (&shown["search_id"], &shown["totals"]["duplicates"]),
        (&searches[1].to_string().into(), &1.into())
    );
    // Ended imports are not read again all the time.
    for _ in 0..8 {
        assert_eq!(events.piece().await.unwrap(), HEARTBEAT);
    }
    world.functions.start_upload.delete(&ProjectAccess::All, searches[0]).await.unwrap();
    assert_eq!(events.one().await.1["search_id"], searches[0].to_string());
    world.run().await;
    let (_, shown) = events.one().await;
    assert_eq!(
        (&shown["search_id"], &shown["totals"]["duplicates"]),
        (&searches[1].to_string().into(), &0.into())
    );
}

/// The progress of a file causes many changes in quick succession.
#[tokio::test]
async fn stream_polls_sooner_after_change() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let (_, mut events) = Events::open(&api(&world), &of_project(), None).await;
    events.one().await;
    let mut waited = Vec::new();
    for records in 1..=3 {
        let (before, file) = (world.host.sleeps().len(), announced.files[0].file_id);
        let progress = Progress { records, bytes: records };
        world.store().report(announced.search_id, file, progress).await.unwrap();
        events.one().await;
        waited.push(world.host.sleeps()[before..].iter().map(Duration::as_millis).collect::<Vec<_>>());
    }
    assert_eq!(waited, [vec![500], vec![250], vec![250]]);
}

#[tokio::test]
async fn idle_stream_sends_heartbeat_every_15_seconds() {
    let world = World::new();
    world.announce(&["a.ris"]).await;
    let (_, mut events) = Events::open(&api(&world), &of_project(), None).await;
    events.one().await;
    for beats in 1..=3 {
        assert_eq!(events.piece().await.unwrap(), HEARTBEAT);
        assert_eq!(world.host.sleeps().iter().sum::<Duration>(), beats * Duration::from_secs(15));
    }
}

#[tokio::test]
async fn streams_are_limited_to_64_open_ones() {
    let world = World::new();
    let api = api(&world);
    let mut streams = Vec::new();
    for _ in 0..64 {
        streams.push(Events::open(&api, &of_project(), None).await.1);
    }
    let (status, why) = refusal(&api, &of_project()).await;
    assert_eq!((status, why.contains("too many clients")), (503, true), "{why}");
    let metrics = String::from_utf8(ask(&api, "/metrics", None).await.2).unwrap();
    assert!(metrics.contains("\nsearch_import_live_streams 64\n"), "{metrics}");
    streams.pop();
    assert_eq!(Events::open(&api, &of_project(), None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn foreign_streams_and_streams_on_lambda_are_refused() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let caller = |project| ProjectAccess::to(ProjectId::from_uuid(project));
    let (stranger, member) = (caller(Uuid::from_u128(7)), caller(Uuid::nil()));
    for answers in [BodyMode::Streaming, BodyMode::Buffered] {
        let (stranger, member) = (stranger.clone(), member.clone());
        let function = || world.functions.start_upload.clone();
        let theirs = router_for(function(), answers, move |_| stranger.clone());
        let ours = router_for(function(), answers, move |_| member.clone());
        for path in [of_project(), of(announced.search_id)] {
            assert_eq!(Events::open(&theirs, &path, None).await.0, StatusCode::NOT_FOUND, "{path}");
            let status = if answers == BodyMode::Buffered { 501 } else { 200 };
            assert_eq!(Events::open(&ours, &path, None).await.0, status, "{path}");
        }
        let absent = of(SearchId::from_uuid(Uuid::nil()));
        let status = if answers == BodyMode::Buffered { 501 } else { 404 };
        assert_eq!(refusal(&ours, &absent).await.0, status);
    }
}

/// Counts the calls of a store.
#[derive(Default)]
struct Calls(AtomicUsize);

#[async_trait]
impl Intercept for Calls {
    async fn step(&self, _: Call, phase: Phase) {
        if phase == Phase::Before {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[tokio::test]
async fn refused_stream_on_lambda_reads_nothing() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let calls = Arc::new(Calls::default());
    let function = world.crashing(&calls).start_upload;
    let api = router_for(function, BodyMode::Buffered, |_| ProjectAccess::All);
    for path in [of_project(), of(announced.search_id)] {
        assert_eq!(refusal(&api, &path).await.0, 501);
        assert_eq!(calls.0.load(Ordering::SeqCst), 0, "{path}");
    }
}
