//! The handler for fault trials: imports of sample files with duplicates, disorder and crashes, isolated from all
//! data.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use operate::http::history::MessageDecisionView;
use serde::Serialize;
use utoipa::ToSchema;

use super::admin::AuthorizedOperator;
use super::problem::Problem;
use super::run_trials::{Trial, TrialOutcome};
use super::{Api, HttpResult};

/// The maximum number of deliveries of each message.
const MAX_COPIES: u32 = 20;

/// The outcome of a trial.
#[derive(Serialize, ToSchema)]
#[schema(as = TrialOutcomeView)]
pub(super) struct TrialOutcomeView {
    /// The number of studies in the sample files.
    expected: u64,
    /// The number of stored studies, which has to be equal despite the faults.
    studies: u64,
    /// The number of worker crashes.
    crashes: u32,
    /// The duration in milliseconds.
    elapsed_ms: u64,
    /// The number of decisions by verdict.
    verdicts: BTreeMap<String, u64>,
    /// The decision about each delivery, in chronological order.
    decisions: Vec<MessageDecisionView>,
    /// The command that runs the same trial.
    command: String,
}

impl From<TrialOutcome> for TrialOutcomeView {
    fn from(tried: TrialOutcome) -> Self {
        let mut verdicts = BTreeMap::new();
        for decision in &tried.decisions {
            *verdicts.entry(decision.verdict.name().to_owned()).or_default() += 1;
        }
        Self {
            expected: tried.expected,
            studies: tried.studies,
            crashes: tried.crashes,
            elapsed_ms: tried.elapsed_ms,
            verdicts,
            decisions: tried.decisions.into_iter().map(MessageDecisionView::from).collect(),
            command: tried.command,
        }
    }
}

/// Imports sample files while messages are duplicated or reordered, or workers crash.
///
/// The trial runs in a temporary directory and does not touch any data. Only `serve` supports it; `trials` in
/// `/config.json` is then `true`.
#[utoipa::path(
    post,
    path = "/admin/trials",
    request_body = Trial,
    responses(
        (status = 200, description = "The outcome of the trial", body = TrialOutcomeView),
        (status = 400, description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The caller is not an operator", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Another trial is running", body = Problem, content_type = "application/problem+json"),
        (status = 501, description = "This deployment does not run trials", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "The trial could not be run", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn run_trial(
    State(api): State<Arc<Api>>,
    _: AuthorizedOperator,
    request: Result<Json<Trial>, JsonRejection>,
) -> HttpResult {
    let Json(trial) = request.map_err(|rejection| Problem::unreadable(&rejection, "a trial"))?;
    if !(1..=MAX_COPIES).contains(&trial.copies) {
        return Err(Problem::bad(&format!("copies is from 1 to {MAX_COPIES}")));
    }
    let Some(trials) = &api.trials else {
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "this deployment does not run trials"));
    };
    match trials.run(trial).await {
        Ok(Some(tried)) => Ok(Json(TrialOutcomeView::from(tried)).into_response()),
        Ok(None) => Err(Problem::new(StatusCode::CONFLICT, "another trial is running")),
        Err(why) => {
            tracing::error!(error = why, "a trial could not be run");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the trial could not be run"))
        }
    }
}
