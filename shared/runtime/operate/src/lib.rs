//! Functions for the operators of any system. Single actions are in `saga`: [`saga::Engine::control`],
//! [`saga::Engine::send_event`], [`saga::Operator`] and [`saga::Failures`].
//!
//! - [`mod@effects`]: stored effects that are not performed yet, and changes of exhausted ones;
//! - [`failures`]: lists of failures, and retries that are followed until they have ended;
//! - [`health`]: the state of a deployment: what responds and can be written, what waits, and what an operator has to do;
//! - [`instance`]: one instance of a saga, with its history;
//! - [`operator`]: the operator that the claims of a token identify;
//! - `http` (feature): the HTTP routes of these functions for any system.

pub mod effects;
pub mod failures;
pub mod health;
#[cfg(feature = "http")]
pub mod http;
pub mod instance;
pub mod operator;

pub use effects::{
    ChangeEffectError, Effect, EffectChange, EffectCursor, EffectFilter, EffectState, Outboxes, effects,
};
pub use health::Health;
pub use instance::InstanceDetails;
pub use operator::Operator;
