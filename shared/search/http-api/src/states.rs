//! The handler that returns the state machine: the decision about every message in every state.

use axum::Json;
use imports::saga::table::{Answer, Row, rows};
use serde::Serialize;
use utoipa::ToSchema;

/// The decision about a message in one situation.
#[derive(Serialize, ToSchema)]
struct SituationView {
    /// The state of the import.
    state: &'static str,
    /// The message's name.
    message: &'static str,
    /// The condition that distinguishes situations with the same state and message; empty if there is only one.
    when: &'static str,
    /// The decision: `handled`, `ignored` or `rejected`.
    verdict: &'static str,
    /// The next state; null if the message changes nothing.
    #[schema(required)]
    leads_to: Option<&'static str>,
    /// The effects of the message, or the reason why it has none.
    why: String,
}

impl From<Row> for SituationView {
    fn from(Row { from, event, when, answer }: Row) -> Self {
        let (verdict, leads_to, why) = match answer {
            Answer::Advance { to, effects } => ("handled", Some(to), effects),
            Answer::Ignore(why) => ("ignored", None, why),
            Answer::Reject(why) => ("rejected", None, why),
        };
        Self { state: from, message: event, when, verdict, leads_to, why }
    }
}

/// The state machine of an import.
#[derive(Serialize, ToSchema)]
pub(super) struct StatesView {
    /// All situations: states in the order in which an import passes through them, messages in the order in which
    /// they arrive.
    situations: Vec<SituationView>,
}

/// Returns the decision about each message in each state of an import.
///
/// It is the same for all imports and is computed by running the state machine in all situations.
#[utoipa::path(
    get,
    path = "/states.json",
    responses((status = 200, description = "The state machine", body = StatesView)),
)]
pub(super) async fn show_states() -> Json<StatesView> {
    Json(StatesView { situations: rows().into_iter().map(SituationView::from).collect() })
}
