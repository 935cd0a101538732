//! What was given up, in one place: messages in dead-letter queues, and effects that are poisoned.
//!
//! Each becomes a [`Failure`] in the database, so that it outlives the retention of its queue, is found by its cause, and
//! is put back to work once, at a pace, by somebody whose name is written down.
//!
//! - [`record`]: one failure, and what seeing it again makes of it;
//! - [`mod@fingerprint`]: which reasons are one cause;
//! - [`store`]: the port to where they are kept;
//! - [`keeper`]: [`Failures`] gathers them;
//! - [`retry`]: operations, which put many of them back to work; `canary`: judging those that went ahead.

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
