//! The interface for clients: start, signal, cancel and read runs.

use messages::{PartitionKey, StoreError};
use outbox::session::CommitError;
use outbox::{Key, Page, StageError, View};
use saga::engine::OpenSession;
use saga::{Engine, EntryPoint, Instance, MissingSetting, Saga, Views};
use serde_json::Value;
use uuid::Uuid;

use crate::StepSaga;
use crate::event::StepEvent;
use crate::machine::{StepMachine, is_recorded, recorded};

/// The maximum number of runs of a page.
const PAGE: usize = 100;

/// Starts, signals, cancels and reads runs.
#[derive(Clone)]
pub struct Client<I: StepSaga> {
    /// Opens sessions.
    pub entry: EntryPoint,
    /// Reads runs.
    pub views: Views<StepMachine<I>>,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// [`StepSaga::start`] refused the run.
    #[error("{0}")]
    Refused(String),
    /// A run has this key and another input.
    #[error("a run with this key has another input")]
    Conflict,
    /// No run has this key.
    #[error("no run has this key")]
    Unknown,
    /// The key is empty.
    #[error("the key of a run is empty")]
    EmptyKey,
    /// The list has no such step, or the step does not wait for a signal.
    #[error("no step {0} waits for a signal")]
    UnknownStep(String),
    /// The run has ended.
    #[error("the run has ended")]
    Ended,
    /// A store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A message or a record cannot be encoded.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The session was not committed, or its outcome is unknown.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl<I: StepSaga> Client<I> {
    /// Creates the client of a state machine, on behalf of a function.
    pub fn new(
        engine: &Engine,
        function: &'static str,
        machine: StepMachine<I>,
    ) -> Result<Self, MissingSetting> {
        Ok(Self { entry: engine.entry_point(function)?, views: engine.views(machine)? })
    }

    /// Starts a run. A repeated start with the same key and input changes nothing.
    ///
    /// # Errors
    /// Returns an error if [`StepSaga::start`] refuses the run, the key has another input, or a store is unavailable.
    /// After the last one the start may be repeated.
    pub async fn start(&self, key: &str, input: &I) -> Result<(), ClientError> {
        if key.is_empty() {
            return Err(ClientError::EmptyKey);
        }
        let is_conflict = |error: &ClientError| matches!(error, ClientError::Commit(CommitError::Changed));
        self.entry.repeat_conflicts(|| self.try_start(key, input), is_conflict).await
    }

    async fn try_start(&self, key: &str, input: &I) -> Result<(), ClientError> {
        let record = Key::new(format!("run-of-{}", I::NAME), key);
        let mut session = self.session(key);
        if let Some(found) = session.read(record.clone()).await? {
            return if is_recorded(&found.body, input) { Ok(()) } else { Err(ClientError::Conflict) };
        }
        let body = recorded(input).map_err(|error| StageError::new("Started", error.into()))?;
        session.write(record, body);
        input.start(key, &mut session).await?;
        let at = self.views.host.now();
        let started =
            StepEvent::Started { key: key.to_owned(), input: input.clone(), at, list_version: None };
        session.notify(&Self::instance(key), &started)?;
        let run = StepMachine::started(key, input, at);
        if let Some(view) = self.views.saga.view(self.partition(key), &run) {
            session.show(view);
        }
        session.commit().await?;
        Ok(())
    }

    /// Completes a step that waits for a signal. `value` becomes its output. A signal may arrive before the step's
    /// turn.
    ///
    /// # Errors
    /// Returns an error if there is no such run or step, the run has ended, or a store is unavailable.
    pub async fn resolve(&self, key: &str, step: &str, value: Value) -> Result<(), ClientError> {
        self.check_step(step)?;
        self.send(key, &StepEvent::Resolved { step: step.to_owned(), value }).await
    }

    /// Stops a run at a step that waits for a signal.
    ///
    /// # Errors
    /// Returns the errors of [`Client::resolve`].
    pub async fn reject(&self, key: &str, step: &str, reason: &str) -> Result<(), ClientError> {
        self.check_step(step)?;
        self.send(key, &StepEvent::Rejected { step: step.to_owned(), reason: reason.to_owned() }).await
    }

    /// Cancels a run. Its completed steps are undone.
    ///
    /// # Errors
    /// Returns an error if there is no such run, the run has ended, or a store is unavailable.
    pub async fn cancel(&self, key: &str, reason: &str) -> Result<(), ClientError> {
        self.send(key, &StepEvent::Cancelled { reason: reason.to_owned() }).await
    }

    fn check_step(&self, step: &str) -> Result<(), ClientError> {
        let mut nodes = self.views.saga.steps().nodes.iter();
        match nodes.any(|node| node.name == step && node.request.is_none()) {
            true => Ok(()),
            false => Err(ClientError::UnknownStep(step.to_owned())),
        }
    }

    async fn send(&self, key: &str, event: &StepEvent<I>) -> Result<(), ClientError> {
        if self.run(key).await?.ended {
            return Err(ClientError::Ended);
        }
        let mut session = self.session(key);
        session.notify(&Self::instance(key), event)?;
        session.commit().await?;
        Ok(())
    }

    /// Returns the current view of a run; its body is a [`crate::Run`].
    ///
    /// # Errors
    /// Returns an error if no run has this key, or a store is unavailable.
    pub async fn run(&self, key: &str) -> Result<View, ClientError> {
        self.views.view(self.partition(key)).await?.ok_or(ClientError::Unknown)
    }

    /// Returns the latest runs of a list; see [`StepSaga::list`].
    pub async fn runs(&self, list: Uuid) -> Result<Page, StoreError> {
        self.views.list(list, None, PAGE).await
    }

    /// Returns the partition of a run.
    pub fn partition(&self, key: &str) -> PartitionKey {
        StepMachine::<I>::partition(key)
    }

    fn instance(key: &str) -> Instance<StepMachine<I>> {
        Instance::named(key)
    }

    fn session(&self, key: &str) -> OpenSession<'_> {
        self.entry.session(self.partition(key))
    }
}
