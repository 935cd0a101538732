//! Handlers for the history of a search: the decision about each message, and its reason.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use imports::SearchId;
use operate::http::extract::Parameters;
use operate::http::history::{HistoryPage, HistoryQuery, MessageDecisionList};

use super::admin::AuthorizedOperator;
use super::extract::AuthorizedSearch;
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::ProjectAccess;

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
    Parameters(query): Parameters<HistoryQuery>,
) -> HttpResult {
    page(&api, &asked.caller, asked.search, &query).await
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
    Parameters(query): Parameters<HistoryQuery>,
) -> HttpResult {
    page(&api, &ProjectAccess::All, asked.search, &query).await
}

async fn page(api: &Api, caller: &ProjectAccess, search: SearchId, query: &HistoryQuery) -> HttpResult {
    let page = HistoryPage::of(search.as_uuid(), query)?;
    let found = api.service.history(caller, search, page.after, page.limit).await?;
    let found = found.ok_or_else(Problem::no_such_search)?;
    Ok(Json(page.with(found)).into_response())
}
