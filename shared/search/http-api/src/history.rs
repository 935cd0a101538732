//! Handlers for the history of a search: the decision about each message, and its reason.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use imports::SearchId;
use operate::http::history::{HistoryPage, MessageDecisionList};
use serde::Deserialize;
use utoipa::IntoParams;

use super::admin::AuthorizedOperator;
use super::extract::AuthorizedSearch;
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::ProjectAccess;

/// Selects a page of decisions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Maximum number of decisions to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// Lists the decisions about each delivery of each message of an import, in chronological order.
///
/// The deployment sets the retention of decisions; if it keeps no history, the list is empty. A decision becomes
/// visible shortly after it was made.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/history",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        HistoryQuery,
    ),
    responses((status = 200, description = "A page of decisions", body = MessageDecisionList), CommonErrors),
)]
pub(super) async fn list_history(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> HttpResult {
    page(&api, &asked.caller, asked.search, query).await
}

/// Lists the decisions about each delivery of each message of an import of any review, in chronological order.
///
/// Retention and delay are the same as for the list below a review.
#[utoipa::path(
    get,
    path = "/admin/searches/{search}/history",
    params(("search" = Uuid, Path, description = "The import"), HistoryQuery),
    responses((status = 200, description = "A page of decisions", body = MessageDecisionList), CommonErrors),
)]
pub(super) async fn list_any_history(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    asked: AuthorizedSearch,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> HttpResult {
    page(&api, &ProjectAccess::All, asked.search, query).await
}

async fn page(
    api: &Api,
    caller: &ProjectAccess,
    search: SearchId,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> HttpResult {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let page = HistoryPage::of(search.as_uuid(), query.limit, query.after.as_deref())?;
    let found = api.service.history(caller, search, page.after, page.limit).await?;
    let found = found.ok_or_else(Problem::no_such_search)?;
    Ok(Json(page.with(found)).into_response())
}
