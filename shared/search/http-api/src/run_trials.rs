//! The port that runs fault trials.

use async_trait::async_trait;
use messages::{DecisionRecord, RecordedVerdict};
use serde::Deserialize;
use utoipa::ToSchema;

/// The faults to inject.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Number of times that each notification and each message is delivered, 1 to 20.
    #[serde(default = "once")]
    pub copies: u32,
    /// The seed of a random delivery order.
    #[serde(default)]
    pub shuffle: Option<u32>,
    /// The seed of random steps at which the workers crash.
    #[serde(default)]
    pub crash: Option<u32>,
}

fn once() -> u32 {
    1
}

/// The outcome of a trial.
#[derive(Debug, Clone)]
pub struct TrialOutcome {
    /// The number of studies in the files.
    pub expected: u64,
    /// The number of stored studies.
    pub studies: u64,
    /// The number of worker crashes.
    pub crashes: u32,
    /// The duration in milliseconds.
    pub elapsed_ms: u64,
    /// Every decision, in chronological order.
    pub decisions: Vec<DecisionRecord<RecordedVerdict>>,
    /// The command that runs the same trial.
    pub command: String,
}

/// Imports sample files while faults are injected.
#[async_trait]
pub trait RunTrials: Send + Sync {
    /// Runs one trial in a temporary data directory. Returns `None` if another trial is running.
    ///
    /// # Errors
    /// Returns a message for the operator of the server.
    async fn run(&self, trial: Trial) -> Result<Option<TrialOutcome>, String>;
}
