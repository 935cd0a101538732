//! Handlers for the health of the deployment: for all callers, for operators and for Prometheus.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Api;
use super::admin::AuthorizedOperator;
use super::problem::CommonErrors;
use super::{live, metrics};
use service::health::{Reachability, Report};

/// Reports whether every store and queue responds.
///
/// It reveals nothing else, because every caller may request it.
#[utoipa::path(
    get,
    path = "/health",
    responses(
        (status = 200, description = "Everything responds", body = Reachability),
        (status = 503, description = "Something does not respond", body = Reachability),
    ),
)]
pub(super) async fn show_health(State(api): State<Arc<Api>>) -> Response {
    let reach = api.service.health.reach().await;
    (status(reach.ok), Json(reach)).into_response()
}

/// Returns the health report of the deployment, for operators.
///
/// On Lambda, the queue figures cover only the queues that this function sends to, without ages.
#[utoipa::path(
    get,
    path = "/admin/health",
    responses(
        (status = 200, description = "Every store and queue responds", body = Report),
        (status = 503, description = "A store or queue does not respond", body = Report),
        CommonErrors,
    ),
)]
pub(super) async fn show_report(State(api): State<Arc<Api>>, _: AuthorizedOperator) -> Response {
    let report = api.service.health.report().await;
    (status(report.ok), Json(report)).into_response()
}

/// Returns the health report for Prometheus. The status is always 200; an unavailable service is reported as a value.
pub(super) async fn show_metrics(State(api): State<Arc<Api>>, _: AuthorizedOperator) -> Response {
    let text = metrics::text(&api.service.health.report().await, live::count(&api.streams));
    ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response()
}

fn status(ok: bool) -> StatusCode {
    if ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
