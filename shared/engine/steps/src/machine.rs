//! The state machine of a list of steps.

use std::sync::Arc;

use jiff::Timestamp;
use messages::PartitionKey;
use outbox::View;
use saga::{Decision, Event, Instance, Saga};
use serde::ser::Error as _;
use serde_json::{Value, json};

use crate::StepSaga;
use crate::defect::Defect;
use crate::demand;
use crate::event::StepEvent;
use crate::list::Steps;
use crate::run::{Phase, Run};
use crate::turn::{NoEffect, Turn};

/// The state machine of a list of steps.
pub struct StepMachine<I> {
    steps: Arc<Steps<I>>,
    defect: Defect,
}

impl<I> Clone for StepMachine<I> {
    fn clone(&self) -> Self {
        Self { steps: Arc::clone(&self.steps), defect: self.defect }
    }
}

/// A list of steps with mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the steps of {saga} are invalid: {}", faults.join("; "))]
pub struct InvalidSteps {
    /// The name of the saga.
    pub saga: &'static str,
    /// Every mistake.
    pub faults: Vec<String>,
}

impl<I: StepSaga> Default for StepMachine<I> {
    /// Returns the state machine of [`StepSaga::steps`].
    ///
    /// # Panics
    /// Panics if the list is invalid, so that a program with such a list does not start.
    fn default() -> Self {
        match Self::new(I::steps()) {
            Ok(machine) => machine,
            Err(invalid) => panic!("{invalid}"),
        }
    }
}

impl<I: StepSaga> StepMachine<I> {
    /// Returns the state machine of a list.
    ///
    /// # Errors
    /// Returns every mistake in the list.
    pub fn new(steps: Steps<I>) -> Result<Self, InvalidSteps> {
        let faults = steps.faults(I::VERSION);
        match faults.is_empty() {
            true => Ok(Self { steps: Arc::new(steps), defect: Defect::None }),
            false => Err(InvalidSteps { saga: I::NAME, faults }),
        }
    }

    /// Plants a defect.
    #[must_use]
    pub fn with_defect(self, defect: Defect) -> Self {
        Self { defect, ..self }
    }

    /// Returns the partition of the run with this key.
    pub fn partition(key: &str) -> PartitionKey {
        Instance::<Self>::named(key).partition()
    }

    /// Returns the list.
    pub fn steps(&self) -> &Steps<I> {
        &self.steps
    }

    /// Returns a description of the list, one line for each step. An application keeps it in a file, and a test
    /// compares the two, so that no change to steps of earlier versions goes unnoticed. Conditions and inputs are code,
    /// and are not part of it.
    pub fn outline(&self) -> String {
        format!("{} version {}\n{}", I::NAME, I::VERSION, self.steps)
    }

    /// Returns a run that was just started, as readers see it until its first event is processed.
    pub fn started(key: &str, input: &I, at: Timestamp) -> Run<I> {
        Run {
            key: key.to_owned(),
            input: Some(input.clone()),
            list_version: I::VERSION,
            started_at: at,
            phase: Phase::Running,
            ..Run::default()
        }
    }
}

impl<I: StepSaga> Saga for StepMachine<I> {
    const NAME: &'static str = I::NAME;
    /// An earlier version does not process a run that this version has changed.
    const STATE_VERSION: u32 = I::VERSION as u32;
    type State = Run<I>;
    type Event = StepEvent<I>;

    fn transition(&self, run: &Run<I>, event: &Event<'_, StepEvent<I>>, now: Timestamp) -> Decision<Run<I>> {
        let mut turn = Turn::new(&self.steps, self.defect, run, now);
        match turn.apply(event.body) {
            Ok(reason) => turn.finish(reason),
            Err(NoEffect::Ignored(reason)) => Decision::ignore(reason),
            Err(NoEffect::Rejected(reason)) => Decision::reject(reason),
        }
    }

    fn ended_at(&self, run: &Run<I>) -> Option<Timestamp> {
        run.ended_at()
    }

    fn state_name(&self, run: &Run<I>) -> Option<&'static str> {
        Some(run.phase_name())
    }

    fn view(&self, partition: PartitionKey, run: &Run<I>) -> Option<View> {
        let view = View::of(partition, run, run.ended_at().is_some()).ok()?;
        let input = run.input.as_ref()?;
        let also_in = input.further_lists().into_iter().collect();
        Some(View { list: input.list(), also_in, created_at: run.started_at, ..view })
    }

    fn tokens(&self, events: &[&StepEvent<I>]) -> usize {
        events.iter().map(|event| demand::tokens(&self.steps, event)).sum()
    }

    fn upcast_state(&self, from: u32, mut state: Value) -> Result<Value, String> {
        let version = u16::try_from(from).map_err(|_| format!("there is no version {from}"))?;
        if let Some(input) = state.get_mut("input").filter(|input| !input.is_null()) {
            *input = I::upcast(version, input.take())?;
        }
        Ok(state)
    }
}

/// Returns the input of a start, for the record that makes the start idempotent. The state of a run could not
/// distinguish an input that is `null` in JSON, such as that of a unit struct, from no input.
pub(crate) fn recorded<I: StepSaga>(input: &I) -> Result<Value, serde_json::Error> {
    match serde_json::to_value(input)? {
        Value::Null => Err(serde_json::Error::custom("the input of a run is null in JSON")),
        input => Ok(json!({ "version": I::VERSION, "input": input })),
    }
}

/// Returns `true` if a record has this input, possibly in an earlier version.
pub(crate) fn is_recorded<I: StepSaga>(record: &Value, input: &I) -> bool {
    let version = record["version"].as_u64().and_then(|version| u16::try_from(version).ok());
    let Some(version) = version.filter(|version| *version >= 1) else { return false };
    let known = (version..I::VERSION).try_fold(record["input"].clone(), |input, from| I::upcast(from, input));
    known.is_ok_and(|known| serde_json::to_value(input).is_ok_and(|input| input == known))
}
