//! The state of a run.

use std::collections::BTreeMap;
use std::ops::Deref;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::StepSaga;

/// The state of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "I: StepSaga")]
pub struct Run<I> {
    /// The key of the run; empty until it starts.
    pub key: String,
    /// The input of the run; `None` until it starts.
    pub input: Option<I>,
    /// The version of the list that the run follows to its end.
    pub list_version: u16,
    /// The time at which the run started.
    pub started_at: Timestamp,
    /// The steps that have begun.
    pub steps: BTreeMap<String, StepState>,
    /// The signals that arrived before the turn of their steps, by the names of the steps.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub signals: BTreeMap<String, Signal>,
    /// The phase of the run.
    #[serde(flatten)]
    pub phase: Phase,
}

/// A signal for a step that waits for one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "signal", rename_all = "snake_case")]
pub enum Signal {
    /// The step is completed.
    Resolved {
        /// The output of the step.
        value: Value,
    },
    /// The run stops.
    Rejected {
        /// The reason.
        reason: String,
    },
}

/// The phase of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Phase {
    /// The run is unknown.
    #[default]
    New,
    /// A signal or a cancellation has overtaken the start.
    Signalled {
        /// The reason why the run stops as soon as it starts; `None` if the run does not stop.
        stop: Option<String>,
    },
    /// Steps are performed.
    Running,
    /// Steps are undone.
    Undoing {
        /// The reason why the run stopped.
        reason: String,
    },
    /// Every step was completed or skipped.
    Completed {
        /// When.
        at: Timestamp,
    },
    /// Every completed step was undone, except those that are [`StepState::UndoRefused`] or need no undo.
    Undone {
        /// The reason why the run stopped.
        reason: String,
        /// The time at which the run ended.
        at: Timestamp,
    },
    /// The run stopped after its pivot, so its completed steps remain.
    Failed {
        /// The reason why the run stopped.
        reason: String,
        /// The time at which the run ended.
        at: Timestamp,
    },
}

/// The state of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum StepState {
    /// The activity was asked to perform the step. If the run is being undone, the step is in doubt.
    Requested {
        /// The number of the attempt, from 1.
        attempt: u32,
    },
    /// An attempt failed without an outcome, and a timer for the next one may be running.
    Retrying {
        /// The number of attempts so far.
        attempts: u32,
    },
    /// The step waits for a signal.
    Waiting,
    /// The condition of the step was not met.
    Skipped,
    /// The step is completed.
    Completed {
        /// The output of the step's activity.
        output: Value,
    },
    /// The other system refused it, so it had no effect.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The activity was asked to undo the step.
    Undoing {
        /// `true` if it is unknown whether the step has an effect to undo.
        in_doubt: bool,
    },
    /// The step was undone.
    Undone,
    /// The other system refused to undo the step. An operator has to decide.
    UndoRefused {
        /// The reason.
        reason: String,
    },
}

impl StepState {
    /// Returns `true` if the next steps may begin.
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Completed { .. } | Self::Skipped)
    }

    /// Returns `true` if the step may have an effect in the other system, as far as the run knows.
    pub fn may_be_performed(&self) -> bool {
        matches!(
            self,
            Self::Requested { .. } | Self::Retrying { .. } | Self::Completed { .. } | Self::Undoing { .. }
        )
    }
}

impl<I> Default for Run<I> {
    fn default() -> Self {
        Self {
            key: String::new(),
            input: None,
            list_version: 0,
            started_at: Timestamp::UNIX_EPOCH,
            steps: BTreeMap::new(),
            signals: BTreeMap::new(),
            phase: Phase::New,
        }
    }
}

impl<I> Run<I> {
    /// Returns when the run ended; `None` if it has not.
    pub fn ended_at(&self) -> Option<Timestamp> {
        match self.phase {
            Phase::Completed { at } | Phase::Undone { at, .. } | Phase::Failed { at, .. } => Some(at),
            Phase::New | Phase::Signalled { .. } | Phase::Running | Phase::Undoing { .. } => None,
        }
    }

    /// Returns `true` if every step was completed or skipped.
    pub fn is_completed(&self) -> bool {
        matches!(self.phase, Phase::Completed { .. })
    }

    /// Returns the name of the phase.
    pub fn phase_name(&self) -> &'static str {
        match self.phase {
            Phase::New => "new",
            Phase::Signalled { .. } => "signalled",
            Phase::Running => "running",
            Phase::Undoing { .. } => "undoing",
            Phase::Completed { .. } => "completed",
            Phase::Undone { .. } => "undone",
            Phase::Failed { .. } => "failed",
        }
    }

    /// Returns the output of a completed step; `None` if it is not completed or its output has another type.
    pub fn output<T: DeserializeOwned>(&self, step: &str) -> Option<T> {
        match self.steps.get(step)? {
            StepState::Completed { output } => serde_json::from_value(output.clone()).ok(),
            _ => None,
        }
    }

    pub(crate) fn context(&self) -> Option<Context<'_, I>> {
        Some(Context { input: self.input.as_ref()?, run: self })
    }
}

/// A run as the functions of its list see it. It dereferences to the input.
pub struct Context<'a, I> {
    /// The input.
    pub input: &'a I,
    /// The run, with the outputs of earlier steps.
    pub run: &'a Run<I>,
}

impl<I> Deref for Context<'_, I> {
    type Target = I;

    fn deref(&self) -> &I {
        self.input
    }
}
