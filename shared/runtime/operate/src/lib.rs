//! Functions for the operators of any system. Single actions are in `saga`: [`saga::Engine::control`],
//! [`saga::Engine::send_event`], [`saga::Operator`] and [`saga::Failures`].
//!
//! - [`mod@effects`]: stored effects that are not performed yet, and changes of exhausted ones;
//! - [`failures`]: lists of failures, and retries that are followed until they have ended;
//! - [`health`]: the state of a deployment: what responds and can be written, what waits, and what an operator has to do;
//! - [`instance`]: one instance of a saga, with its history;
//! - [`operator`]: the operator that the claims of a token identify;
//! - `http` (feature): the HTTP routes of these functions for any system.
//!
//! # Guarantees
//!
//! - A list reads bounded pages. A damaged entry is named in the list and does not end it.
//! - A change of an effect or a failure is recorded in the audit entries, with the operator.
//! - [`Health`] writes a record, so a store that can only be read is not reported as healthy.
//!
//! # Example
//!
//! ```no_run
//! use operate::Health;
//! use saga::{Engine, System};
//!
//! async fn concerns(engine: &Engine, system: &System<Engine>) -> Result<Vec<String>, saga::MissingSetting> {
//!     Ok(Health::over(engine)?.report(system, "orders").await.concerns)
//! }
//! ```

pub mod effects;
pub mod failures;
pub mod health;
#[cfg(feature = "http")]
pub mod http;
pub mod instance;
pub mod operator;

pub use effects::{Effect, EffectChange, EffectCursor, EffectFilter, EffectState, effects};
pub use health::Health;
pub use instance::InstanceDetails;
pub use operator::Operator;
