//! Handlers for decisions about many pairs at once, and for the progress of the decisions.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use imports::manifest::MAX_NAME_CHARS;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::extract::{AuthorizedActor, AuthorizedProject};
use super::paging::List;
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::{BulkAction, BulkRequest, BulkStep, DecisionProgress, Rule, ScopePlace};

/// A request to decide pairs by a rule.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewBulkAction {
    /// The id of the bulk action, chosen by the client. Requests with the same id continue the action.
    id: Uuid,
    /// The rule that selects the pairs.
    rule: Rule,
    /// The database whose studies are kept; required by the rule `preferred_source`.
    #[schema(max_length = 255)]
    database: Option<String>,
    /// The `next` cursor of the previous response.
    after: Option<String>,
}

/// The result of a request to decide pairs by a rule.
#[derive(Serialize, ToSchema)]
struct BulkActionStepView {
    /// Number of decisions that the request has made.
    decided: u64,
    /// The cursor for the `after` of the next request; null if all pairs were examined.
    #[schema(required)]
    next: Option<String>,
}

/// Decides about pairs of a review by a rule: up to 1,000 pairs per request, among up to 1,000 imports.
///
/// Repeat the request with the `next` cursor until it is null. Pairs that a reviewer has decided keep their decision.
/// All requests with the same id form one action, which can be undone as a whole. A repeated request changes nothing.
#[utoipa::path(
    post,
    path = "/projects/{project}/duplicates/bulk",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = NewBulkAction,
    responses(
        (status = 200, description = "The decisions are stored; the marks follow", body = BulkActionStepView),
        (status = 422, description = "The request is invalid, the review has too many bulk actions, or the action has 40,000 decisions", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn decide_in_bulk(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<NewBulkAction>, JsonRejection>,
) -> HttpResult {
    let Json(NewBulkAction { id, rule, database, after }) =
        new.map_err(|rejection| Problem::unreadable(&rejection, "a bulk action"))?;
    if database.as_ref().is_some_and(|name| name.chars().count() > MAX_NAME_CHARS) {
        let why = format!("the database has more than {MAX_NAME_CHARS} characters");
        return Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &why));
    }
    let list = List { of: "bulk decisions", owner: project.as_uuid() };
    let after = list.after::<ScopePlace>(after.as_deref())?;
    let request = BulkRequest { id, rule, database, after };
    let step = api.service.decide_in_bulk(project, &request, &person).await?;
    let BulkStep { decided, next } =
        step.map_err(|refusal| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &refusal.to_string()))?;
    let next = next.map(|place| list.next(&place));
    Ok(Json(BulkActionStepView { decided, next }).into_response())
}

/// A bulk action.
#[derive(Serialize, ToSchema)]
struct BulkActionView {
    /// Its id.
    id: Uuid,
    /// The time at which it began.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The reviewer, named as in the list of decisions.
    by: String,
    /// The rule.
    rule: Rule,
    /// The database whose studies are kept.
    #[schema(required)]
    database: Option<String>,
    /// Number of decisions.
    decided: u64,
    /// The time at which it was undone; null if it was not.
    #[schema(required, format = DateTime)]
    undone_at: Option<String>,
    /// The reviewer who undid it.
    #[schema(required)]
    undone_by: Option<String>,
}

impl From<BulkAction> for BulkActionView {
    fn from(BulkAction { id, at, by, rule, database, decided, undone, .. }: BulkAction) -> Self {
        let (undone_at, undone_by) = undone.map(|undone| (undone.at.to_string(), undone.by)).unzip();
        Self { id, at, by, rule, database, decided, undone_at, undone_by }
    }
}

/// The bulk actions of a review.
#[derive(Serialize, ToSchema)]
struct BulkActionList {
    /// The actions, newest first, including those that were undone.
    items: Vec<BulkActionView>,
}

/// Lists the bulk actions of a review with their author and time, newest first.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates/bulk",
    params(("project" = Uuid, Path, description = "The review")),
    responses((status = 200, description = "The bulk actions", body = BulkActionList), CommonErrors),
)]
pub(super) async fn list_bulk(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
) -> HttpResult {
    let actions = api.service.bulk_actions(project).await?;
    Ok(Json(BulkActionList { items: actions.into_iter().rev().map(BulkActionView::from).collect() })
        .into_response())
}

/// Undoes a bulk action: restores the decisions that it replaced, and keeps later ones.
#[utoipa::path(
    post,
    path = "/projects/{project}/duplicates/bulk/{bulk}/undo",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("bulk" = Uuid, Path, description = "The bulk action"),
    ),
    responses(
        (status = 204, description = "The action was undone before"),
        (status = 202, description = "The action is undone; the marks follow"),
        CommonErrors,
    ),
)]
pub(super) async fn undo_bulk(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    AuthorizedActor(person): AuthorizedActor,
    Path((_, bulk)): Path<(String, String)>,
) -> HttpResult {
    let bulk = Uuid::parse_str(&bulk).map_err(|_| Problem::bad("the id in the path is not a UUID"))?;
    match api.service.undo_bulk(project, bulk, &person).await? {
        Some(true) => Ok(StatusCode::ACCEPTED.into_response()),
        Some(false) => Ok(StatusCode::NO_CONTENT.into_response()),
        None => Err(Problem::new(StatusCode::NOT_FOUND, "the review has no such bulk action")),
    }
}

/// The number of decided and undecided pairs of a review.
#[derive(Serialize, ToSchema)]
struct DecisionProgressView {
    /// Pairs that a reviewer has decided.
    decided: u64,
    /// Likely and possible pairs that wait for a decision.
    open: u64,
    /// Certain pairs, which count as duplicates without a decision.
    certain: u64,
}

/// Returns how many pairs of a review are decided and undecided.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates/progress",
    params(("project" = Uuid, Path, description = "The review")),
    responses(
        (status = 200, description = "The progress", body = DecisionProgressView),
        (status = 422, description = "The review has more than 1,000 imports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn show_progress(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
) -> HttpResult {
    let progress = api.service.decision_progress(project).await?;
    let DecisionProgress { decided, open, certain } =
        progress.map_err(|too_many| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &too_many.to_string()))?;
    Ok(Json(DecisionProgressView { decided, open, certain }).into_response())
}
