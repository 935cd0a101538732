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
//! # Guarantees
//!
//! - An effect exists exactly if the change exists that caused it, because one write stores both.
//! - An entry is performed at least once, always with the same message id, although processes crash between any two
//!   steps. A failed entry is tried again with increasing delays.
//! - An entry that fails for too long, or can never succeed, is exhausted and set aside until an operator decides.
//! - A session stores the messages and the data of a request together or not at all.
//!
//! The crate keeps no order between entries, and it does not promise that an entry is performed only once: the receiver
//! removes duplicates.
//!
//! # Example
//!
//! The policy decides what follows from a failed attempt:
//!
//! ```
//! use jiff::{SignedDuration, Timestamp};
//! use messages::{Body, Message, MessageId, PartitionKey, Queue};
//! use outbox::policy::Failure;
//! use outbox::{Entry, Policy};
//! use uuid::Uuid;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (policy, now) = (Policy::default(), Timestamp::UNIX_EPOCH);
//! let data = serde_json::json!({ "cents": 1_200 }).into();
//! let body = Body { system: "shop".into(), name: "Charge".into(), version: 1, data };
//! let id = MessageId::from_uuid(Uuid::from_u128(1));
//! let message = Message::new(id, "shop", PartitionKey::named("orders", "7"), now, body);
//! let entry = Entry::message(&message, Queue::named("cards"), now)?;
//!
//! let failure = || Failure { error: "no connection".to_owned(), permanent: false };
//! let entry = policy.settle(&entry, Err(failure()), now, 0.0).keep.ok_or("it is kept")?;
//! assert!(entry.next_attempt_at > now && !entry.poisoned);
//!
//! let much_later = now + policy.give_up_after + SignedDuration::from_hours(1);
//! let entry = policy.settle(&entry, Err(failure()), much_later, 0.0).keep.ok_or("it is kept")?;
//! assert!(entry.poisoned, "it waits for an operator");
//! assert!(policy.settle(&entry, Ok(()), much_later, 0.0).keep.is_none(), "a performed entry is removed");
//! # Ok(())
//! # }
//! ```

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

pub use control::{DispatchOutbox, ObserveSessions, SessionOutcome, SettledSession};
pub use dispatch::Dispatcher;
pub use entry::{Entry, Kind, StageError};
pub use policy::{Policy, Settlement};
pub use records::{
    Key, OwnedRecord, ReadRecords, Record, StoredRecord, Write, WriteRecords, unsupported_json,
    unsupported_record,
};
pub use session::{CommitOutcome, CommitSession, Session, SessionRecord, SettleSessions};
pub use sweep::{
    ClaimedEntries, EntryResult, InspectOutbox, OutboxRecord, Owner, SweepOutbox, Unreadable,
    UnreadableAction,
};
pub use view_filter::{ConditionError, FieldFilter};
pub use views::{AgeFilter, Cursor, MAX_FURTHER_LISTS, Page, ReadViews, View, ViewPosition, WriteViews};
