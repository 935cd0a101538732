//! What operators see and do: everything that was given up, and putting it back to work.

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
    Failure, FailureId, OperationId, Origin, Phase, Refused as NotDone, Retry, Selection, Snapshot, Standing,
    State as FailureState,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::paging::{self, List, Place};
use super::problem::{Problem, Refused};
use super::{Answer, Api};
use service::Operator;

/// How many failures a page has by default, and at most.
const PAGE: usize = 50;
const MAX_PAGE: usize = 200;
/// How many operations and acts are listed.
const MAX_LISTED: usize = 100;
/// How many failures are put back in a second where a request does not say.
const PER_SECOND: u32 = 10;

/// Somebody who may operate the deployment. Others are told that there is nothing for them.
pub(super) struct AskedOperator(pub(super) Operator);

impl<S: Send + Sync> FromRequestParts<S> for AskedOperator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let operator = parts.extensions.get::<Operator>().cloned();
        let refused = || Problem::new(StatusCode::FORBIDDEN, "this is for operators of the deployment");
        operator.map(Self).ok_or_else(refused)
    }
}

/// Something that was given up.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureView {
    /// Its id.
    failure_id: Uuid,
    /// `open`, `retrying`, `retried`, `closed` or `archived`.
    state: &'static str,
    /// Why it is in this state, where somebody has said it.
    #[schema(required)]
    state_reason: Option<String>,
    /// The dead-letter queue that had it; `outbox` for an effect.
    place: String,
    /// The queue that gave it up.
    #[schema(required)]
    queue: Option<String>,
    /// The search that it belongs to.
    #[schema(required)]
    search_id: Option<Uuid>,
    /// The message's id.
    #[schema(required)]
    message_id: Option<Uuid>,
    /// The message's name; empty when it is no message.
    message: String,
    /// Why it was given up.
    reason: String,
    /// Its cause: the same for reasons that differ in ids, numbers and names alone.
    cause: String,
    /// When it was found first, as RFC 3339 has it.
    first_seen: String,
    /// When it was found last.
    last_seen: String,
    /// How often it was given up.
    seen: u32,
    /// How often it was put back to work.
    retried: u32,
    /// The message unchanged; in the answer to a request for one failure alone.
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

/// Some of the failures.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureList {
    /// The failures, those seen last first.
    items: Vec<FailureView>,
    /// Where the page ends, for the `after` of the next one; null when nothing follows.
    #[schema(required)]
    next: Option<String>,
}

/// The failures of one cause.
#[derive(Serialize, ToSchema)]
pub(super) struct GroupView {
    /// The cause.
    cause: String,
    /// One of the reasons, as an example.
    reason: String,
    /// The names of their messages.
    messages: BTreeSet<String>,
    /// How many there are.
    count: u64,
    /// When the first one was found first.
    first_seen: String,
    /// When the last one was found last.
    last_seen: String,
}

/// Causes, the most frequent first; at most 100.
#[derive(Serialize, ToSchema)]
pub(super) struct GroupList {
    /// The causes.
    items: Vec<GroupView>,
    /// Always null: there are no more pages.
    #[schema(required)]
    next: Option<String>,
}

impl From<saga::failures::Group> for GroupView {
    fn from(group: saga::failures::Group) -> Self {
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

/// Which failures are meant.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct FailuresQuery {
    /// Only those in this state: `open`, `retrying`, `retried`, `closed` or `archived`; `open`.
    state: Option<String>,
    /// Only those of this cause.
    cause: Option<String>,
    /// Only those from this dead-letter queue, or from the `outbox`.
    place: Option<String>,
    /// Only those of this search.
    search: Option<String>,
    /// Only those that were found last at this time or before, as RFC 3339 has it.
    until: Option<String>,
    /// How many failures, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
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
        ..Selection::of(Standing::Open)
    })
}

impl Place for saga::failures::Place {
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

/// What was given up, that seen last first.
#[utoipa::path(
    get,
    path = "/admin/failures",
    params(FailuresQuery),
    responses((status = 200, description = "Some of it", body = FailureList), Refused),
)]
pub(super) async fn list_failures(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    query: Result<Query<FailuresQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let after = FAILURES.after(query.after.as_deref())?;
    let found = api.failures.store.select(&query.selection()?, after, limit).await?;
    let next = found.last().filter(|_| found.len() == limit).map(|last| FAILURES.next(&last.place()));
    let items = found.into_iter().map(|failure| FailureView::of(failure, false)).collect();
    Ok(Json(FailureList { items, next }).into_response())
}

/// What was given up, counted by cause.
#[utoipa::path(
    get,
    path = "/admin/failures/groups",
    params(FailuresQuery),
    responses((status = 200, description = "The causes", body = GroupList), Refused),
)]
pub(super) async fn list_failure_groups(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    query: Result<Query<FailuresQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let groups = api.failures.store.groups(&query.selection()?).await?;
    let items = groups.into_iter().map(GroupView::from).collect();
    Ok(Json(GroupList { items, next: None }).into_response())
}

/// One failure, with its message.
#[utoipa::path(
    get,
    path = "/admin/failures/{failure}",
    params(("failure" = Uuid, Path, description = "The failure")),
    responses((status = 200, description = "The failure", body = FailureView), Refused),
)]
pub(super) async fn show_failure(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    id: Result<Path<FailureId>, PathRejection>,
) -> Answer {
    let id = failure_id(id)?;
    let found = api.failures.store.failures(&[id]).await?.pop().flatten();
    let found = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such failure"))?;
    Ok(Json(FailureView::of(found, true)).into_response())
}

fn failure_id(id: Result<Path<FailureId>, PathRejection>) -> Result<FailureId, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the failure id in the path is not a UUID"))
}

/// Why something is done.
#[derive(Deserialize, ToSchema)]
pub(super) struct Because {
    /// For whoever looks later; 1 to 1,000 characters.
    reason: String,
}

/// Put a failure aside.
#[utoipa::path(
    post,
    path = "/admin/failures/{failure}/archive",
    params(("failure" = Uuid, Path, description = "The failure")),
    request_body = Because,
    responses(
        (status = 204, description = "Nobody is shown it any more who does not ask for it"),
        (status = 409, description = "It is being retried, or somebody else has changed it at the same moment", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn archive_failure(
    State(api): State<Arc<Api>>,
    AskedOperator(operator): AskedOperator,
    id: Result<Path<FailureId>, PathRejection>,
    because: Result<Json<Because>, JsonRejection>,
) -> Answer {
    let (id, Json(because)) = (failure_id(id)?, because.map_err(|rejection| unreadable(&rejection))?);
    api.failures.archive(&[id], &because.reason, &operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Why something is deleted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Reason {
    /// For whoever looks later; 1 to 1,000 characters.
    reason: Option<String>,
}

/// Delete a failure for good.
///
/// An effect is deleted from its outbox too: what it should have done is never done.
#[utoipa::path(
    delete,
    path = "/admin/failures/{failure}",
    params(("failure" = Uuid, Path, description = "The failure"), Reason),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "It is being retried, or somebody else has changed it at the same moment", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn delete_failure(
    State(api): State<Arc<Api>>,
    AskedOperator(operator): AskedOperator,
    id: Result<Path<FailureId>, PathRejection>,
    reason: Result<Query<Reason>, QueryRejection>,
) -> Answer {
    let Query(Reason { reason }) = reason.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    api.failures.delete(&[failure_id(id)?], &reason.unwrap_or_default(), &operator.name).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// What is to be put back to work. Either `snapshot` says which failures, or the other fields do.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewRetry {
    /// The `snapshot` of a dry run: the failures that it counted, and none that was found since.
    snapshot: Option<String>,
    /// These failures; at most 1,000.
    #[serde(default)]
    failures: BTreeSet<Uuid>,
    /// Those of this cause.
    cause: Option<String>,
    /// Those from this dead-letter queue, or from the `outbox`.
    place: Option<String>,
    /// Those of this search.
    search: Option<String>,
    /// Those that were found last at this time or before, as RFC 3339 has it.
    until: Option<String>,
    /// All that are open, where nothing else is said.
    #[serde(default)]
    all: bool,
    /// How many at most.
    limit: Option<u64>,
    /// How many in a second, 1 to 1,000; 10.
    per_second: Option<u32>,
    /// The number of failures that go ahead, up to 10. The others follow once workers have processed those, within a minute
    /// or within five if a worker is still on them.
    #[serde(default)]
    canary: u32,
    /// Count only, and change nothing.
    #[serde(default)]
    dry_run: bool,
}

impl NewRetry {
    fn selection(&self) -> Result<Selection, Problem> {
        let says_which = !self.failures.is_empty()
            || [&self.cause, &self.place, &self.search, &self.until].iter().any(|field| field.is_some());
        match (&self.snapshot, says_which, self.all) {
            (Some(snapshot), false, false) => {
                serde_json::from_str(snapshot).map_err(|_| Problem::bad("snapshot is not that of a dry run"))
            }
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
                "say which failures: by a snapshot, by failures, cause, place, search and until, or by all",
            )),
        }
    }
}

/// What a retry would put back to work.
#[derive(Serialize, ToSchema)]
pub(super) struct SnapshotView {
    /// Stands for these failures; for the retry.
    snapshot: String,
    /// How many.
    count: u64,
    /// By cause.
    groups: Vec<GroupView>,
}

/// An operation on failures.
#[derive(Serialize, ToSchema)]
pub(super) struct OperationView {
    /// Its id.
    operation_id: Uuid,
    /// Who asked for it.
    by: String,
    /// When, as RFC 3339 has it.
    begun_at: String,
    /// `running`, `watching` those that went ahead, `done` or `stopped`.
    phase: &'static str,
    /// Why it was stopped.
    #[schema(required)]
    phase_reason: Option<String>,
    /// How many failures there were.
    total: u64,
    /// How many were put back to work.
    retried: u64,
    /// How many in a second.
    per_second: u32,
    /// How many go ahead.
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

/// Put failures back to work, or count what that would be.
#[utoipa::path(
    post,
    path = "/admin/retries",
    request_body = NewRetry,
    responses(
        (status = 200, description = "What a dry run has counted", body = SnapshotView),
        (status = 202, description = "It has begun", body = OperationView),
        (status = 409, description = "Another one is running, or none of these failures is open", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn retry_failures(
    State(api): State<Arc<Api>>,
    AskedOperator(operator): AskedOperator,
    request: Result<Json<NewRetry>, JsonRejection>,
) -> Answer {
    let Json(request) = request.map_err(|rejection| unreadable(&rejection))?;
    let selection = request.selection()?;
    if request.dry_run {
        let Snapshot { selection, groups, count } = api.failures.snapshot(selection).await?;
        let snapshot = serde_json::to_string(&selection).map_err(|error| Problem::unavailable(&error))?;
        let groups = groups.into_iter().map(GroupView::from).collect();
        return Ok(Json(SnapshotView { snapshot, count, groups }).into_response());
    }
    let per_second = request.per_second.unwrap_or(PER_SECOND);
    let retry = Retry { selection, limit: request.limit, per_second, canary: request.canary };
    let begun = OperationView::from(api.failures.retry(retry, &operator.name).await?);
    let place = format!("/admin/operations/{}", begun.operation_id);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, place)], Json(begun)).into_response())
}

/// Operations on failures.
#[derive(Serialize, ToSchema)]
pub(super) struct OperationList {
    /// The operations, the latest first.
    items: Vec<OperationView>,
    /// Always null: there are no more pages.
    #[schema(required)]
    next: Option<String>,
}

/// The latest operations on failures, at most 100.
#[utoipa::path(
    get,
    path = "/admin/operations",
    responses((status = 200, description = "The operations", body = OperationList), Refused),
)]
pub(super) async fn list_operations(State(api): State<Arc<Api>>, _: AskedOperator) -> Answer {
    let found = api.failures.store.operations(MAX_LISTED).await?;
    let items = found.into_iter().map(OperationView::from).collect();
    Ok(Json(OperationList { items, next: None }).into_response())
}

/// One operation on failures, and how far it is.
#[utoipa::path(
    get,
    path = "/admin/operations/{operation}",
    params(("operation" = Uuid, Path, description = "The operation")),
    responses((status = 200, description = "The operation", body = OperationView), Refused),
)]
pub(super) async fn show_operation(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    id: Result<Path<OperationId>, PathRejection>,
) -> Answer {
    let found = api.failures.store.operation(operation_id(id)?).await?;
    let found = found.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such operation"))?;
    Ok(Json(OperationView::from(found)).into_response())
}

fn operation_id(id: Result<Path<OperationId>, PathRejection>) -> Result<OperationId, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the operation id in the path is not a UUID"))
}

/// Stop an operation. What it has put back to work stays so.
#[utoipa::path(
    post,
    path = "/admin/operations/{operation}/stop",
    params(("operation" = Uuid, Path, description = "The operation")),
    responses(
        (status = 200, description = "It is stopped", body = OperationView),
        (status = 409, description = "It is not running", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn stop_operation(
    State(api): State<Arc<Api>>,
    AskedOperator(operator): AskedOperator,
    id: Result<Path<OperationId>, PathRejection>,
) -> Answer {
    let stopped = api.failures.stop(operation_id(id)?, &operator.name).await?;
    Ok(Json(OperationView::from(stopped)).into_response())
}

/// Something that somebody did.
#[derive(Serialize, ToSchema)]
pub(super) struct ActView {
    /// When, as RFC 3339 has it.
    at: String,
    /// Who.
    by: String,
    /// What, such as `archived`.
    did: String,
    /// To which failure or operation.
    to: String,
    /// Why, or what exactly.
    why: String,
}

/// What was done.
#[derive(Serialize, ToSchema)]
pub(super) struct ActList {
    /// The acts, the latest first.
    items: Vec<ActView>,
    /// Always null: there are no more pages.
    #[schema(required)]
    next: Option<String>,
}

/// The latest things that operators did about failures, at most 100.
#[utoipa::path(
    get,
    path = "/admin/audit",
    responses((status = 200, description = "What was done", body = ActList), Refused),
)]
pub(super) async fn list_acts(State(api): State<Arc<Api>>, _: AskedOperator) -> Answer {
    let acts = api.failures.store.acts(MAX_LISTED).await?;
    let view = |act: saga::failures::Act| ActView {
        at: act.at.to_string(),
        by: act.by,
        did: act.did,
        to: act.to,
        why: act.why,
    };
    Ok(Json(ActList { items: acts.into_iter().map(view).collect(), next: None }).into_response())
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
