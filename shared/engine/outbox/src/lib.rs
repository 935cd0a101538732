//! The transactional outbox: effects are stored in the same atomic write as the change that caused them, and performed
//! from there.
//!
//! In reading order:
//! - [`entry`]: one stored effect, its staging, and the time when it is due;
//! - [`policy`]: the consequence of a failure: a later attempt, or exhaustion;
//! - [`views`]: the views for readers, and the ports to them;
//! - [`view_filter`]: filters on the fields of views;
//! - [`dispatch`]: the performing of entries, new ones and overdue ones;
//! - [`sweep`]: the ports that find and claim due entries in any store;
//! - [`session`]: the transactional session, for code outside a message handler;
//! - [`records`]: an application's own data, read and written by sessions or without one;
//! - [`control`]: the consumer that settles sessions, and the sweep of overdue entries.
//!
//! The crate keeps no order between entries, and it does not promise that an entry is performed only once. An entry is
//! performed at least once, always with the same message id, and the receiver removes duplicates.

#![warn(clippy::missing_errors_doc)]

pub mod control;
pub mod dispatch;
pub mod entry;
pub mod policy;
pub mod records;
pub mod session;
pub mod sweep;
pub mod view_filter;
pub mod views;

pub use control::DispatchOutbox;
pub use dispatch::Dispatcher;
pub use entry::{Entry, Kind, StageError};
pub use policy::{Policy, Settlement};
pub use records::{Key, ReadRecords, Record, Write, WriteRecords};
pub use session::{CommitOutcome, CommitSession, Session, SessionRecord, SettleSessions};
pub use sweep::{
    ClaimedEntries, EntryResult, InspectOutbox, OutboxRecord, Owner, SweepOutbox, Unreadable,
    UnreadableAction,
};
pub use view_filter::{ConditionError, FieldFilter};
pub use views::{AgeFilter, Cursor, MAX_FURTHER_LISTS, Page, ReadViews, View, ViewPosition, WriteViews};
