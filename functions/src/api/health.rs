//! How the deployment is: for everybody, for operators, and for what gathers metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Api;
use super::admin::AskedOperator;
use super::problem::Refused;
use super::{live, metrics};
use service::health::{Reach, Report};

/// Whether every store and queue answers.
///
/// It says no more than that, to everybody who may ask anything.
#[utoipa::path(
    get,
    path = "/health",
    responses(
        (status = 200, description = "Everything does", body = Reach),
        (status = 503, description = "Something does not", body = Reach),
    ),
)]
pub(super) async fn show_health(State(api): State<Arc<Api>>) -> Response {
    let reach = api.function.health.reach().await;
    (status(reach.ok), Json(reach)).into_response()
}

/// How the deployment is, for operators.
///
/// What a deployment on Lambda says of queues is about those that this function sends to, and without ages.
#[utoipa::path(
    get,
    path = "/admin/health",
    responses(
        (status = 200, description = "Every store and queue answers", body = Report),
        (status = 503, description = "Something does not answer", body = Report),
        Refused,
    ),
)]
pub(super) async fn show_report(State(api): State<Arc<Api>>, _: AskedOperator) -> Response {
    let report = api.function.health.report().await;
    (status(report.ok), Json(report)).into_response()
}

/// The same for Prometheus. Always 200: what does not answer is a value.
pub(super) async fn show_metrics(State(api): State<Arc<Api>>, _: AskedOperator) -> Response {
    let text = metrics::text(&api.function.health.report().await, live::count(&api.streams));
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

fn status(ok: bool) -> StatusCode {
    if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
