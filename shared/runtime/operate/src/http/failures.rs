//! Handlers for failures: listing, retrying and closing them, and the operations on them.
//!
//! The handlers that name no instance are routes of every system, also of one with its own API. The functions and views
//! serve the other routes, in which each API names instances in its own words.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::Path;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use jiff::Timestamp;
use messages::PartitionKey;
use saga::Failures;
use saga::failures::{
    AuditEntry, CauseGroup, Causes, Failure, FailureId, FailureStatus, Operation, OperationId, Origin, Phase,
    Retry, Selection, Snapshot, State as FailureState,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::HttpResult;
use super::extract::{OperatorRequest, Parameters};
use super::paging::{self, List, ListCursor};
use super::problem::{CommonErrors, Problem};

/// The default and maximum number of failures in a page.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;
/// The maximum number of operations and audit entries that are listed.
const MAX_LISTED: usize = 100;
/// The default number of failures to retry in a second.
const PER_SECOND: u32 = 10;

const FAILURES: List = List { of: "failures", owner: Uuid::nil() };

/// The fields of a failure that name no instance.
#[derive(Serialize, ToSchema)]
pub struct FailureFields {
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

impl FailureFields {
    /// Returns the fields of a failure, with or without its message.
    pub fn of(failure: Failure, with_body: bool) -> Self {
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

/// A page of views.
#[derive(Debug)]
pub struct Page<V> {
    /// The views.
    pub items: Vec<V>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    pub next: Option<String>,
}

/// The failures with the same cause.
#[derive(Serialize, ToSchema)]
pub struct FailureCauseView {
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
pub struct FailureCauseList {
    /// The causes.
    items: Vec<FailureCauseView>,
    /// Always null: there is only one page.
    #[schema(required)]
    next: Option<String>,
}

impl From<CauseGroup> for FailureCauseView {
    fn from(group: CauseGroup) -> Self {
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

/// The properties by which a request selects failures.
#[derive(Debug, Clone, Copy, Default)]
pub struct FailureFilter<'a> {
    /// The state; open failures if `None`.
    pub state: Option<&'a str>,
    /// The cause.
    pub cause: Option<&'a String>,
    /// The dead-letter queue, or `outbox`.
    pub place: Option<&'a String>,
    /// The instance.
    pub instance: Option<PartitionKey>,
    /// The latest time at which they were found, in RFC 3339 format.
    pub until: Option<&'a str>,
}

impl FailureFilter<'_> {
    /// Returns the selection.
    ///
    /// # Errors
    /// Returns the problem of an unknown state or a text that is not a time.
    pub fn selection(&self) -> Result<Selection, Problem> {
        let standing = self.state.map(str::parse).transpose();
        let standing =
            standing.map_err(|()| Problem::bad("state is open, retrying, retried, closed or archived"))?;
        let until = self.until.map(str::parse::<Timestamp>).transpose();
        Ok(Selection {
            fingerprint: self.cause.cloned(),
            place: self.place.cloned(),
            partition: self.instance,
            until: until.map_err(|_| Problem::bad("until is not a time, such as 2026-01-08T16:53:06Z"))?,
            ..Selection::of(standing.unwrap_or(FailureStatus::Open))
        })
    }
}

/// Returns a page of failures, most recently seen first.
///
/// # Errors
/// Returns the problem of a limit or cursor that is not permitted, or of an unavailable store.
pub async fn page<V>(
    failures: &Failures,
    selection: &Selection,
    limit: Option<usize>,
    after: Option<&str>,
    view: impl Fn(Failure) -> V,
) -> Result<Page<V>, Problem> {
    let limit = paging::limit(limit, PAGE, MAX_PAGE)?;
    let after = FAILURES.after(after, ListCursor::read)?;
    let found = failures.store.select(selection, after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit);
    let next = next.map(|last| FAILURES.next(&last.place().written()));
    Ok(Page { items: found.into_iter().map(view).collect(), next })
}

/// Returns the causes of the failures of a selection, most frequent first.
pub async fn causes(failures: &Failures, selection: &Selection) -> Result<FailureCauseList, Problem> {
    let Causes { groups, .. } = failures.store.causes(selection).await?;
    Ok(FailureCauseList { items: groups.into_iter().map(FailureCauseView::from).collect(), next: None })
}

/// Returns one failure.
///
/// # Errors
/// Returns the problem of an unknown failure or an unavailable store.
pub async fn failure(
    failures: &Failures,
    id: Result<Path<FailureId>, PathRejection>,
) -> Result<Failure, Problem> {
    let found = failures.store.failures(&[failure_id(id)?]).await?.pop().flatten();
    found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such failure"))
}

fn failure_id(id: Result<Path<FailureId>, PathRejection>) -> Result<FailureId, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the failure id in the path is not a UUID"))
}

/// The reason of an operator's action.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = OperatorReason)]
pub struct ReasonBody {
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
pub async fn archive_failure(
    asked: OperatorRequest,
    id: Result<Path<FailureId>, PathRejection>,
    because: Result<Json<ReasonBody>, JsonRejection>,
) -> HttpResult {
    let (id, Json(because)) =
        (failure_id(id)?, because.map_err(|rejection| Problem::unreadable(&rejection))?);
    asked.failures.archive(&[id], &because.reason, &asked.operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The reason of a deletion.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct Reason {
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
pub async fn delete_failure(
    asked: OperatorRequest,
    id: Result<Path<FailureId>, PathRejection>,
    Parameters(Reason { reason }): Parameters<Reason>,
) -> HttpResult {
    asked.failures.delete(&[failure_id(id)?], &reason.unwrap_or_default(), &asked.operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// The result of a dry run.
#[derive(Serialize, ToSchema)]
pub struct DryRunView {
    /// Identifies the counted failures in the request that retries them.
    snapshot: String,
    /// The number of failures.
    count: u64,
    /// The failures by cause.
    groups: Vec<FailureCauseView>,
}

/// An operation that retries failures.
#[derive(Serialize, ToSchema)]
pub struct OperationView {
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

impl From<Operation> for OperationView {
    fn from(operation: Operation) -> Self {
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

/// A request to retry failures, or to count them in a dry run.
#[derive(Debug, Clone, Copy)]
pub struct RetryRequest<'a> {
    /// The snapshot of a dry run, instead of the other selections.
    pub snapshot: Option<&'a str>,
    /// The ids of failures.
    pub failures: &'a BTreeSet<Uuid>,
    /// The properties of failures.
    pub filter: FailureFilter<'a>,
    /// `true` for all open failures.
    pub all: bool,
    /// Maximum number of failures.
    pub limit: Option<u64>,
    /// Number of failures in a second.
    pub per_second: Option<u32>,
    /// Number of failures that go ahead of the others.
    pub canary: u32,
    /// `true` to count the failures without changing anything.
    pub dry_run: bool,
}

impl RetryRequest<'_> {
    /// Returns the selection. `fields` names the fields of the request that select failures by their properties.
    fn selection(&self, fields: &str) -> Result<Selection, Problem> {
        let FailureFilter { cause, place, instance, until, .. } = self.filter;
        let says_which = !self.failures.is_empty()
            || cause.is_some()
            || place.is_some()
            || instance.is_some()
            || until.is_some();
        match (self.snapshot, says_which, self.all) {
            (Some(snapshot), false, false) => serde_json::from_str(snapshot)
                .map_err(|_| Problem::bad("snapshot is not one returned by a dry run")),
            (None, true, false) | (None, false, true) => {
                let ids = self.failures.iter().map(|id| FailureId::from_uuid(*id)).collect();
                Ok(Selection { ids, ..self.filter.selection()? })
            }
            _ => Err(Problem::bad(&format!("select failures by snapshot, by {fields}, or by all"))),
        }
    }
}

/// Retries failures, or counts them in a dry run. `fields` names the fields of the request that select failures by
/// their properties.
///
/// # Errors
/// Returns the problem of a request that is not permitted, or of an unavailable store.
pub async fn retry(asked: &OperatorRequest, request: RetryRequest<'_>, fields: &str) -> HttpResult {
    let selection = request.selection(fields)?;
    if request.dry_run {
        let Snapshot { selection, groups, count } = asked.failures.snapshot(selection).await?;
        let snapshot = serde_json::to_string(&selection).map_err(|error| Problem::unavailable(&error))?;
        let groups = groups.into_iter().map(FailureCauseView::from).collect();
        return Ok(Json(DryRunView { snapshot, count, groups }).into_response());
    }
    let per_second = request.per_second.unwrap_or(PER_SECOND);
    let retry = Retry { selection, limit: request.limit, per_second, canary: request.canary };
    let begun = OperationView::from(asked.failures.retry(retry, &asked.operator.name).await?);
    let place = format!("/admin/operations/{}", begun.operation_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(begun)).into_response())
}

/// The operations on failures.
#[derive(Serialize, ToSchema)]
pub struct OperationList {
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
pub async fn list_operations(asked: OperatorRequest) -> HttpResult {
    let found = asked.failures.store.operations(MAX_LISTED).await?;
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
pub async fn show_operation(
    asked: OperatorRequest,
    id: Result<Path<OperationId>, PathRejection>,
) -> HttpResult {
    let found = asked.failures.store.operation(operation_id(id)?).await?;
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
pub async fn stop_operation(
    asked: OperatorRequest,
    id: Result<Path<OperationId>, PathRejection>,
) -> HttpResult {
    let stopped = asked.failures.stop(operation_id(id)?, &asked.operator.name).await?;
    Ok(Json(OperationView::from(stopped)).into_response())
}

/// An entry of the audit log.
#[derive(Serialize, ToSchema)]
pub struct AuditEntryView {
    /// The time of the action, in RFC 3339 format.
    at: String,
    /// The operator who performed it.
    by: String,
    /// The action, such as `archived`.
    did: String,
    /// The id of the failure, operation or instance that it applies to.
    to: String,
    /// The reason or the details.
    why: String,
}

/// The latest entries of the audit log.
#[derive(Serialize, ToSchema)]
pub struct AuditEntryList {
    /// The entries, newest first.
    items: Vec<AuditEntryView>,
    /// Always null: there is only one page.
    #[schema(required)]
    next: Option<String>,
}

/// Lists the latest actions of operators, up to 100.
#[utoipa::path(
    get,
    path = "/admin/audit",
    responses((status = 200, description = "The audit log", body = AuditEntryList), CommonErrors),
)]
pub async fn list_audit_entries(asked: OperatorRequest) -> HttpResult {
    let entries = asked.failures.store.audit_entries(MAX_LISTED).await?;
    let view = |entry: AuditEntry| AuditEntryView {
        at: entry.at.to_string(),
        by: entry.by,
        did: entry.did,
        to: entry.to,
        why: entry.why,
    };
    Ok(Json(AuditEntryList { items: entries.into_iter().map(view).collect(), next: None }).into_response())
}
