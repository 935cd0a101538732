//! The contract of the operator's HTTP routes, on orders.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request, StatusCode, header};
use http_body_util::BodyExt;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use operate::Operator;
use operate::http::{MAX_BODY_BYTES, OperatorApi, description, router};
use orders::SYSTEM;
use orders::shop::partition;
use rstest::rstest;
use saga::{Engine, LoadResult, ReadDocuments, Stores};
use serde_json::{Value, json};
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::{TestResult, World};

struct Response {
    status: StatusCode,
    location: Option<String>,
    body: Value,
}

/// Orders with their routes for an operator.
struct Operations {
    world: World,
    api: Arc<OperatorApi>,
    routes: Router,
}

impl Operations {
    /// Returns one order that waits for its payment.
    async fn new() -> Self {
        let world = World::with_stock(1).await;
        world.shop.place("4711", 100).await.unwrap();
        world.run().await;
        let api = OperatorApi::over(world.engine.clone(), &SYSTEM, "orders-tools operate".to_owned());
        let api = Arc::new(api.unwrap());
        let routes = router(Arc::clone(&api), |_| Some(Operator { name: "ann".to_owned() }));
        Self { world, api, routes }
    }

    async fn send(&self, request: Request<Body>) -> Response {
        let response = self.routes.clone().oneshot(request).await.unwrap();
        let location = response.headers().get(header::LOCATION).map(|at| at.to_str().unwrap().to_owned());
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        Response { status, location, body: serde_json::from_slice(&bytes).unwrap_or_default() }
    }

    async fn get(&self, path: &str) -> Value {
        let response = self.send(request(Method::GET, path, "")).await;
        assert_eq!(response.status, StatusCode::OK, "{path}: {}", response.body);
        response.body
    }

    async fn post(&self, path: &str, body: Value) -> Response {
        self.send(request(Method::POST, path, &body.to_string())).await
    }

    /// Collects the failures and takes the steps of retries until none is due.
    async fn work(&self) {
        self.world.run().await;
        self.api.failures().collect(None).await.unwrap();
        while self.api.failures().run_step(None).await.unwrap() {
            self.world.host.advance(Duration::from_secs(1));
        }
        self.world.run().await;
    }
}

fn request(method: Method, path: &str, body: &str) -> Request<Body> {
    let request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    request.body(Body::from(body.to_owned())).unwrap()
}

fn order(path: &str) -> String {
    format!("/admin/instances/{}{path}", partition("4711"))
}

#[tokio::test]
async fn every_route_refuses_callers_who_are_no_operators() -> TestResult {
    let operations = Operations::new().await;
    let routes = router(Arc::clone(&operations.api), |_| None);
    let description = serde_json::to_value(description())?;
    let mut count = 0;
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let path = path.replace("{instance}", &partition("4711").to_string());
            let path = path
                .replace("{failure}", &Uuid::nil().to_string())
                .replace("{operation}", &Uuid::nil().to_string());
            let mut asked = request(Method::from_bytes(method.to_uppercase().as_bytes())?, &path, "{}");
            // Only the host names operators, not the client.
            asked.extensions_mut().insert(Operator { name: "mallory".to_owned() });
            let response = routes.clone().oneshot(asked).await?;
            assert_eq!(response.status(), StatusCode::FORBIDDEN, "{method} {path}");
            let bytes = response.into_body().collect().await?.to_bytes();
            let problem: Value = serde_json::from_slice(&bytes)?;
            assert_eq!(problem["detail"], "this is for operators of the deployment");
            count += 1;
        }
    }
    assert_eq!(count, 20);
    assert_eq!(operations.world.state("4711").await, "placed");
    Ok(())
}

/// The claims of a verified token, as a host adds them to a request.
#[derive(Clone)]
struct Claims(HashMap<String, String>);

#[rstest]
#[case::no_token(&[], StatusCode::FORBIDDEN)]
#[case::scope_alone(&[("scope", "openid orders:operate")], StatusCode::FORBIDDEN)]
#[case::group_alone(&[("groups", "*")], StatusCode::FORBIDDEN)]
#[case::another_group(&[("scope", "orders:operate"), ("groups", "support")], StatusCode::FORBIDDEN)]
#[case::another_scope(&[("scope", "searches:operate"), ("groups", "*")], StatusCode::FORBIDDEN)]
#[case::scope_and_group(&[("scope", "orders:operate"), ("groups", "*")], StatusCode::OK)]
#[tokio::test]
async fn operator_needs_scope_and_group(#[case] claims: &[(&str, &str)], #[case] status: StatusCode) {
    let operations = Operations::new().await;
    let routes = router(Arc::clone(&operations.api), |extensions| {
        Operator::of(Some("groups"), "orders:operate", extensions.get().map(|Claims(claims)| claims))
    });
    let mut asked = request(Method::POST, &order("/pause"), "{}");
    if !claims.is_empty() {
        let claims = claims.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        asked.extensions_mut().insert(Claims(claims.collect()));
    }
    assert_eq!(routes.oneshot(asked).await.unwrap().status(), status);
    assert_eq!(operations.get(&order("")).await["paused"] != Value::Null, status == StatusCode::OK);
}

/// Documents in a store that does not respond.
struct Away;

#[async_trait]
impl ReadDocuments for Away {
    async fn load(&self, _: &[PartitionKey], _: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        Err(StoreError::unavailable("reading documents", "secret-host:27017 is away"))
    }

    async fn load_latest(&self, _: PartitionKey, _: Timestamp) -> LoadResult {
        Err(StoreError::unavailable("reading a document", "secret-host:27017 is away"))
    }
}

#[tokio::test]
async fn unavailable_store_is_not_described_to_clients() {
    let world = World::with_stock(1).await;
    let stores = Stores { read_documents: Arc::new(Away), ..world.engine.stores().unwrap().clone() };
    let engine = Engine { stores: Ok(stores), ..world.engine.clone() };
    let api = OperatorApi::over(engine, &SYSTEM, "orders-tools operate".to_owned()).unwrap();
    let routes = router(Arc::new(api), |_| Some(Operator::unnamed()));
    let paid = json!({ "id": "1", "event": "Paid", "data": { "cents": 100 } }).to_string();
    for (method, path, body) in
        [(Method::GET, "", ""), (Method::POST, "/pause", "{}"), (Method::POST, "/events", &paid)]
    {
        let response = routes.clone().oneshot(request(method, &order(path), body)).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let problem: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(problem["detail"], "the service is temporarily unavailable; try again");
    }
}

#[tokio::test]
async fn system_is_described_with_its_events() {
    let system = Operations::new().await.get("/system.json").await;
    assert_eq!((&system["system"], &system["operator"]), (&json!("orders"), &json!("ann")));
    let events = system["events"].as_array().unwrap();
    let paid = json!({ "queue": "saga", "event": "Paid", "version": 1 });
    assert!(events.len() == 5 && events.contains(&paid), "{system}");
}

#[tokio::test]
async fn instances_are_listed_by_fields_of_their_views() {
    let operations = Operations::new().await;
    for (query, count) in [
        ("", 1),
        ("?where=state%3Dplaced", 1),
        ("?where=state%3Dshipped", 0),
        ("?where=no.such.field%3D1", 0),
        ("?where=state%3Dplaced&ended=false", 1),
        ("?where=state%3Dplaced&ended=true", 0),
    ] {
        let listed = operations.get(&format!("/admin/instances{query}")).await;
        let found = listed["items"].as_array().map(Vec::len);
        assert_eq!((found, &listed["next"]), (Some(count), &Value::Null), "{query}: {listed}");
    }
}

#[tokio::test]
async fn order_is_paused_paid_and_resumed() -> TestResult {
    let operations = Operations::new().await;
    let listed = operations.get("/admin/instances").await;
    assert_eq!(listed["items"][0]["instance_id"], partition("4711").to_string());

    let paused = operations.post(&order("/pause"), json!({ "reason": "wrong price" })).await;
    assert_eq!((paused.status, &paused.body["changed"]), (StatusCode::OK, &json!(true)));
    let again = operations.post(&order("/pause"), json!({})).await;
    assert_eq!(again.body["changed"], false);
    let paid = json!({ "id": "1", "event": "Paid", "data": { "cents": 100 } });
    let sent = operations.post(&order("/events"), paid.clone()).await;
    assert_eq!((sent.status, &sent.body["sent"]), (StatusCode::OK, &json!(true)), "{}", sent.body);
    let again = operations.post(&order("/events"), paid).await;
    assert_eq!(again.body, json!({ "sent": false, "message_id": null }));
    operations.world.run().await;
    let details = operations.get(&order("")).await;
    let paused = &details["paused"];
    assert_eq!((&paused["by"], &paused["reason"]), (&json!("ann"), &json!("wrong price")));
    assert_eq!((&details["state"]["state"], &details["ended_at"]), (&json!("placed"), &Value::Null));

    let resumed = operations.post(&order("/resume"), json!({ "reason": "" })).await;
    assert_eq!(resumed.body["done"], "resumed");
    operations.world.pass(Duration::from_mins(10)).await;
    let details = operations.get(&order("")).await;
    assert_eq!(details["state"]["state"], "shipped", "{details}");

    let mut after = String::new();
    let mut reasons = Vec::new();
    loop {
        let page = operations.get(&order(&format!("/history?limit=2{after}"))).await;
        let items = page["items"].as_array().unwrap();
        reasons.extend(items.iter().map(|item| item["why"].as_str().unwrap().to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    for reason in ["paused by ann: wrong price", "sent by ann", "resumed by ann"] {
        assert!(reasons.iter().any(|found| found == reason), "{reason}: {reasons:?}");
    }
    let audit = operations.get("/admin/audit").await;
    let did: Vec<&str> =
        audit["items"].as_array().unwrap().iter().map(|entry| entry["did"].as_str().unwrap()).collect();
    assert_eq!(did, ["resumed", "sent Paid", "paused"]);
    Ok(())
}

#[tokio::test]
async fn terminated_order_accepts_no_events() {
    let operations = Operations::new().await;
    let refused = operations.post(&order("/terminate"), json!({ "reason": " " })).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let ended = operations.post(&order("/terminate"), json!({ "reason": "a test order" })).await;
    assert_eq!((ended.status, &ended.body["done"]), (StatusCode::OK, &json!("terminated")));
    let details = operations.get(&order("")).await;
    assert_eq!(details["terminated"]["reason"], "a test order");
    let paid = json!({ "id": "1", "event": "Paid", "data": { "cents": 100 } });
    for (path, body) in [("/events", paid), ("/resume", json!({}))] {
        let refused = operations.post(&order(path), body).await;
        assert_eq!(refused.status, StatusCode::CONFLICT, "{}", refused.body);
        assert!(refused.body["detail"].as_str().unwrap().ends_with("has ended"), "{}", refused.body);
    }
}

#[tokio::test]
async fn failure_is_counted_retried_and_archived() -> TestResult {
    let operations = Operations::new().await;
    operations.world.shop.pay("4711", 1).await?;
    operations.work().await;
    let groups = operations.get("/admin/failures/groups").await;
    assert_eq!(
        (&groups["items"][0]["count"], &groups["items"][0]["messages"]),
        (&json!(1), &json!(["Paid"]))
    );
    let listed = operations.get(&format!("/admin/failures?instance={}", partition("4711"))).await;
    let failure = &listed["items"][0];
    assert_eq!(failure["instance_id"], partition("4711").to_string());
    assert_eq!((&failure["place"], &failure["body"]), (&json!("saga-dead"), &Value::Null));
    let path = format!("/admin/failures/{}", failure["failure_id"].as_str().unwrap());
    assert!(operations.get(&path).await["body"].as_str().unwrap().contains("\"cents\":1"));
    let other = operations.get(&format!("/admin/failures?instance={}", partition("4712"))).await;
    assert_eq!(other["items"], json!([]));

    let refused = operations.post("/admin/retries", json!({})).await;
    let all = "select failures by snapshot, by failures, cause, place, instance and until, or by all";
    assert_eq!((refused.status, &refused.body["detail"]), (StatusCode::BAD_REQUEST, &json!(all)));
    let counted = operations.post("/admin/retries", json!({ "all": true, "dry_run": true })).await;
    assert_eq!((counted.status, &counted.body["count"]), (StatusCode::OK, &json!(1)));
    let begun = operations.post("/admin/retries", json!({ "snapshot": counted.body["snapshot"] })).await;
    assert_eq!((begun.status, &begun.body["by"]), (StatusCode::ACCEPTED, &json!("ann")));
    operations.work().await;
    let operation = operations.get(&begun.location.unwrap()).await;
    assert_eq!((&operation["phase"], &operation["retried"]), (&json!("done"), &json!(1)), "{operation}");

    operations.work().await;
    let again = operations.get("/admin/failures").await;
    let path = format!("/admin/failures/{}", again["items"][0]["failure_id"].as_str().unwrap());
    assert_eq!(again["items"][0]["retried"], 1, "{again}");
    let refused = operations.send(request(Method::DELETE, &path, "")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    let archived = operations.post(&format!("{path}/archive"), json!({ "reason": "paid again" })).await;
    assert_eq!(archived.status, StatusCode::NO_CONTENT);
    assert_eq!(operations.get("/admin/failures").await["items"], json!([]));
    Ok(())
}

#[tokio::test]
async fn effects_and_health_are_shown() {
    let operations = Operations::new().await;
    let effects = operations.get("/admin/effects?state=waiting").await;
    let timer = &effects["items"][0];
    assert_eq!(timer["instance_id"], partition("4711").to_string());
    assert_eq!(
        (&timer["message"], &timer["kind"]),
        (&json!("PaymentOverdue"), &json!("message")),
        "{effects}"
    );
    let health = operations.get("/admin/health").await;
    assert_eq!((&health["ok"], &health["unfinished"]), (&json!(true), &json!(1)));
    assert_eq!(health["open_failures"], 0);
}

#[rstest]
#[case::limit_too_small("/admin/instances?limit=0")]
#[case::limit_too_large("/admin/failures?limit=201")]
#[case::effects_limit("/admin/effects?limit=1000")]
#[case::unknown_parameter("/admin/failures?search=1")]
#[case::unknown_state("/admin/failures?state=lost")]
#[case::unknown_effect_state("/admin/effects?state=lost")]
#[case::cursor_of_another_list("/admin/effects?after=ab.cd")]
#[case::cursor_of_no_instances("/admin/instances?after=ab.cd")]
#[case::condition_without_value("/admin/instances?where=state")]
#[case::condition_without_field("/admin/instances?where=%3Dplaced")]
#[case::neither_ended_nor_not("/admin/instances?ended=maybe")]
#[case::time("/admin/failures?until=yesterday")]
#[case::instance("/admin/instances/4711")]
#[case::history("/admin/instances/4711/history")]
#[case::failure("/admin/failures/4711")]
#[case::operation("/admin/operations/4711")]
#[tokio::test]
async fn invalid_requests_are_refused(#[case] path: &str) {
    let response = Operations::new().await.send(request(Method::GET, path, "")).await;
    assert_eq!(response.status, StatusCode::BAD_REQUEST, "{}", response.body);
    assert_eq!(response.body["title"], "Bad Request");
}

#[tokio::test]
async fn absent_instances_are_not_found() {
    let operations = Operations::new().await;
    let absent = format!("/admin/instances/{}", partition("none"));
    let response = operations.send(request(Method::GET, &absent, "")).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    let paid = json!({ "id": "1", "event": "Paid", "data": { "cents": 100 } });
    for (path, body) in [("pause", json!({})), ("terminate", json!({ "reason": "x" })), ("events", paid)] {
        let response = operations.post(&format!("{absent}/{path}"), body).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
    }
    let unknown = operations.get(&format!("{absent}/history")).await;
    assert_eq!(unknown["items"], json!([]));
}

#[tokio::test]
async fn bodies_are_bounded() {
    let operations = Operations::new().await;
    let long = "x".repeat(1_001);
    for (path, body, status) in [
        ("/pause", json!({ "reason": long }), StatusCode::UNPROCESSABLE_ENTITY),
        ("/pause", json!({ "why": "x" }), StatusCode::BAD_REQUEST),
        ("/events", json!({ "id": "", "event": "Paid", "data": {} }), StatusCode::UNPROCESSABLE_ENTITY),
        ("/events", json!({ "id": long, "event": "Paid", "data": {} }), StatusCode::UNPROCESSABLE_ENTITY),
        ("/events", json!({ "id": "1", "event": "Paid", "data": [] }), StatusCode::BAD_REQUEST),
        ("/events", json!({ "id": "1", "event": "Payed", "data": {} }), StatusCode::UNPROCESSABLE_ENTITY),
        ("/events", json!({ "id": "1", "event": "Paid", "data": {} }), StatusCode::UNPROCESSABLE_ENTITY),
        ("/pause", json!({ "reason": "x".repeat(MAX_BODY_BYTES) }), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        let response = operations.post(&order(path), body).await;
        assert_eq!(response.status, status, "{path}: {}", response.body);
    }
    let mut other = request(Method::POST, &order("/pause"), "{}");
    other.headers_mut().remove(header::CONTENT_TYPE);
    assert_eq!(operations.send(other).await.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(operations.get(&order("")).await["paused"], Value::Null);
}
