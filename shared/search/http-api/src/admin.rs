//! Handlers for operators: listing and retrying failures, which name imports. The other handlers for failures are those
//! of every system ([`operate::http::failures`]).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::response::IntoResponse;
use imports::SearchId;
use operate::http::extract::{OperatorRequest, OperatorState, Parameters};
use operate::http::failures::{
    DryRunView, FailureCauseList, FailureFields, FailureFilter, OperationView, Page, RetryRequest, causes,
    failure, page, retry,
};
use operate::http::problem::Problem as OperatorProblem;
use saga::Failures;
use saga::failures::{Failure, FailureId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::principal;
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult, choices};
use service::Operator;

impl OperatorState for Api {
    fn failures(&self) -> &Failures {
        &self.failures
    }

    fn operator(parts: &Parts) -> Option<Operator> {
        principal(parts).operator
    }
}

/// An authorized operator of the deployment; other callers are refused with 403.
pub(super) struct AuthorizedOperator(pub(super) Operator);

impl FromRequestParts<Arc<Api>> for AuthorizedOperator {
    type Rejection = OperatorProblem;

    async fn from_request_parts(parts: &mut Parts, api: &Arc<Api>) -> Result<Self, OperatorProblem> {
        OperatorRequest::from_request_parts(parts, api).await.map(|asked| Self(asked.operator))
    }
}

/// A dead-lettered message or an exhausted effect.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureView {
    /// The import that it belongs to.
    #[schema(required)]
    search_id: Option<Uuid>,
    #[serde(flatten)]
    failure: FailureFields,
}

impl FailureView {
    fn of(failure: Failure, with_body: bool) -> Self {
        let search_id = failure.partition.map(|search| search.as_uuid());
        Self { search_id, failure: FailureFields::of(failure, with_body) }
    }
}

/// A page of failures.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureList {
    /// The failures, most recently seen first.
    items: Vec<FailureView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

/// Selects failures.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FailuresQuery {
    /// Returns only failures in this state: `open`, `retrying`, `retried`, `closed` or `archived`. The default is
    /// `open`.
    #[param(inline, value_type = Option<choices::FailureState>)]
    state: Option<String>,
    /// Returns only failures with this cause.
    cause: Option<String>,
    /// Returns only failures from this dead-letter queue, or from the `outbox`.
    place: Option<String>,
    /// Returns only failures of this import.
    #[param(format = Uuid)]
    search: Option<String>,
    /// Returns only failures that were last found at or before this time, in RFC 3339 format.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Maximum number of failures to return, from 1 to 200. The default is 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

impl FailuresQuery {
    fn filter(&self) -> Result<FailureFilter<'_>, Problem> {
        Ok(FailureFilter {
            state: self.state.as_deref(),
            cause: self.cause.as_ref(),
            place: self.place.as_ref(),
            instance: search(self.search.as_deref())?,
            until: self.until.as_deref(),
        })
    }
}

fn search(text: Option<&str>) -> Result<Option<SearchId>, Problem> {
    let search = text.map(str::parse::<SearchId>).transpose();
    search.map_err(|_| Problem::bad("search is not the id of an import"))
}

/// Lists failures, most recently seen first.
#[utoipa::path(
    get,
    path = "/admin/failures",
    params(FailuresQuery),
    responses((status = 200, description = "A page of failures", body = FailureList), CommonErrors),
)]
pub(super) async fn list_failures(
    asked: OperatorRequest,
    Parameters(query): Parameters<FailuresQuery>,
) -> HttpResult {
    let (selection, after) = (query.filter()?.selection()?, query.after.as_deref());
    let view = |failure| FailureView::of(failure, false);
    let Page { items, next } = page(&asked.failures, &selection, query.limit, after, view).await?;
    Ok(Json(FailureList { items, next }).into_response())
}

/// Counts failures by cause.
#[utoipa::path(
    get,
    path = "/admin/failures/groups",
    params(FailuresQuery),
    responses((status = 200, description = "The causes", body = FailureCauseList), CommonErrors),
)]
pub(super) async fn list_failure_groups(
    asked: OperatorRequest,
    Parameters(query): Parameters<FailuresQuery>,
) -> HttpResult {
    Ok(Json(causes(&asked.failures, &query.filter()?.selection()?).await?).into_response())
}

/// Returns one failure with its message.
#[utoipa::path(
    get,
    path = "/admin/failures/{failure}",
    params(("failure" = Uuid, Path, description = "The failure")),
    responses((status = 200, description = "The failure", body = FailureView), CommonErrors),
)]
pub(super) async fn show_failure(
    asked: OperatorRequest,
    id: Result<Path<FailureId>, PathRejection>,
) -> HttpResult {
    let found = failure(&asked.failures, id).await?;
    Ok(Json(FailureView::of(found, true)).into_response())
}

/// Selects the failures to retry, either by `snapshot` or by the other fields.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRetry {
    /// The `snapshot` of a dry run: exactly the failures that it counted, without any that were found later.
    snapshot: Option<String>,
    /// These failures; up to 1,000 ids.
    #[serde(default)]
    failures: BTreeSet<Uuid>,
    /// Failures with this cause.
    cause: Option<String>,
    /// Failures from this dead-letter queue, or from the `outbox`.
    place: Option<String>,
    /// Failures of this import.
    search: Option<String>,
    /// Failures that were last found at or before this time, in RFC 3339 format.
    until: Option<String>,
    /// All open failures. Cannot be combined with another selection.
    #[serde(default)]
    all: bool,
    /// Maximum number of failures to retry.
    limit: Option<u64>,
    /// Number of failures to retry in a second, from 1 to 1,000. The default is 10.
    per_second: Option<u32>,
    /// Number of failures to retry first, up to 10. The others follow once workers have processed these, within a
    /// minute, or within five if a worker is still processing one.
    #[serde(default)]
    canary: u32,
    /// Counts the selected failures without changing anything.
    #[serde(default)]
    dry_run: bool,
}

/// Retries failures, or counts them in a dry run.
#[utoipa::path(
    post,
    path = "/admin/retries",
    request_body = NewRetry,
    responses(
        (status = 200, description = "The result of a dry run", body = DryRunView),
        (status = 202, description = "The operation has started", body = OperationView),
        (status = 409, description = "Another operation is running, or none of the selected failures is open", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "A value of the request is not permitted", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn retry_failures(
    asked: OperatorRequest,
    request: Result<Json<NewRetry>, JsonRejection>,
) -> HttpResult {
    let Json(request) = request.map_err(|rejection| OperatorProblem::unreadable(&rejection))?;
    let filter = FailureFilter {
        state: None,
        cause: request.cause.as_ref(),
        place: request.place.as_ref(),
        instance: search(request.search.as_deref())?,
        until: request.until.as_deref(),
    };
    let request = RetryRequest {
        snapshot: request.snapshot.as_deref(),
        failures: &request.failures,
        filter,
        all: request.all,
        limit: request.limit,
        per_second: request.per_second,
        canary: request.canary,
        dry_run: request.dry_run,
    };
    Ok(retry(&asked, request, "failures, cause, place, search and until").await?)
}
