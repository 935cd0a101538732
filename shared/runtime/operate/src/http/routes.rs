//! Handlers for a whole system: its description, health, failures and effects.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;
use messages::PartitionKey;
use saga::failures::{Failure, FailureId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::effects::{self, EffectFields};
use super::extract::{OperatorRequest, Parameters};
use super::failures::{
    self, DryRunView, FailureCauseList, FailureFields, FailureFilter, OperationView, Page, RetryRequest,
};
use super::problem::{CommonErrors, Problem};
use super::{HttpResult, OperatorApi};
use crate::EffectFilter;
use crate::health::Report;

/// An event that a saga declares.
#[derive(Serialize, ToSchema)]
pub(super) struct EventTypeView {
    /// The queue of the saga.
    queue: String,
    /// The name of the event.
    event: &'static str,
    /// Its current version.
    version: u16,
}

/// The system, and the caller.
#[derive(Serialize, ToSchema)]
pub(super) struct SystemView {
    /// The name of the system.
    system: &'static str,
    /// The name of the caller in the history and the audit log.
    operator: String,
    /// The command line with the same functions.
    program: String,
    /// The events that can be sent to instances.
    events: Vec<EventTypeView>,
}

/// Describes the system: its name, and the events that can be sent to its instances.
#[utoipa::path(
    get,
    path = "/system.json",
    responses((status = 200, description = "The system", body = SystemView), CommonErrors),
)]
pub(super) async fn show_system(
    State(api): State<Arc<OperatorApi>>,
    asked: OperatorRequest,
) -> Json<SystemView> {
    let declared = api.system.queues().iter().filter_map(|spec| Some((&spec.queue, spec.events.as_ref()?)));
    let events = declared.flat_map(|(queue, events)| {
        let queue = queue.name();
        events.kinds.iter().map(move |kind| EventTypeView {
            queue: queue.to_owned(),
            event: kind.name,
            version: kind.version,
        })
    });
    Json(SystemView {
        system: api.system.name(),
        operator: asked.operator.name,
        program: api.program.clone(),
        events: events.collect(),
    })
}

/// Returns the health report of the system.
#[utoipa::path(
    get,
    path = "/admin/health",
    responses(
        (status = 200, description = "Every store and queue responds", body = Report),
        (status = 503, description = "A store or queue does not respond", body = Report),
        (status = 403, description = "The caller is not an operator of the deployment", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn show_report(State(api): State<Arc<OperatorApi>>, _: OperatorRequest) -> Response {
    let report = api.system.report(&api.health, &api.program).await;
    let status = if report.ok { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(report)).into_response()
}

/// A dead-lettered message or an exhausted effect.
#[derive(Serialize, ToSchema)]
pub(super) struct FailureView {
    /// The instance that it belongs to.
    #[schema(required)]
    instance_id: Option<Uuid>,
    #[serde(flatten)]
    failure: FailureFields,
}

impl FailureView {
    fn of(failure: Failure, with_body: bool) -> Self {
        let instance_id = failure.partition.map(|instance| instance.as_uuid());
        Self { instance_id, failure: FailureFields::of(failure, with_body) }
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
    state: Option<String>,
    /// Returns only failures with this cause.
    cause: Option<String>,
    /// Returns only failures from this dead-letter queue, or from the `outbox`.
    place: Option<String>,
    /// Returns only failures of this instance.
    instance: Option<Uuid>,
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
    fn filter(&self) -> FailureFilter<'_> {
        FailureFilter {
            state: self.state.as_deref(),
            cause: self.cause.as_ref(),
            place: self.place.as_ref(),
            instance: self.instance.map(PartitionKey::from_uuid),
            until: self.until.as_deref(),
        }
    }
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
    let (selection, after) = (query.filter().selection()?, query.after.as_deref());
    let view = |failure| FailureView::of(failure, false);
    let Page { items, next } = failures::page(&asked.failures, &selection, query.limit, after, view).await?;
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
    Ok(Json(failures::causes(&asked.failures, &query.filter().selection()?).await?).into_response())
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
    let found = failures::failure(&asked.failures, id).await?;
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
    /// Failures of this instance.
    instance: Option<Uuid>,
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
    let Json(request) = request.map_err(|rejection| Problem::unreadable(&rejection))?;
    let filter = FailureFilter {
        state: None,
        cause: request.cause.as_ref(),
        place: request.place.as_ref(),
        instance: request.instance.map(PartitionKey::from_uuid),
        until: request.until.as_deref(),
    };
    let retry = RetryRequest {
        snapshot: request.snapshot.as_deref(),
        failures: &request.failures,
        filter,
        all: request.all,
        limit: request.limit,
        per_second: request.per_second,
        canary: request.canary,
        dry_run: request.dry_run,
    };
    failures::retry(&asked, retry, "failures, cause, place, instance and until").await
}

/// An effect in an outbox that is still to be performed.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectView {
    /// The instance that it belongs to.
    #[schema(required)]
    instance_id: Option<Uuid>,
    #[serde(flatten)]
    effect: EffectFields,
}

/// A page of effects.
#[derive(Serialize, ToSchema)]
pub(super) struct EffectList {
    /// The effects; those of sagas come first.
    items: Vec<EffectView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

/// Selects effects.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EffectsQuery {
    /// Returns only effects in this state: `waiting`, `claimed` or `poisoned`.
    state: Option<String>,
    /// Maximum number of effects to return, from 1 to 200. The default is 50. The effects of one instance are not
    /// split, so a page may have a few more.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// Lists the effects that are still to be performed: messages to send, timers, and updates of views.
///
/// Up to 1,000 instances are examined for one page. With a filter, a page may therefore be short or empty even if more
/// pages follow.
#[utoipa::path(
    get,
    path = "/admin/effects",
    params(EffectsQuery),
    responses((status = 200, description = "A page of effects", body = EffectList), CommonErrors),
)]
pub(super) async fn list_effects(
    State(api): State<Arc<OperatorApi>>,
    _: OperatorRequest,
    Parameters(query): Parameters<EffectsQuery>,
) -> HttpResult {
    let wanted = EffectFilter { state: effects::state(query.state.as_deref())?, due_by: Timestamp::MAX };
    let (stores, now) = (api.health.stores(), api.engine.host.now());
    let view = |effect, instance: Option<PartitionKey>| EffectView {
        instance_id: instance.map(|instance| instance.as_uuid()),
        effect,
    };
    let after = query.after.as_deref();
    let Page { items, next } = effects::page(stores, &wanted, now, query.limit, after, view).await?;
    Ok(Json(EffectList { items, next }).into_response())
}
