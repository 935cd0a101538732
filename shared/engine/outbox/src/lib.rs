//! Effects are stored in the same atomic write as the change that caused them, and performed from there.
//!
//! In reading order:
//! - [`entry`]: one stored effect, how it is staged, and when it is due;
//! - [`policy`]: what a failure leads to: a later attempt, or poison;
//! - [`views`]: what readers are shown, and the ports to it;
//! - [`dispatch`]: performing entries, fresh ones and overdue ones;
//! - [`sweep`]: finding and claiming what is due, wherever it is stored;
//! - [`session`]: the transactional session, for code outside a message handler;
//! - [`records`]: an application's own data, read and written by sessions, or by themselves;
//! - [`control`]: what finds out what became of a session, and leaves nothing unsent.
//!
//! What the crate does not do: it keeps no order between entries, and it does not promise that an entry is
//! performed once. It is performed at least once, always with the same message id; the receiver tells copies.

pub mod control;
pub mod dispatch;
pub mod entry;
pub mod policy;
pub mod records;
pub mod session;
pub mod sweep;
pub mod views;

pub use control::DispatchOutbox;
pub use dispatch::Dispatcher;
pub use entry::{Entry, Kind, StageError};
pub use policy::{Policy, Settlement};
pub use records::{Key, ReadRecords, Record, Write, WriteRecords};
pub use session::{CommitSession, Committed, Session, SessionRecord, SettleSessions};
pub use sweep::{Claimed, InspectOutbox, Owner, Pending, Stored, SweepOutbox, Treatment, Unreadable};
pub use views::{Aged, Cursor, Page, ReadViews, View, WriteViews, Written};
