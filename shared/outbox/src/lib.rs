//! Effects are stored in the same atomic write as the change that caused them, and performed from there.
//!
//! In reading order:
//! - [`entry`]: one stored effect, how it is staged, and when it is due;
//! - [`policy`]: what a failure leads to: a later attempt, or poison;
//! - [`queue`]: the queues that messages are sent to and received from;
//! - [`sweep`]: finding and claiming what is due, wherever it is stored;
//! - [`session`]: the transactional session, for code outside a message handler.
//!
//! What the crate does not do: it keeps no order between entries, and it does not promise that an entry is
//! performed once. It is performed at least once, always with the same message id; the receiver tells copies.

pub mod entry;
pub mod policy;
pub mod queue;
pub mod session;
pub mod sweep;

pub use entry::{Entry, Kind, StageError};
pub use policy::{Policy, Settlement};
pub use queue::{Outgoing, Queue, ReceiveMessages, Received, SendError, SendMessages, send_one};
pub use session::{CommitSession, Committed, Session, SessionRecord, SettleSessions};
pub use sweep::{InspectOutbox, Owner, SweepOutbox};
