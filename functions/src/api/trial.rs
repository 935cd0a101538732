//! Making it fail on purpose: an import with copies, disorder and crashes, away from everybody's data.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use messages::{Noted, Observation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::admin::AskedOperator;
use super::history::DecisionView;
use super::problem::Problem;
use super::{Answer, Api};

/// The most copies of each message.
const MAX_COPIES: u32 = 20;

/// What is to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// How often each notification and each message is delivered, 1 to 20.
    #[serde(default = "once")]
    pub copies: u32,
    /// Deliver in an order drawn from this seed.
    #[serde(default)]
    pub shuffle: Option<u32>,
    /// Tear the workers down at steps drawn from this seed.
    #[serde(default)]
    pub crash: Option<u32>,
}

fn once() -> u32 {
    1
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Tried {
    /// How many studies the files have.
    pub expected: u64,
    /// How many are stored.
    pub studies: u64,
    /// How often the workers were torn down.
    pub crashes: u32,
    /// How long it took, in milliseconds.
    pub elapsed_ms: u64,
    /// Every decision, in the order in which it was made.
    pub decisions: Vec<Observation<Noted>>,
    /// The command that does the same.
    pub command: String,
}

/// Imports sample files while something goes wrong.
#[async_trait]
pub trait RunTrials: Send + Sync {
    /// One trial in a place of its own, which is gone afterwards; none when one is running already.
    ///
    /// # Errors
    /// In words for whoever operates the server.
    async fn run(&self, trial: Trial) -> Result<Option<Tried>, String>;
}

/// What came of a trial.
#[derive(Serialize, ToSchema)]
pub(super) struct TriedView {
    /// How many studies the sample files have.
    expected: u64,
    /// How many are stored: as many, whatever went wrong.
    studies: u64,
    /// How often the workers were torn down.
    crashes: u32,
    /// How long it took, in milliseconds.
    elapsed_ms: u64,
    /// How often each verdict was given, by its name.
    verdicts: BTreeMap<String, u64>,
    /// What was decided about each delivery, in the order in which it happened.
    decisions: Vec<DecisionView>,
    /// The command that does the same.
    command: String,
}

impl From<Tried> for TriedView {
    fn from(tried: Tried) -> Self {
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
            decisions: tried.decisions.into_iter().map(DecisionView::from).collect(),
            command: tried.command,
        }
    }
}

/// Import sample files while every message comes several times, out of order, or the workers crash.
///
/// It happens in a folder of its own, which is gone afterwards, and touches nobody's data. Only `serve` does it, and
/// `/config.json` says so with `trials`.
#[utoipa::path(
    post,
    path = "/admin/trials",
    request_body = Trial,
    responses(
        (status = 200, description = "What came of it", body = TriedView),
        (status = 400, description = "The request cannot be read", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The caller is no operator", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Another trial is running", body = Problem, content_type = "application/problem+json"),
        (status = 501, description = "This deployment makes none", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "It could not be made", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(super) async fn try_to_fail(
    State(api): State<Arc<Api>>,
    _: AskedOperator,
    request: Result<Json<Trial>, JsonRejection>,
) -> Answer {
    let Json(trial) = request.map_err(|rejection| Problem::unreadable(&rejection, "a trial"))?;
    if !(1..=MAX_COPIES).contains(&trial.copies) {
        return Err(Problem::bad(&format!("copies is from 1 to {MAX_COPIES}")));
    }
    let Some(trials) = &api.trials else {
        return Err(Problem::new(StatusCode::NOT_IMPLEMENTED, "this deployment makes no trials"));
    };
    match trials.run(trial).await {
        Ok(Some(tried)) => Ok(Json(TriedView::from(tried)).into_response()),
        Ok(None) => Err(Problem::new(StatusCode::CONFLICT, "another trial is running")),
        Err(why) => {
            tracing::error!(error = why, "a trial could not be made");
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the trial could not be made"))
        }
    }
}
