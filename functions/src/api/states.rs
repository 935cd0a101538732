//! The state machine of a search, as it answers: every message in every state.

use axum::Json;
use imports::saga::table::{Answer, Row, rows};
use serde::Serialize;
use utoipa::ToSchema;

/// What becomes of a message in one situation.
#[derive(Serialize, ToSchema)]
struct SituationView {
    /// The state that the search is in.
    state: &'static str,
    /// The message's name.
    message: &'static str,
    /// What makes this situation another one than others of the same state and message; empty where nothing does.
    when: &'static str,
    /// What is decided: `handled`, `ignored` or `rejected`.
    verdict: &'static str,
    /// The state that it leads to; null where nothing changes.
    #[schema(required)]
    leads_to: Option<&'static str>,
    /// What is done about it, or why nothing is.
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

/// The state machine of a search.
#[derive(Serialize, ToSchema)]
pub(super) struct StatesView {
    /// Every situation: states in the order in which a search comes to them, messages in the order in which they come.
    situations: Vec<SituationView>,
}

/// What is decided about each message in each state of a search.
///
/// It is the same for all searches: the state machine is run through all situations.
#[utoipa::path(
    get,
    path = "/states.json",
    responses((status = 200, description = "The state machine", body = StatesView)),
)]
pub(super) async fn show_states() -> Json<StatesView> {
    Json(StatesView { situations: rows().into_iter().map(SituationView::from).collect() })
}
