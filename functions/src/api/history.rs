//! What was decided about the messages of a search, and why.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::IntoResponse;
use imports::SearchId;
use jiff::Timestamp;
use messages::{Noted, Observation};
use saga::history;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::admin::AskedOperator;
use super::extract::AskedSearch;
use super::paging::{self, List, Place};
use super::problem::{Problem, Refused};
use super::{Answer, Api};
use service::ProjectAccess;

/// How many decisions a page has by default, and at most.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

/// What was decided about one delivery of a message.
#[derive(Serialize, ToSchema)]
pub(super) struct DecisionView {
    /// When, as RFC 3339 has it.
    at: String,
    /// By which function.
    function: String,
    /// The message's name; empty when it could not be read.
    message: String,
    /// The message's id.
    #[schema(required)]
    message_id: Option<Uuid>,
    /// What was decided: `handled`, `duplicate`, `ignored`, `recovered`, `rejected`, `retried` or `dispatched`; or what a later
    /// release has called it.
    verdict: String,
    /// Why, or what came of it.
    why: String,
    /// How often the message had been received, this time included.
    #[schema(required)]
    attempt: Option<u32>,
    /// Which function sent the message.
    source: String,
    /// The trace that it belongs to, as 32 hexadecimal digits.
    #[schema(required)]
    trace_id: Option<String>,
    /// How long the batch of the message had been worked on by then, in milliseconds.
    #[schema(required)]
    duration_ms: Option<u64>,
    /// In which state the search was, where the state machine was asked: with the message's name it is a cell of `/states.json`.
    #[schema(required)]
    state: Option<String>,
}

impl From<Observation<Noted>> for DecisionView {
    fn from(decision: Observation<Noted>) -> Self {
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

/// Some of the decisions.
#[derive(Serialize, ToSchema)]
pub(super) struct DecisionList {
    /// The decisions, the earliest first.
    items: Vec<DecisionView>,
    /// Where the page ends, for the `after` of the next one; null when nothing follows.
    #[schema(required)]
    next: Option<String>,
}

/// Which page of the decisions to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// How many decisions, from 1 to 1000; 100.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

impl Place for history::Place {
    fn written(&self) -> String {
        format!("{}.{}", self.at.as_nanosecond(), self.sequence)
    }

    fn read(text: &str) -> Option<Self> {
        let (at, sequence) = text.split_once('.')?;
        let at = Timestamp::from_nanosecond(at.parse().ok()?).ok()?;
        Some(Self { at, sequence: sequence.parse().ok()? })
    }
}

/// What was decided about each delivery of each message of a search, in the order in which it happened.
///
/// Decisions are kept for a time that the deployment sets, and none where it keeps no history. A decision can be found a
/// moment after it was made.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/history",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        HistoryQuery,
    ),
    responses((status = 200, description = "Some of them", body = DecisionList), Refused),
)]
pub(super) async fn list_history(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Answer {
    page(&api, &asked.caller, asked.search, query).await
}

/// What was decided about each delivery of each message of a search of any project, in the order in which it happened.
///
/// As with the same list below a project.
#[utoipa::path(
    get,
    path = "/admin/searches/{search}/history",
    params(("search" = Uuid, Path, description = "The search"), HistoryQuery),
    responses((status = 200, description = "Some of them", body = DecisionList), Refused),
)]
pub(super) async fn list_any_history(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    asked: AskedSearch,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Answer {
    page(&api, &ProjectAccess::All, asked.search, query).await
}

async fn page(
    api: &Api,
    caller: &ProjectAccess,
    search: SearchId,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Answer {
    let Query(query) = query.map_err(|rejection| Problem::bad(&rejection.body_text()))?;
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let list = List { of: "history", owner: search.as_uuid() };
    let after = list.after(query.after.as_deref())?;
    let found = api.function.history(caller, search, after, limit).await?;
    let found = found.ok_or_else(Problem::no_such_search)?;
    let next = found.last().filter(|_| found.len() == limit).map(|(place, _)| list.next(place));
    let items = found.into_iter().map(|(_, decision)| decision.into()).collect();
    Ok(Json(DecisionList { items, next }).into_response())
}
