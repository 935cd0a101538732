//! The health report for all callers and for operators, and the metrics.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::http::StatusCode;
use http_api::{BodyMode, router, router_for};
use imports::Ports;
use imports::queues::{CONTROL, PARSE, QUEUES, SAGA};
use messages::store::DiskRefused;
use messages::{Depth, Host, InspectQueues, Queue, StoreError};
use outbox::{Key, OwnedRecord, Settlement, Write, WriteRecords};
use saga::failures::{FailureStatus, Retry, Selection};
use serde_json::{Value, json};
use service::SearchService;
use service::health::Health;
use service::{Principal, ProjectAccess};

use super::{api, ask, get};
use crate::failures::{gather, search_with_dead_letter};
use crate::world::World;

const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);

async fn answer(api: &Router, path: &str) -> (StatusCode, Value) {
    let (status, _, body) = ask(api, path, None).await;
    (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// Queues: one does not respond, one responds with invalid data.
struct SilentQueues;

#[async_trait]
impl InspectQueues for SilentQueues {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        let away = StoreError::unavailable("counting at 10.0.0.1", "connection refused");
        let odd = StoreError::unusable("counting", "no number");
        [(PARSE, Err(away)), (SAGA, Ok(Depth { visible: 3, ..Depth::default() })), (CONTROL, Err(odd))].into()
    }
}

fn with_silent_queues(world: &World) -> Router {
    let mut ports = world.backend.ports.clone();
    ports.engine.inspect = Arc::new(SilentQueues);
    let health = Health::over(&ports, &functions::SYSTEM).unwrap();
    router(SearchService { health, ..world.functions.start_upload.clone() })
}

#[tokio::test]
async fn public_health_shows_only_availability() {
    let world = World::new();
    let (status, reach) = answer(&api(&world), "/health").await;
    assert_eq!((status, &reach["ok"]), (StatusCode::OK, &json!(true)));
    let parts = reach["parts"].as_array().unwrap();
    assert_eq!(parts.len(), 4 + QUEUES.len(), "{parts:?}");
    let names: Vec<&str> = parts.iter().take(4).map(|part| part["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["database", "ledger", "processed messages", "files"]);
    assert!(parts.iter().all(|part| part["ok"] == true && part["why"].is_null()), "{parts:?}");

    let (status, reach) = answer(&with_silent_queues(&world), "/health").await;
    assert_eq!((status, &reach["ok"]), (StatusCode::SERVICE_UNAVAILABLE, &json!(false)));
    let of =
        |name: &str| reach["parts"].as_array().unwrap().iter().find(|part| part["name"] == name).unwrap();
    assert_eq!(of("queue parse")["why"], "it does not respond");
    assert_eq!(of("queue control")["why"], "its response is not usable");
    assert_eq!((&of("queue saga")["ok"], &of("database")["ok"]), (&json!(true), &json!(true)));
    assert!(!reach.to_string().contains("10.0.0.1"), "{reach}");
}

#[tokio::test]
async fn operators_see_backlogs_and_failures() {
    let world = World::new();
    let api = api(&world);
    let report = get(&api, "/admin/health").await;
    assert_eq!((&report["concerns"], &report["last_sweep"]), (&json!([]), &Value::Null));
    assert_eq!(report["searches"], json!({ "Parsing": 0, "Uploaded": 0, "Uploading": 0 }));

    world.backend.ports.engine.sweeps().unwrap().note().await.unwrap();
    world.announce(&["a.ris"]).await;
    world.run().await;
    search_with_dead_letter(&world, "partition 17 cannot be read").await;
    gather(&world).await;
    let report = get(&api, "/admin/health").await;
    assert_eq!(report["last_sweep"], "2026-01-01T00:00:00Z");
    assert_eq!(report["searches"]["Uploading"], 2);
    assert_eq!((&report["open_failures"], &report["poisoned_effects"]), (&json!(1), &json!(0)));
    let concerns = report["concerns"].as_array().unwrap();
    assert_eq!(concerns.len(), 2, "{concerns:?}");
    assert!(concerns[0].as_str().unwrap().starts_with("2 imports have not ended, and no worker runs;"));
    assert!(concerns[1].as_str().unwrap().starts_with("1 failure is open;"), "{concerns:?}");
    assert_eq!(report["has_worker"], false);
    assert_eq!((&report["ok"], &report["operation"]), (&json!(true), &Value::Null));

    world.host.advance(HOUR);
    let report = get(&api, "/admin/health").await;
    let queue = |name: &str| {
        report["queues"].as_array().unwrap().iter().find(|queue| queue["queue"] == name).unwrap().clone()
    };
    assert_eq!((&queue("saga")["visible"], &queue("saga")["oldest_seconds"]), (&json!(0), &Value::Null));
    let age = report["oldest_effect_seconds"].as_u64().unwrap();
    assert!(age > 0, "the deadlines of the searches have passed");
}

/// The effects of a document are lost, as after the restore of an earlier database by hand.
#[tokio::test]
async fn search_without_message_stalls_after_a_day() {
    let world = World::new();
    let api = api(&world);
    let (lost, waiting) = (world.announce(&["a.ris"]).await, world.announce(&["b.ris"]).await);
    world.run().await;
    let stores = world.backend.ports.engine.stores().unwrap();
    let outbox = world.document(lost.search_id).await.unwrap().outbox;
    assert!(!outbox.is_empty(), "the deadline of the upload is pending");
    let removed = outbox.iter().map(|entry| Settlement { id: entry.id, claim: None, keep: None }).collect();
    stores.write_documents.settle(&[(lost.search_id, removed)]).await.unwrap();
    assert_eq!(world.document(lost.search_id).await.unwrap().outbox, []);

    assert_eq!(get(&api, "/admin/health").await["stalled_searches"], json!([]), "it is younger than a day");
    world.host.advance(25 * HOUR);
    let report = get(&api, "/admin/health").await;
    assert_eq!(report["stalled_searches"], json!([lost.search_id]), "not {}", waiting.search_id);
    let concern = format!("1 import waits for a message, but none is pending ({});", lost.search_id);
    let concerns = report["concerns"].as_array().unwrap();
    assert!(concerns.iter().any(|text| text.as_str().unwrap().starts_with(&concern)), "{concerns:?}");
}

/// Every caller may request the health report, and a durable write is expensive.
#[tokio::test]
async fn health_writes_once_per_ten_seconds() {
    let world = World::new();
    let api = api(&world);
    let written = async || {
        let records = &world.backend.ports.engine.stores().unwrap().records;
        records.record(&Key::new("engine", "health")).await.unwrap().map(|record| record.revision)
    };
    assert_eq!(written().await, None);
    for (seconds, revision) in [(0, 1), (9, 1), (1, 2), (1, 2)] {
        world.host.advance(std::time::Duration::from_secs(seconds));
        assert_eq!(answer(&api, "/health").await.0, StatusCode::OK);
        assert_eq!(get(&api, "/admin/health").await["ok"], true);
        assert_eq!(written().await, Some(revision), "after {seconds} s more");
    }
}

/// Queues like those of SQS, which do not report the age of their messages. One of the queues has no consumer.
struct UnreceivedQueue(Arc<std::sync::Mutex<Depth>>);

#[async_trait]
impl InspectQueues for UnreceivedQueue {
    async fn depths(&self) -> BTreeMap<Queue, Result<Depth, StoreError>> {
        let depth = *self.0.lock().unwrap();
        [(PARSE, Ok(depth)), (SAGA, Ok(Depth { visible: 3, in_flight: 1, ..Depth::default() }))].into()
    }
}

#[tokio::test]
async fn queue_that_nothing_receives_from_is_a_concern() {
    let world = World::new();
    let depth = Arc::new(std::sync::Mutex::new(Depth { visible: 2, ..Depth::default() }));
    let process = || {
        let mut ports = world.backend.ports.clone();
        ports.engine.inspect = Arc::new(UnreceivedQueue(Arc::clone(&depth)));
        let health = Health::over(&ports, &functions::SYSTEM).unwrap();
        router(SearchService { health, ..world.functions.start_upload.clone() })
    };
    let concerns_of = async |api: &Router| {
        let concerns = get(api, "/admin/health").await["concerns"].to_string();
        concerns.contains("queue parse has waited")
    };
    // Each invocation of the function may have its own process.
    let concerns = async || concerns_of(&process()).await;
    assert!(!concerns().await, "it was checked for the first time");
    world.host.advance(std::time::Duration::from_secs(16 * 60));
    assert!(concerns().await, "two checks have found no worker");
    depth.lock().unwrap().in_flight = 1;
    assert!(!concerns().await, "a worker has received a message");
    world.host.advance(std::time::Duration::from_secs(16 * 60));
    depth.lock().unwrap().in_flight = 0;
    let api = process();
    assert!(!concerns_of(&api).await, "the time counts from the latest check without a worker");
    for in_flight in [1, 0] {
        world.host.advance(std::time::Duration::from_secs(16 * 60 - 4 * (1 - in_flight)));
        depth.lock().unwrap().in_flight = in_flight;
        assert!(!concerns_of(&api).await, "a worker has received a message");
        world.host.advance(std::time::Duration::from_secs(4));
    }
}

#[tokio::test]
async fn retry_that_no_worker_continues_is_a_concern() {
    let world = World::new();
    let api = api(&world);
    search_with_dead_letter(&world, "no luck").await;
    gather(&world).await;
    let all = Retry { selection: Selection::of(FailureStatus::Open), limit: None, per_second: 1, canary: 0 };
    world.functions.failures.retry(all, "Ann").await.unwrap();
    let concern = "the retry of failures that Ann began has not continued for 20 min";
    for (minutes, is_reported) in [(1, false), (19, true)] {
        world.host.advance(std::time::Duration::from_secs(minutes * 60));
        let concerns = get(&api, "/admin/health").await["concerns"].to_string();
        assert_eq!(concerns.contains(concern), is_reported, "{concerns}");
    }
}

#[tokio::test]
async fn sweep_of_the_future_is_no_worker() {
    let world = World::new();
    let sweeps = world.backend.ports.engine.sweeps().unwrap();
    let day = jiff::SignedDuration::from_hours(24);
    let later = Write::new(Key::new("engine", "swept"), (world.host.now() + day).to_string());
    world.backend.ports.engine.stores().unwrap().write_records.write_record(&later).await.unwrap();
    let ports = Ports { machine: None, ..world.backend.ports.clone() };
    let health = Health::over(&ports, &functions::SYSTEM).unwrap();
    assert_eq!(health.report().await.has_worker, Some(false));
    sweeps.note().await.unwrap();
    assert_eq!(sweeps.last().await.unwrap(), Some(world.host.now()), "it is replaced");
    assert_eq!(health.report().await.has_worker, Some(true));
}

/// A store that serves reads and rejects writes, as if the disk were full.
struct FullDisk;

#[async_trait]
impl WriteRecords for FullDisk {
    async fn write_record(&self, _: &Write) -> Result<(), StoreError> {
        Err(StoreError::unavailable("writing", DiskRefused("database or disk is full".to_owned())))
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let OwnedRecord { key, body, .. } = record.clone();
        self.write_record(&Write::new(key, body)).await
    }
}

#[tokio::test]
async fn readonly_store_is_reported_unhealthy() {
    let world = World::new();
    let mut ports = world.backend.ports.clone();
    ports.engine.stores.as_mut().unwrap().write_records = Arc::new(FullDisk);
    let health = Health::over(&ports, &functions::SYSTEM).unwrap();
    let api = router(SearchService { health, ..world.functions.start_upload.clone() });
    for path in ["/health", "/admin/health"] {
        let (status, report) = answer(&api, path).await;
        assert_eq!((status, &report["ok"]), (StatusCode::SERVICE_UNAVAILABLE, &json!(false)), "{report}");
        assert_eq!(report["parts"][0]["why"], "the disk is full or read-only");
    }
}

#[tokio::test]
async fn metrics_equal_health_report() {
    let world = World::new();
    world.announce(&["a.ris"]).await;
    world.run().await;
    let (status, headers, body) = ask(&with_silent_queues(&world), "/metrics", None).await;
    assert_eq!(
        (status, &headers["content-type"]),
        (StatusCode::OK, &"text/plain; version=0.0.4; charset=utf-8".parse().unwrap())
    );
    let text = String::from_utf8(body).unwrap();
    for line in [
        "# TYPE search_import_up gauge",
        "search_import_up{part=\"database\"} 1",
        "search_import_up{part=\"queue parse\"} 0",
        "search_import_queue_messages{queue=\"saga\",state=\"visible\"} 3",
        "search_import_open_searches{state=\"Uploading\"} 1",
        "search_import_open_failures 0",
        "search_import_oldest_effect_age_seconds 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in\n{text}");
    }
    assert!(!text.contains("last_sweep"), "no sweep has run");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("search_import_") && value.parse::<u64>().is_ok(), "{line}");
    }
}

#[tokio::test]
async fn health_report_and_metrics_are_restricted() {
    let world = World::new();
    let reader = || Principal { operator: None, ..ProjectAccess::All.into() };
    let function = || world.functions.start_upload.clone();
    let of_readers = router_for(function(), BodyMode::Streaming, move |_| reader());
    for (path, status) in [("/health", 200), ("/admin/health", 403), ("/metrics", 403)] {
        assert_eq!(answer(&of_readers, path).await.0, status, "{path}");
    }
    let on_lambda = router_for(function(), BodyMode::Buffered, |_| ProjectAccess::All);
    for (path, status) in [("/health", 200), ("/admin/health", 200), ("/metrics", 404)] {
        assert_eq!(answer(&on_lambda, path).await.0, status, "{path}");
    }
}
