//! Handlers for the history of a search: the decision about each message, and its reason.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use imports::SearchId;
use jiff::Timestamp;
use messages::{DecisionRecord, RecordedVerdict};
use saga::history;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::admin::AuthorizedOperator;
use super::extract::AuthorizedSearch;
use super::paging::{self, List, ListCursor};
use super::problem::{CommonErrors, Problem};
use super::{Api, HttpResult};
use service::ProjectAccess;

/// The default and maximum number of decisions in a page.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

/// The decision about one delivery of a message.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageDecisionView {
    /// The time of the decision, in RFC 3339 format.
    at: String,
    /// The function that made the decision.
    function: String,
    /// The message's name; empty if the message could not be read.
    message: String,
    /// The message's id.
    #[schema(required)]
    message_id: Option<Uuid>,
    /// The decision: `handled`, `duplicate`, `ignored`, `recovered`, `rejected`, `retried` or `dispatched`; or a name
    /// from a newer version.
    verdict: String,
    /// The reason or the result.
    why: String,
    /// The receive count of the message, including this delivery.
    #[schema(required)]
    attempt: Option<u32>,
    /// The function that sent the message.
    source: String,
    /// The id of the trace, as 32 hexadecimal digits.
    #[schema(required)]
    trace_id: Option<String>,
    /// The time for which the batch of the message had been processed, in milliseconds.
    #[schema(required)]
    duration_ms: Option<u64>,
    /// The state of the import, if the state machine was run. Together with the message's name it identifies a cell
    /// of `/states.json`.
    #[schema(required)]
    state: Option<String>,
}

impl From<DecisionRecord<RecordedVerdict>> for MessageDecisionView {
    fn from(decision: DecisionRecord<RecordedVerdict>) -> Self {
        let since = |began_at| u64::try_from(decision.at.duration_since(began_at).as_millis()).ok();
        Self {
            at: decision.at.to_string(),
            trace_id: decision.trace().map(|trace| format!("{trace:032x}")),
            duration_ms: decision.began_at.and_then(since),
            function: decision.function,
            message: decision.message,
            message_id: decision.message_id.map(|id| id.as_uuid()),
            verdict: decision.verdict.name().to_owned(),
            why: decision.why,
            attempt: decision.attempt,
            source: decision.source,
            state: decision.state,
        }
    }
}

/// A page of decisions.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageDecisionList {
    /// The decisions, oldest first.
    items: Vec<MessageDecisionView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

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

impl ListCursor for history::Place {
    fn written(&self) -> String {
        format!("{}.{}", self.at.as_nanosecond(), self.sequence)
    }

    fn read(text: &str) -> Option<Self> {
        let (at, sequence) = text.split_once('.')?;
        let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
        Some(Self { at, sequence: sequence.parse().ok()? })
    }
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
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let list = List { of: "history", owner: search.as_uuid() };
    let after = list.after(query.after.as_deref())?;
    let found = api.service.history(caller, search, after, limit).await?;
    let found = found.ok_or_else(Problem::no_such_search)?;
    let next = found.last().filter(|_| found.len() == limit).map(|(place, _)| list.next(place));
    let items = found.into_iter().map(|(_, decision)| decision.into()).collect();
    Ok(Json(MessageDecisionList { items, next }).into_response())
}
