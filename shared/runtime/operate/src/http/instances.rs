//! Handlers for single instances of any system: lists, details, history, controls and events.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use messages::{PartitionKey, Queue};
use outbox::{ConditionError, Cursor, FieldFilter};
use saga::{Control, ControlOutcome, EventDelivery, Intervention, OperatorEvent, Outboxes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::effects::EffectFields;
use super::extract::{OperatorRequest, Parameters};
use super::history::{HistoryPage, HistoryQuery, MessageDecisionList};
use super::paging::ListCursor;
use super::problem::{CommonErrors, Problem};
use super::{HttpResult, OperatorApi, paging};
use crate::Effect;
use crate::instance::{self, InstanceDetails, InstanceFilter};

/// The default and maximum number of instances that are listed.
const LISTED: usize = 50;
const MAX_LISTED: usize = 200;
/// The maximum length of a reason, and of the id of a command.
const MAX_REASON: usize = 1_000;
const MAX_ID: usize = 200;

/// An instance, as the saga shows it to readers.
#[derive(Serialize, ToSchema)]
pub(super) struct InstanceView {
    /// The id of the instance.
    instance_id: Uuid,
    /// The time from which the saga shows it, in RFC 3339 format.
    created_at: String,
    /// The content that the saga shows to readers.
    #[schema(value_type = Object)]
    view: Value,
}

/// A page of instances.
#[derive(Serialize, ToSchema)]
pub(super) struct InstanceList {
    /// The instances. Those that have not ended are listed oldest first, the others latest first.
    items: Vec<InstanceView>,
    /// The value of `after` for the next page; null after the last one. With `where`, a page may be short although
    /// another one follows.
    #[schema(required)]
    next: Option<String>,
}

/// Selects a page of instances.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct InstancesQuery {
    /// Maximum number of instances to return, from 1 to 200. The default is 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` of the previous page.
    after: Option<String>,
    /// `true` for instances that have ended, `false` for the others, which is the default.
    #[serde(default)]
    ended: bool,
    /// Only instances whose view has this value in a field, as `FIELD=VALUE`. Dots separate the names of nested fields,
    /// such as `customer.country=CH`.
    #[serde(rename = "where")]
    condition: Option<String>,
}

/// Lists instances by their views as they were last written. A saga without views has no instances in this list.
#[utoipa::path(
    get,
    path = "/admin/instances",
    params(InstancesQuery),
    responses((status = 200, description = "The instances", body = InstanceList), CommonErrors),
)]
pub(super) async fn list_instances(
    State(api): State<Arc<OperatorApi>>,
    _: OperatorRequest,
    Parameters(query): Parameters<InstancesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, LISTED, MAX_LISTED)?;
    let condition = query.condition.unwrap_or_default();
    let fields = match condition.as_str() {
        "" => FieldFilter::default(),
        condition => condition.parse().map_err(|error: ConditionError| Problem::bad(&error.to_string()))?,
    };
    let filter = InstanceFilter { ended: query.ended, fields };
    let owner = Uuid::new_v5(&Uuid::nil(), format!("{}\n{condition}", filter.ended).as_bytes());
    let list = paging::List { of: "instances", owner };
    let after = list.after(query.after.as_deref(), Cursor::read)?;
    let page = instance::list(&api.engine, &filter, after, limit).await?;
    let items = page.items.into_iter().map(|view| InstanceView {
        instance_id: view.partition.as_uuid(),
        created_at: view.created_at.to_string(),
        view: view.body,
    });
    let next = page.next.map(|place| list.next(&place.written()));
    Ok(Json(InstanceList { items: items.collect(), next }).into_response())
}

/// When and why an operator acted on an instance.
#[derive(Serialize, ToSchema)]
pub(super) struct InterventionView {
    /// The time, in RFC 3339 format.
    at: String,
    /// The operator.
    by: String,
    /// The reason; empty if the operator gave none.
    reason: String,
}

impl From<Intervention> for InterventionView {
    fn from(Intervention { at, by, why }: Intervention) -> Self {
        Self { at: at.to_string(), by, reason: why }
    }
}

/// An instance as stored.
#[derive(Serialize, ToSchema)]
pub(super) struct InstanceDetailsView {
    /// The id of the instance.
    instance_id: Uuid,
    /// The number of writes.
    version: u64,
    /// The state, as the saga serializes it.
    #[schema(value_type = Object)]
    state: Value,
    /// The version of the state's format.
    state_version: u32,
    /// The time at which it ended, in RFC 3339 format; null if it has not ended.
    #[schema(required)]
    ended_at: Option<String>,
    /// When and why an operator paused it.
    #[schema(required)]
    paused: Option<InterventionView>,
    /// When and why an operator ended it.
    #[schema(required)]
    terminated: Option<InterventionView>,
    /// The number of messages that it waits for.
    expected: usize,
    /// `true` if it waits for a message that nothing in its outbox causes. A message that was sent may still be in a
    /// queue.
    is_stalled: bool,
    /// Effects that are not performed yet.
    effects: Vec<EffectFields>,
}

impl InstanceDetailsView {
    fn of(details: InstanceDetails, now: jiff::Timestamp) -> Self {
        let effect = |entry| Effect { outboxes: Outboxes::Sagas, owner: None, stored: Ok(entry) };
        let effects = details.outbox.into_iter().map(|entry| EffectFields::of(effect(entry), now).0);
        Self {
            instance_id: details.partition.as_uuid(),
            version: details.version,
            state: details.state.value(),
            state_version: details.state_version,
            ended_at: details.ended_at.map(|at| at.to_string()),
            paused: details.paused.map(InterventionView::from),
            terminated: details.terminated.map(InterventionView::from),
            expected: details.expected.len(),
            is_stalled: details.is_stalled,
            effects: effects.collect(),
        }
    }
}

fn instance_id(id: Result<Path<PartitionKey>, PathRejection>) -> Result<PartitionKey, Problem> {
    id.map(|Path(id)| id).map_err(|_| Problem::bad("the instance id in the path is not a UUID"))
}

fn no_such_instance() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "there is no such instance")
}

/// Returns an instance as stored. An instance that ended some time ago may be removed.
#[utoipa::path(
    get,
    path = "/admin/instances/{instance}",
    params(("instance" = Uuid, Path, description = "The instance")),
    responses((status = 200, description = "The instance", body = InstanceDetailsView), CommonErrors),
)]
pub(super) async fn show_instance(
    State(api): State<Arc<OperatorApi>>,
    _: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
) -> HttpResult {
    let found = instance::stored(&api.engine, instance_id(id)?).await?.ok_or_else(no_such_instance)?;
    Ok(Json(InstanceDetailsView::of(found, api.engine.host.now())).into_response())
}

/// Lists the decisions about each delivery of each message of an instance, in chronological order.
///
/// The deployment sets the retention of decisions; if it keeps no history, the list is empty. A decision becomes
/// visible shortly after it was made.
#[utoipa::path(
    get,
    path = "/admin/instances/{instance}/history",
    params(("instance" = Uuid, Path, description = "The instance"), HistoryQuery),
    responses((status = 200, description = "A page of decisions", body = MessageDecisionList), CommonErrors),
)]
pub(super) async fn list_history(
    State(api): State<Arc<OperatorApi>>,
    _: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
    Parameters(query): Parameters<HistoryQuery>,
) -> HttpResult {
    let id = instance_id(id)?;
    let page = HistoryPage::of(id.as_uuid(), &query)?;
    let found = match &api.engine.history {
        Some(history) => history.history(Some(id), page.after, page.limit).await?,
        None => Vec::new(),
    };
    Ok(Json(page.with(found)).into_response())
}

/// The reason for pausing, resuming or terminating an instance.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlReason {
    /// The reason, for the history and the audit log; up to 1,000 characters. Required for a termination.
    #[serde(default)]
    #[schema(max_length = 1_000)]
    reason: String,
}

/// The result of pausing, resuming or terminating an instance.
#[derive(Serialize, ToSchema)]
pub(super) struct ControlView {
    /// The id of the instance.
    instance_id: Uuid,
    /// `paused`, `resumed` or `terminated`.
    done: &'static str,
    /// `false` if the instance was in this condition before.
    changed: bool,
}

async fn control(
    api: &OperatorApi,
    asked: &OperatorRequest,
    control: Control,
    id: Result<Path<PartitionKey>, PathRejection>,
    body: Result<Json<ControlReason>, JsonRejection>,
) -> HttpResult {
    let (id, Json(ControlReason { reason })) =
        (instance_id(id)?, body.map_err(|rejection| Problem::unreadable(&rejection))?);
    let min = usize::from(control == Control::Terminate);
    let length = if reason.trim().is_empty() { 0 } else { reason.chars().count() };
    if !(min..=MAX_REASON).contains(&length) {
        let detail = format!("the reason must have {min} to 1,000 characters");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &detail));
    }
    let outcome = api.engine.control(id, control, &asked.operator.name, &reason).await?;
    let changed = outcome == ControlOutcome::Changed;
    Ok(Json(ControlView { instance_id: id.as_uuid(), done: control.done(), changed }).into_response())
}

/// Pauses an instance: its messages wait until it is resumed.
#[utoipa::path(
    post,
    path = "/admin/instances/{instance}/pause",
    params(("instance" = Uuid, Path, description = "The instance")),
    request_body = ControlReason,
    responses(
        (status = 200, description = "The instance is paused", body = ControlView),
        (status = 409, description = "The instance has ended, or another worker holds it", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The reason is too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn pause_instance(
    State(api): State<Arc<OperatorApi>>,
    asked: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
    body: Result<Json<ControlReason>, JsonRejection>,
) -> HttpResult {
    control(&api, &asked, Control::Pause, id, body).await
}

/// Resumes a paused instance.
#[utoipa::path(
    post,
    path = "/admin/instances/{instance}/resume",
    params(("instance" = Uuid, Path, description = "The instance")),
    request_body = ControlReason,
    responses(
        (status = 200, description = "The instance is not paused", body = ControlView),
        (status = 409, description = "The instance has ended, or another worker holds it", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The reason is too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn resume_instance(
    State(api): State<Arc<OperatorApi>>,
    asked: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
    body: Result<Json<ControlReason>, JsonRejection>,
) -> HttpResult {
    control(&api, &asked, Control::Resume, id, body).await
}

/// Ends an instance permanently.
///
/// Later messages are ignored, and effects that were decided are still performed.
#[utoipa::path(
    post,
    path = "/admin/instances/{instance}/terminate",
    params(("instance" = Uuid, Path, description = "The instance")),
    request_body = ControlReason,
    responses(
        (status = 200, description = "The instance has ended", body = ControlView),
        (status = 409, description = "The instance has ended by itself, or another worker holds it", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The reason is missing or too long", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn terminate_instance(
    State(api): State<Arc<OperatorApi>>,
    asked: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
    body: Result<Json<ControlReason>, JsonRejection>,
) -> HttpResult {
    control(&api, &asked, Control::Terminate, id, body).await
}

/// An event for an instance.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewEvent {
    /// The id of this command; 1 to 200 characters. The event is sent once for each id, even if the request is
    /// repeated.
    #[schema(min_length = 1, max_length = 200)]
    id: String,
    /// The name of the event, such as `Paid`; `/system.json` lists the names.
    event: String,
    /// The data of the event, in its current version.
    #[schema(value_type = Object)]
    data: serde_json::Map<String, Value>,
    /// The queue of the saga, if several sagas have an event with this name.
    queue: Option<String>,
    /// `true` if the event may begin an instance that does not exist.
    #[serde(default)]
    may_begin: bool,
}

/// The result of sending an event.
#[derive(Serialize, ToSchema)]
pub(super) struct SentEventView {
    /// `false` if an earlier request with the same id has sent it.
    sent: bool,
    /// The id of the message; null if it was sent before.
    #[schema(required)]
    message_id: Option<Uuid>,
}

/// Sends an event to an instance, once for each id.
#[utoipa::path(
    post,
    path = "/admin/instances/{instance}/events",
    params(("instance" = Uuid, Path, description = "The instance")),
    request_body = NewEvent,
    responses(
        (status = 200, description = "The event is sent", body = SentEventView),
        (status = 409, description = "The instance has ended or belongs to another saga, or the id belongs to another event", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "No saga has such an event, or it could not read its data", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn send_event(
    State(api): State<Arc<OperatorApi>>,
    asked: OperatorRequest,
    id: Result<Path<PartitionKey>, PathRejection>,
    body: Result<Json<NewEvent>, JsonRejection>,
) -> HttpResult {
    let (partition, Json(new)) =
        (instance_id(id)?, body.map_err(|rejection| Problem::unreadable(&rejection))?);
    let NewEvent { id: key, event: name, data, queue, may_begin } = new;
    if !(1..=MAX_ID).contains(&key.chars().count()) {
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "the id must have 1 to 200 characters"));
    }
    let (queue, data) = (queue.map(Queue::from), Value::Object(data));
    let event = OperatorEvent { partition, queue, name, data, key, may_begin };
    let message_id = match api.system.send_event(&api.engine, &event, &asked.operator.name).await? {
        EventDelivery::Sent(message) => Some(message.as_uuid()),
        EventDelivery::SentBefore => None,
    };
    Ok(Json(SentEventView { sent: message_id.is_some(), message_id }).into_response())
}
