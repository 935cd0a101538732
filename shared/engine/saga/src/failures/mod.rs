//! A store of all failures: messages in dead-letter queues, and exhausted outbox entries (effects).
//!
//! Each one becomes a [`Failure`] in the database. There it outlives the retention of its queue, is grouped by cause,
//! and is retried once, at a limited rate, by an operator whose name is recorded.
//!
//! - [`ids`]: the ids of failures and operations;
//! - [`record`]: one failure, and the effect of seeing it again;
//! - [`mod@fingerprint`]: the grouping of reasons into causes;
//! - [`selection`]: filters for failures, and their grouping by cause;
//! - [`operation`]: a stored retry of many failures;
//! - [`store`]: the port to the store;
//! - [`keeper`]: [`Failures`], which collects failures;
//! - [`retry`]: the steps of operations; `canary`: the assessment of canary failures.

mod canary;
pub mod fingerprint;
pub mod ids;
pub mod keeper;
pub mod operation;
pub mod record;
pub mod retry;
pub mod selection;
pub mod store;

pub use fingerprint::fingerprint;
pub use ids::{FailureId, OperationId};
pub use keeper::Failures;
pub use operation::{Operation, Phase};
pub use record::{AuditEntry, Failure, FailureCursor, FailureReport, FailureStatus, Origin, State};
pub use retry::{RequestRefusal, Retry, Snapshot};
pub use selection::{CauseGroup, Causes, Selection};
pub use store::{Change, KeepFailures};
