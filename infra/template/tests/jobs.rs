//! The application on SQLite, with duplicates and crashes.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use onceward::local::{FaultInjection, Runner};
use onceward::serde_json::Value;
use onceward::{SystemHost, async_trait, serde_json};
use tower::ServiceExt;
use {{crate_name}}::http::{Api, router};
use {{crate_name}}::service::{ExternalService, Unavailable};
use {{crate_name}}::{Ports, SYSTEM};

/// Counts the jobs that it carried out.
#[derive(Default)]
struct Counting(Mutex<BTreeSet<String>>);

#[async_trait]
impl ExternalService for Counting {
    async fn carry_out(&self, idempotency_key: &str, input: &str) -> Result<String, Unavailable> {
        self.0.lock().unwrap().insert(idempotency_key.to_owned());
        Ok(input.to_uppercase())
    }
}

async fn respond(api: &Api, method: &str, path: &str, body: &str) -> (StatusCode, Value) {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = router(api.clone()).oneshot(request.body(Body::from(body.to_owned())).unwrap()).await.unwrap();
    let (status, bytes) = (response.status(), response.into_body().collect().await.unwrap().to_bytes());
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_runs_once_despite_duplicates() {
    let (dir, service) = (tempfile::tempdir().unwrap(), Arc::new(Counting::default()));
    let counting = Arc::clone(&service);
    let with_service = move |engine| Ports { engine, service: counting.clone() };
    let faults = FaultInjection { copies: 3, ..FaultInjection::default() };
    let runner = Runner::open_with(&SYSTEM, dir.path(), Arc::new(SystemHost), faults, with_service).await.unwrap();
    let api = Api::new(runner.request_ports().as_ref()).unwrap();
    let client = async {
        for _ in 0..2 {
            assert_eq!(respond(&api, "POST", "/jobs/first", r#""hello""#).await.0, StatusCode::ACCEPTED);
        }
        assert_eq!(respond(&api, "POST", "/jobs/first", r#""other""#).await.0, StatusCode::CONFLICT);
        runner.settled().await.unwrap();
        respond(&api, "GET", "/jobs/first", "").await
    };
    let (status, job) = runner.run_until(client).await.unwrap();
    assert_eq!((status, &job["state"], &job["output"]), (StatusCode::OK, &"finished".into(), &"HELLO".into()));
    assert_eq!(service.0.lock().unwrap().len(), 1);
    assert_eq!(respond(&api, "GET", "/jobs/unknown", "").await.0, StatusCode::NOT_FOUND);
    // No store holds such a key, so a repetition could not succeed.
    let long = format!("/jobs/{}", "x".repeat(2_000));
    assert_eq!(respond(&api, "POST", &long, r#""hello""#).await.0, StatusCode::BAD_REQUEST);
}
