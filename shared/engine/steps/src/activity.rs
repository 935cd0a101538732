//! The interface for the work of a step.

use std::fmt::Debug;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::store::chain;
use messages::{PartitionKey, StoreError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Performs and undoes a step. Both functions may be called again with the same key, and must then have no further
/// effect.
#[async_trait]
pub trait Activity: Send + Sync + 'static {
    /// The system that the messages of the activity belong to.
    const SYSTEM: &'static str;
    /// The name of the command to perform it, such as `ReserveFlight`.
    const PERFORM: &'static str;
    /// The name of the command to undo it, such as `ReleaseFlight`.
    const UNDO: &'static str;
    /// The version of the activity's input, from 1.
    const VERSION: u16 = 1;
    /// The input of the activity.
    type Input: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static;
    /// The output of the activity, which later steps can use.
    type Output: Serialize + Send;

    /// Performs the step.
    ///
    /// # Errors
    /// Returns an error if the other system refuses the step or does not answer.
    async fn perform(&self, call: &Call<'_, Self::Input>) -> Result<Self::Output, ActivityError>;

    /// Undoes the step, or the part of it that may have been performed. With [`crate::InDoubt::Undo`] it may be called
    /// before [`Activity::perform`].
    ///
    /// # Errors
    /// Returns an error if the other system refuses to undo the step or does not answer.
    async fn undo(&self, call: &Call<'_, Self::Input>) -> Result<(), ActivityError>;

    /// Upgrades an input from version `from` to version `from + 1`.
    ///
    /// # Errors
    /// Returns the reason if that version is no longer supported.
    fn upcast(from: u16, _input: Value) -> Result<Value, String> {
        Err(format!("version {from} of the input is not supported"))
    }
}

/// One call of an activity.
#[derive(Debug)]
pub struct Call<'a, T> {
    /// The idempotency key, the same for every call for this step of this run.
    pub key: &'a str,
    /// The partition of the run.
    pub partition: PartitionKey,
    /// The name of the step.
    pub step: &'a str,
    /// The input.
    pub input: &'a T,
    /// The time after which the call should start nothing new.
    pub deadline: Option<Timestamp>,
}

/// The failure of an activity.
#[derive(Debug, thiserror::Error)]
pub enum ActivityError {
    /// The other system refused the step, which had no effect. The run stops.
    #[error("{0}")]
    Refused(String),
    /// The outcome is unknown. The step is retried, but not before the delay that the other system asked for.
    #[error("{reason}")]
    Unknown {
        /// The reason.
        reason: String,
        /// The delay.
        after: Option<Duration>,
    },
}

impl From<StoreError> for ActivityError {
    fn from(error: StoreError) -> Self {
        Self::Unknown { reason: chain(&error), after: None }
    }
}
