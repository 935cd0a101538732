//! Handlers for operators: listing, retrying and deleting failures.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, Query, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use imports::SearchId;
use jiff::Timestamp;
use saga::failures::{
    Failure, FailureId, FailureStatus, OperationId, Origin, Phase, RequestRefusal as NotDone, Retry,
    Selection, Snapshot, State as FailureState,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::principal;
use super::paging::{self, List, ListCursor};
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult, choices};
use service::Operator;

/// The default and maximum number of failures in a page.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;
/// The maximum number of operations and audit entries that are listed.
const MAX_LISTED: usize = 100;
/// The default number of failures to retry in a second.
const PER_SECOND: u32 = 10;

/// An authorized operator of the deployment; other callers are refused with 403.
pub(super) struct AuthorizedOperator(pub(super) Operator);

impl<S: Send + Sync> FromRequestParts<S> for AuthorizedOperator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let operator = principal(parts).operator;
        let refused = || Problem::new(StatusCode::FORBIDDEN, "this is for operators of the deployment");
        operator.map(Self).ok_or_else(refused)
    }
}

/// A dead-lettered message or an exhausted effect.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureView {
    /// The id of the failure.
    failure_id: Uuid,
    /// `open`, `retrying`, `retried`, `closed` or `archived`.
    state: &'static str,
    /// The reason for this state, if it has one.
    #[schema(required)]
    state_reason: Option<String>,
    /// The dead-letter queue that held the message; `outbox` for an effect.
    place: String,
    /// The queue from which the message was dead-lettered.
    #[schema(required)]
    queue: Option<String>,
    /// The import that it belongs to.
    #[schema(required)]
    search_id: Option<Uuid>,
    /// The message's id.
    #[schema(required)]
    message_id: Option<Uuid>,
    /// The message's name; empty if the failure is not a message.
    message: String,
    /// The reason of the failure.
    reason: String,
    /// The cause: a fingerprint that is equal for reasons that differ only in ids, numbers and names.
    cause: String,
    /// The time at which it was first found, in RFC 3339 format.
    first_seen: String,
    /// The time at which it was last found.
    last_seen: String,
    /// The number of times that it failed.
    seen: u32,
    /// The number of times that it was retried.
    retried: u32,
    /// The unchanged message; present only if a single failure is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
}

impl FailureView {
    fn of(failure: Failure, with_body: bool) -> Self {
        let state_reason = match &failure.state {
            FailureState::Closed { why } | FailureState::Archived { why } => Some(why.clone()),
            FailureState::Retrying { operation, .. } => Some(format!("by operation {operation}")),
            FailureState::Open | FailureState::Retried { .. } => None,
        };
        let queue = match &failure.origin {
            Origin::DeadLetter { source, .. } => Some(source.name().to_owned()),
            Origin::Effect { .. } | Origin::Unreadable { .. } => None,
        };
        Self {
            failure_id: failure.id.as_uuid(),
            state: failure.state.standing().name(),
            state_reason,
            place: failure.origin.place().to_owned(),
            queue,
            search_id: failure.partition.map(|search| search.as_uuid()),
            message_id: failure.message_id.map(|id| id.as_uuid()),
            message: failure.message,
            reason: failure.reason,
            cause: failure.fingerprint,
            first_seen: failure.first_seen.to_string(),
            last_seen: failure.last_seen.to_string(),
            seen: failure.seen,
            retried: failure.retried,
            body: with_body.then_some(failure.body),
        }
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

/// The failures with the same cause.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureCauseView {
    /// The cause.
    cause: String,
    /// One of the reasons, as an example.
    reason: String,
    /// The names of the failed messages.
    messages: BTreeSet<String>,
    /// The number of failures.
    count: u64,
    /// The earliest time at which one of them was first found.
    first_seen: String,
    /// The latest time at which one of them was last found.
    last_seen: String,
}

/// Causes, most frequent first; up to 100.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureCauseList {
    /// The causes.
    items: Vec<FailureCauseView>,
    /// Always null: there is only one page.
    #[schema(required)]
    next: Option<String>,
}

impl From<saga::failures::CauseGroup> for FailureCauseView {
    fn from(group: saga::failures::CauseGroup) -> Self {
        Self {
            cause: group.fingerprint,
            reason: group.reason,
            messages: group.messages,
            count: group.count,
            first_seen: group.first_seen.to_string(),
            last_seen: group.last_seen.to_string(),
        }
    }
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
    fn selection(&self) -> Result<Selection, Problem> {
        let standing = self.state.as_deref().unwrap_or("open").parse();
        let standing =
            standing.map_err(|()| Problem::bad("state is open, retrying, retried, closed or archived"))?;
        Ok(Selection {
            standing,
            ..selected(
                self.cause.as_ref(),
                self.place.as_ref(),
                self.search.as_deref(),
                self.until.as_deref(),
            )?
        })
    }
}

fn selected(
    cause: Option<&String>,
    place: Option<&String>,
    search: Option<&str>,
    until: Option<&str>,
) -> Result<Selection, Problem> {
    let search = search.map(str::parse::<SearchId>).transpose();
    let until = until.map(str::parse::<Timestamp>).transpose();
    Ok(Selection {
        fingerprint: cause.cloned(),
        place: place.cloned(),
        partition: search.map_err(|_| Problem::bad("search is not the id of a search"))?,
        until: until.map_err(|_| Problem::bad("until is not a time, such as 2026-01-08T16:53:06Z"))?,
        ..Selection::of(FailureStatus::Open)
    })
}

impl ListCursor for saga::failures::FailureCursor {
    fn written(&self) -> String {
        format!("{}.{}", self.last_seen.as_nanosecond(), self.id)
    }

    fn read(text: &str) -> Option<Self> {
        let (last_seen, id) = text.split_once('.')?;
        let last_seen = Timestamp::from_nanosecond(last_seen.parse().ok()?).ok()?;
        Some(Self { last_seen, id: id.parse().ok()? })
    }
}

const FAILURES: List = List { of: "failures", owner: Uuid::nil() };

/// Lists failures, most recently seen first.
#[utoipa::path(
    get,
    path = "/admin/failures",
    params(FailuresQuery),
    responses((status = 200, description = "A page of failures", body = FailureList), CommonErrors),
)]
pub(super) async fn list_failures(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    query: Result<Query<FailuresQuery>, QueryRejection>,
) -> HttpResult {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let after = FAILURES.after(query.after.as_deref())?;
    let found = api.failures.store.select(&query.selection()?, after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| FAILURES.next(&last.place()));
    let items = found.into_iter().map(|failure| FailureView::of(failure, false)).collect();
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
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    query: Result<Query<FailuresQuery>, QueryRejection>,
) -> HttpResult {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let groups = api.failures.store.groups(&query.selection()?).await?;
    let items = groups.into_iter().map(FailureCauseView::from).collect();
    Ok(Json(FailureCauseList { items, next: None }).into_response())
}

/// Returns one failure with its message.
#[utoipa::path(
    get,
    path = "/admin/failures/{failure}",
    params(("failure" = Uuid, Path, description = "The failure")),
    responses((status = 200, description = "The failure", body = FailureView), CommonErrors),
)]
pub(super) async fn show_failure(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    id: Result<Path<FailureId>, PathRejection>,
) -> HttpResult {
    let id = failure_id(id)?;
    let found = api.failures.store.failures(&[id]).await?.pop().flatten();
    let found = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such failure"))?;
    Ok(Json(FailureView::of(found, true)).into_response())
}

fn failure_id(id: Result<Path<FailureId>, PathRejection>) -> Result<FailureId, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the failure id in the path is not a UUID"))
}

/// The reason of an operator's action.
#[derive(Deserialize, ToSchema)]
#[schema(as = OperatorReason)]
pub(super) struct ReasonBody {
    /// The reason, for the audit log; 1 to 1,000 characters.
    reason: String,
}

/// Archives a failure.
#[utoipa::path(
    post,
    path = "/admin/failures/{failure}/archive",
    params(("failure" = Uuid, Path, description = "The failure")),
    request_body = ReasonBody,
    responses(
        (status = 204, description = "The failure is archived and is only listed on request"),
        (status = 409, description = "The failure is being retried, or it was changed concurrently", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The reason is missing or too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn archive_failure(
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    id: Result<Path<FailureId>, PathRejection>,
    because: Result<Json<ReasonBody>, JsonRejection>,
) -> HttpResult {
    let (id, Json(because)) = (failure_id(id)?, because.map_err(|rejection| unreadable(&rejection))?);
    api.failures.archive(&[id], &because.reason, &operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The reason of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct Reason {
    /// The reason, for the audit log; 1 to 1,000 characters.
    #[param(min_length = 1, max_length = 1_000)]
    reason: Option<String>,
}

/// Deletes a failure permanently.
///
/// An effect is also deleted from its outbox and is never performed.
#[utoipa::path(
    delete,
    path = "/admin/failures/{failure}",
    params(("failure" = Uuid, Path, description = "The failure"), Reason),
    responses(
        (status = 204, description = "The failure is deleted"),
        (status = 409, description = "The failure is being retried, or it was changed concurrently", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The reason is missing or too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn delete_failure(
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    id: Result<Path<FailureId>, PathRejection>,
    reason: Result<Query<Reason>, QueryRejection>,
) -> HttpResult {
    let Query(Reason { reason }) = reason.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    api.failures.delete(&[failure_id(id)?], &reason.unwrap_or_default(), &operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
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

impl NewRetry {
    fn selection(&self) -> Result<Selection, Problem> {
        let says_which = !self.failures.is_empty()
            || [&self.cause, &self.place, &self.search, &self.until].iter().any(|field| field.is_some());
        match (&self.snapshot, says_which, self.all) {
            (Some(snapshot), false, false) => serde_json::from_str(snapshot)
                .map_err(|_| Problem::bad("snapshot is not one returned by a dry run")),
            (None, true, false) | (None, false, true) => {
                let ids = self.failures.iter().map(|id| FailureId::from_uuid(*id)).collect();
                let selected = selected(
                    self.cause.as_ref(),
                    self.place.as_ref(),
                    self.search.as_deref(),
                    self.until.as_deref(),
                )?;
                Ok(Selection { ids, ..selected })
            }
            _ => Err(Problem::bad(
                "select failures by snapshot, by failures, cause, place, search and until, or by all",
            )),
        }
    }
}

/// The result of a dry run.
#[derive(Serialize, ToSchema)]
pub(super) struct DryRunView {
    /// Identifies the counted failures in the request that retries them.
    snapshot: String,
    /// The number of failures.
    count: u64,
    /// The failures by cause.
    groups: Vec<FailureCauseView>,
}

/// An operation that retries failures.
#[derive(Serialize, ToSchema)]
pub(super) struct OperationView {
    /// The id of the operation.
    operation_id: Uuid,
    /// The operator who started it.
    by: String,
    /// The time at which it started, in RFC 3339 format.
    begun_at: String,
    /// `running`, `watching` (waiting for the result of the canary failures), `done` or `stopped`.
    phase: &'static str,
    /// The reason why it was stopped.
    #[schema(required)]
    phase_reason: Option<String>,
    /// The number of selected failures.
    total: u64,
    /// The number of failures retried so far.
    retried: u64,
    /// The number of failures retried in a second.
    per_second: u32,
    /// The number of failures retried first.
    canary: u32,
}

impl From<saga::failures::Operation> for OperationView {
    fn from(operation: saga::failures::Operation) -> Self {
        let (phase, phase_reason) = match operation.phase {
            Phase::Running => ("running", None),
            Phase::Watching { .. } => ("watching", None),
            Phase::Done { .. } => ("done", None),
            Phase::Stopped { why, .. } => ("stopped", Some(why)),
        };
        Self {
            operation_id: operation.id.as_uuid(),
            by: operation.by,
            begun_at: operation.begun_at.to_string(),
            phase,
            phase_reason,
            total: operation.total,
            retried: operation.retried,
            per_second: operation.per_second,
            canary: operation.canary,
        }
    }
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
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    request: Result<Json<NewRetry>, JsonRejection>,
) -> HttpResult {
    let Json(request) = request.map_err(|rejection| unreadable(&rejection))?;
    let selection = request.selection()?;
    if request.dry_run {
        let Snapshot { selection, groups, count } = api.failures.snapshot(selection).await?;
        let snapshot = serde_json::to_string(&selection).map_err(|error| Problem::unavailable(&error))?;
        let groups = groups.into_iter().map(FailureCauseView::from).collect();
        return Ok(Json(DryRunView { snapshot, count, groups }).into_response());
    }
    let per_second = request.per_second.unwrap_or(PER_SECOND);
    let retry = Retry { selection, limit: request.limit, per_second, canary: request.canary };
    let begun = OperationView::from(api.failures.retry(retry, &operator.name).await?);
    let place = format!("/admin/operations/{}", begun.operation_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(begun)).into_response())
}

/// The operations on failures.
#[derive(Serialize, ToSchema)]
pub(super) struct OperationList {
    /// The operations, newest first.
    items: Vec<OperationView>,
    /// Always null: there is only one page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists the latest operations on failures, up to 100.
#[utoipa::path(
    get,
    path = "/admin/operations",
    responses((status = 200, description = "The operations", body = OperationList), CommonErrors),
)]
pub(super) async fn list_operations(State(api): State<Arc<Api>>, _: AuthorizedOperator) -> HttpResult {
    let found = api.failures.store.operations(MAX_LISTED).await?;
    let items = found.into_iter().map(OperationView::from).collect();
    Ok(Json(OperationList { items, next: None }).into_response())
}

/// Returns one operation on failures and its progress.
#[utoipa::path(
    get,
    path = "/admin/operations/{operation}",
    params(("operation" = Uuid, Path, description = "The operation")),
    responses((status = 200, description = "The operation", body = OperationView), CommonErrors),
)]
pub(super) async fn show_operation(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    id: Result<Path<OperationId>, PathRejection>,
) -> HttpResult {
    let found = api.failures.store.operation(operation_id(id)?).await?;
    let found = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such operation"))?;
    Ok(Json(OperationView::from(found)).into_response())
}

fn operation_id(id: Result<Path<OperationId>, PathRejection>) -> Result<OperationId, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the operation id in the path is not a UUID"))
}

/// Stops an operation. Failures that it has already retried are not affected.
#[utoipa::path(
    post,
    path = "/admin/operations/{operation}/stop",
    params(("operation" = Uuid, Path, description = "The operation")),
    responses(
        (status = 200, description = "The operation is stopped", body = OperationView),
        (status = 409, description = "The operation is not running", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn stop_operation(
    State(api): State<Arc<Api>>,
    AuthorizedOperator(operator): AuthorizedOperator,
    id: Result<Path<OperationId>, PathRejection>,
) -> HttpResult {
    let stopped = api.failures.stop(operation_id(id)?, &operator.name).await?;
    Ok(Json(OperationView::from(stopped)).into_response())
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditEntryView {
    /// The time of the action, in RFC 3339 format.
    at: String,
    /// The operator who performed it.
    by: String,
    /// The action, such as `archived`.
    did: String,
    /// The id of the failure or operation that it applies to.
    to: String,
    /// The reason or the details.
    why: String,
}

/// The latest entries of the audit log.
#[derive(Serialize, ToSchema)]
pub(super) struct AuditEntryList {
    /// The entries, newest first.
    items: Vec<AuditEntryView>,
    /// Always null: there is only one page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists the latest actions of operators on failures, up to 100.
#[utoipa::path(
    get,
    path = "/admin/audit",
    responses((status = 200, description = "The audit log", body = AuditEntryList), CommonErrors),
)]
pub(super) async fn list_audit_entries(State(api): State<Arc<Api>>, _: AuthorizedOperator) -> HttpResult {
    let acts = api.failures.store.acts(MAX_LISTED).await?;
    let view = |act: saga::failures::AuditEntry| AuditEntryView {
        at: act.at.to_string(),
        by: act.by,
        did: act.did,
        to: act.to,
        why: act.why,
    };
    Ok(Json(AuditEntryList { items: acts.into_iter().map(view).collect(), next: None }).into_response())
}

fn unreadable(rejection: &JsonRejection) -> Problem {
    match rejection.status() {
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the request is not of type application/json")
        }
        StatusCode::PAYLOAD_TOO_LARGE => {
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large")
        }
        _ => Problem::bad(&format!("the request cannot be read: {}", rejection.body_text())),
    }
}

impl From<NotDone> for Problem {
    fn from(refused: NotDone) -> Self {
        let status = match &refused {
            NotDone::Store(error) => return Self::unavailable(error),
            NotDone::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            NotDone::Unknown(_) => StatusCode::NOT_FOUND,
            NotDone::Not { .. }
            | NotDone::Nothing
            | NotDone::Busy(_)
            | NotDone::NotRunning(_)
            | NotDone::Overtaken => StatusCode::CONFLICT,
        };
        Self::new(status, &refused.to_string())
    }
}
