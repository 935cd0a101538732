//! The history of an instance: the decision about each message, and its reason.

use messages::{DecisionRecord, RecordedVerdict};
use saga::history::Place;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::paging::{self, List, ListCursor};
use super::problem::Problem;

/// The default and maximum number of decisions in a page.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

/// The decision about one delivery of a message.
#[derive(Serialize, ToSchema)]
pub struct MessageDecisionView {
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
    /// The state of the instance, if the state machine was run.
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
pub struct MessageDecisionList {
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
pub struct HistoryQuery {
    /// Maximum number of decisions to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// A position in the history that a request names, and the number of decisions that it asks for.
#[derive(Debug, Clone, Copy)]
pub struct HistoryPage {
    list: List,
    /// The position before the first decision; `None` for the first page.
    pub after: Option<Place>,
    /// The number of decisions.
    pub limit: usize,
}

impl HistoryPage {
    /// Reads the parameters of a request for the history of an instance.
    ///
    /// # Errors
    /// Returns the problem of a limit or cursor that is not permitted.
    pub fn of(instance: Uuid, query: &HistoryQuery) -> Result<Self, Problem> {
        let list = List { of: "history", owner: instance };
        let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
        Ok(Self { list, after: list.after(query.after.as_deref(), ListCursor::read)?, limit })
    }

    /// Returns the page with the decisions that were found.
    pub fn with(self, found: Vec<(Place, DecisionRecord<RecordedVerdict>)>) -> MessageDecisionList {
        let next = found.last().filter(|_| found.len() == self.limit);
        let next = next.map(|(place, _)| self.list.next(&place.written()));
        let items = found.into_iter().map(|(_, decision)| decision.into()).collect();
        MessageDecisionList { items, next }
    }
}
