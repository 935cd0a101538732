//! The operators' API for failures.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use http_api::{BodyMode, router_for};
use serde_json::{Value, json};
use service::{Operator, Principal, ProjectAccess};
use tower::ServiceExt;
use uuid::Uuid;

use super::api;
use crate::failures::{gather, run_to_the_end, search_with_dead_letter};
use crate::world::World;

async fn ask(api: &Router, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
    let answer = api.clone().oneshot(request.body(body).unwrap()).await.unwrap();
    let status = answer.status();
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
    (status, serde_json::from_slice(&bytes).unwrap_or(Value::Null))
}

async fn get(api: &Router, path: &str) -> Value {
    let (status, body) = ask(api, Method::GET, path, None).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

async fn post(api: &Router, path: &str, body: Value) -> (StatusCode, Value) {
    ask(api, Method::POST, path, Some(body)).await
}

#[tokio::test]
async fn retry_of_snapshot_takes_counted_failures() {
    let world = World::new();
    let api = api(&world);
    for reason in ["partition 17 cannot be read", "partition 18 cannot be read", "the disk is full"] {
        search_with_dead_letter(&world, reason).await;
    }
    gather(&world).await;
    let groups = get(&api, "/admin/failures/groups").await;
    assert_eq!(groups["items"].as_array().unwrap().len(), 2);
    assert_eq!((&groups["items"][0]["count"], &groups["next"]), (&json!(2), &Value::Null));
    let cause = &groups["items"][0]["cause"];
    let (status, snapshot) = post(&api, "/admin/retries", json!({ "cause": cause, "dry_run": true })).await;
    assert_eq!((status, &snapshot["count"]), (StatusCode::OK, &json!(2)));
    world.host.advance(std::time::Duration::from_secs(1));
    search_with_dead_letter(&world, "partition 19 cannot be read").await;
    gather(&world).await;

    let retry = json!({ "snapshot": snapshot["snapshot"], "per_second": 50 });
    let (status, begun) = post(&api, "/admin/retries", retry).await;
    assert_eq!((status, &begun["total"]), (StatusCode::ACCEPTED, &json!(2)), "{begun}");
    assert_eq!((&begun["phase"], &begun["by"]), (&json!("running"), &json!("somebody")));
    let again = post(&api, "/admin/retries", json!({ "all": true })).await;
    assert_eq!(again.0, StatusCode::CONFLICT, "{}", again.1);
    run_to_the_end(&world).await;
    let place = format!("/admin/operations/{}", begun["operation_id"].as_str().unwrap());
    let ended = get(&api, &place).await;
    assert_eq!((&ended["phase"], &ended["retried"]), (&json!("done"), &json!(2)));
    assert_eq!(ask(&api, Method::POST, &format!("{place}/stop"), None).await.0, StatusCode::CONFLICT);
    assert_eq!(get(&api, "/admin/operations").await["items"], json!([ended]));
    assert_eq!(get(&api, "/admin/failures").await["items"].as_array().unwrap().len(), 2);
    let entries = get(&api, "/admin/audit").await;
    assert_eq!(entries["items"][0]["did"], "began a retry");
}

#[tokio::test]
async fn failures_are_listed_in_pages_and_individually() {
    let world = World::new();
    let api = api(&world);
    for _ in 0..5 {
        search_with_dead_letter(&world, "one cause").await;
    }
    gather(&world).await;
    let (mut seen, mut next) = (Vec::new(), String::new());
    loop {
        let page = get(&api, &format!("/admin/failures?limit=2{next}")).await;
        for failure in page["items"].as_array().unwrap() {
            assert!(failure.get("body").is_none(), "lists omit the messages");
            seen.push(failure["failure_id"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(place) => next = format!("&after={place}"),
            None => break,
        }
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(seen.len(), 5);
    let one = get(&api, &format!("/admin/failures/{}", seen[0])).await;
    assert!(one["body"].as_str().unwrap().contains("SearchUploadSaved"), "{one}");
    assert_eq!((&one["queue"], &one["place"]), (&json!("saga"), &json!("saga-dead")));
    let path = format!("/admin/failures/{}", seen[0]);
    let archived = post(&api, &format!("{path}/archive"), json!({ "reason": "known" })).await;
    assert_eq!(archived.0, StatusCode::NO_CONTENT, "{}", archived.1);
    let one = get(&api, &path).await;
    assert_eq!((&one["state"], &one["state_reason"]), (&json!("archived"), &json!("known")));
    let retry = post(&api, "/admin/retries", json!({ "failures": [seen[0]] })).await;
    assert_eq!(retry.0, StatusCode::CONFLICT, "{}", retry.1);
    let deleted = ask(&api, Method::DELETE, &format!("{path}?reason=old"), None).await;
    assert_eq!(deleted.0, StatusCode::NO_CONTENT, "{}", deleted.1);
    assert_eq!(ask(&api, Method::GET, &path, None).await.0, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn restore_resumes_or_ends_search_with_named_operator() {
    let world = World::new();
    let api = api(&world);
    let [waiting, reading] = [world.announce(&["a.ris"]).await, world.announce(&["b.ris"]).await];
    world.upload(&reading, 0, "TY  - JOUR\nTI  - One\nER  - \n").await;
    let path = |search| format!("/admin/searches/{search}/after-restore");
    let (status, answer) = post(&api, &path(waiting.search_id), json!({})).await;
    assert_eq!((status, &answer["done"]), (StatusCode::OK, &json!("announced")), "{answer}");
    world.run().await;
    for (search, done) in [(waiting.search_id, "waiting"), (reading.search_id, "ended")] {
        let (status, answer) = post(&api, &path(search), json!({ "ledger_alone": true })).await;
        assert_eq!((status, &answer["done"]), (StatusCode::OK, &json!(done)), "{answer}");
    }
    let entries = get(&api, "/admin/audit").await;
    let last = json!([reading.search_id, "settled after a restore", "the ledger was restored alone"]);
    let entry = &entries["items"][0];
    assert_eq!(json!([entry["to"], entry["did"], entry["why"]]), last);
    assert_eq!(entries["items"].as_array().unwrap().len(), 3);

    let unknown = post(&api, &path(imports::SearchId::from_uuid(Uuid::from_u128(4))), json!({})).await;
    assert_eq!(unknown.0, StatusCode::NOT_FOUND, "{}", unknown.1);
    let strange = post(&api, &path(reading.search_id), json!({ "database": true })).await;
    assert_eq!(strange.0, StatusCode::BAD_REQUEST, "{}", strange.1);
    assert_eq!(get(&api, "/admin/audit").await["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn invalid_requests_are_refused_with_reason() {
    let world = World::new();
    let api = api(&world);
    let unknown = Uuid::from_u128(5);
    for (path, wanted) in [
        ("/admin/failures?state=lost", "state is"),
        ("/admin/failures?limit=0", "limit is from 1"),
        ("/admin/failures?limit=100000", "limit is from 1"),
        ("/admin/failures?after=x", "after is not"),
        ("/admin/failures?search=x", "search is not"),
        ("/admin/failures?until=yesterday", "until is not a time"),
        ("/admin/failures/x", "not a UUID"),
        ("/admin/operations/x", "not a UUID"),
    ] {
        let (status, problem) = ask(&api, Method::GET, path, None).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{path}");
        assert!(problem["detail"].as_str().unwrap().contains(wanted), "{path}: {problem}");
    }
    for (body, status) in [
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({ "all": true, "cause": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "snapshot": "x" }), StatusCode::BAD_REQUEST),
        (json!({ "snapshot": "{}", "all": true }), StatusCode::BAD_REQUEST),
        (json!({ "al": true }), StatusCode::BAD_REQUEST),
        (json!({ "all": true, "until": "never" }), StatusCode::BAD_REQUEST),
        (json!({ "all": true, "per_second": 0 }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "all": true, "canary": 11 }), StatusCode::UNPROCESSABLE_ENTITY),
        (json!({ "all": true }), StatusCode::CONFLICT),
        (json!({ "failures": [unknown] }), StatusCode::NOT_FOUND),
    ] {
        let (found, problem) = post(&api, "/admin/retries", body.clone()).await;
        assert_eq!(found, status, "{body}: {problem}");
        assert!(!problem["detail"].as_str().unwrap().is_empty());
    }
    let text = Request::post("/admin/retries").body(Body::from("{}")).unwrap();
    assert_eq!(api.oneshot(text).await.unwrap().status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

#[tokio::test]
async fn operator_api_is_closed_to_others() {
    let world = World::new();
    search_with_dead_letter(&world, "one").await;
    gather(&world).await;
    let api = |operator: Option<Operator>| {
        let principal = Principal { operator, ..ProjectAccess::All.into() };
        router_for(world.functions.start_upload.clone(), BodyMode::Streaming, move |_| principal.clone())
    };
    let nobody = api(None);
    for path in ["/admin/failures", "/admin/failures/groups", "/admin/operations", "/admin/audit"] {
        assert_eq!(ask(&nobody, Method::GET, path, None).await.0, StatusCode::FORBIDDEN, "{path}");
    }
    assert_eq!(post(&nobody, "/admin/retries", json!({ "all": true })).await.0, StatusCode::FORBIDDEN);
    let ann = api(Some(Operator { name: "ann".to_owned() }));
    let (status, begun) = post(&ann, "/admin/retries", json!({ "all": true })).await;
    assert_eq!((status, &begun["by"]), (StatusCode::ACCEPTED, &json!("ann")));
}
