//! A store of all failures: messages in dead-letter queues, and exhausted outbox entries (effects).
//!
//! Each one becomes a [`Failure`] in the database. There it outlives the retention of its queue, is grouped by cause,
//! and is retried once, at a limited rate, by an operator whose name is recorded.
//!
//! - [`record`]: one failure, and the effect of seeing it again;
//! - [`mod@fingerprint`]: the grouping of reasons into causes;
//! - [`store`]: the port to the store;
//! - [`keeper`]: [`Failures`], which collects failures;
//! - [`retry`]: operations, which retry many failures; `canary`: the assessment of those that went ahead.

mod canary;
pub mod fingerprint;
pub mod keeper;
pub mod record;
pub mod retry;
pub mod store;

pub use fingerprint::fingerprint;
pub use keeper::Failures;
pub use record::{Act, Failure, FailureId, Origin, Sighting, Standing, State};
pub use retry::{Operation, OperationId, Phase, Refused, Retry, Snapshot};
pub use store::{Change, Group, KeepFailures, Place, Selection};
