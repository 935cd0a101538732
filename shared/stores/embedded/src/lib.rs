//! Every port on one machine: SQLite and a folder.
//!
//! # What it promises
//! - **Durable.** What was answered is on the disk: after `kill -9` at any moment, or a power cut on a disk that
//!   keeps its word, nothing that was acknowledged is lost (a write-ahead log that is flushed before the answer; an
//!   object's bytes and its folder are flushed before the row that names them is written). A file with all the bytes of
//!   an object is never deleted because the database does not know it. A power cut, and nothing less, may undo what an
//!   attempt does for itself: the claim and release of its partition, receipts, settled effects, the decision log.
//!   Whatever came after that is undone with it, so it is as if the attempt had been broken off there.
//! - **Atomic.** Each call of a port is one transaction, together with whatever belongs to it: a saga's content
//!   with its outbox, a session with its data, an uploaded object with its notification.
//! - **As the cloud does it.** Queues have visibility timeouts, delays, receive limits and dead-letter queues;
//!   uploads need an unexpired permission with an exact key and a size limit, and lead to a notification in S3's
//!   form; expiry is checked on read, not by deletion. The contract suites of the `testing` crate hold it to the
//!   same as every other adapter.
//!
//! # What it deliberately does not do
//! - **No second machine and no second worker process.** One process works in a data directory, which
//!   [`Store::lock`] enforces; others may look on ([`Store::open_read_only`]).
//! - **No trust in what it finds.** A data directory may come from somebody else: links are not followed, names in
//!   the database lead nowhere else, and a database that is damaged or another program's is refused in one line.
//! - **No queues of its own.** Which queues there are, when they give a message up and where it goes then, is the
//!   table in [`Settings::queues`].
//! - **No clock of its own.** Time and ids come from the [`messages::Host`] that it is opened with.
//! - **No background work.** Whoever runs it calls [`Store::recover`] at the start and [`Store::purge`] now and
//!   then.
//!
//! # Modules, in reading order
//! - `store`, `settings`: opening, and what all ports have in common;
//! - `folder`: what is on the disk, who may read it, and which files are touched;
//! - `db_threads`, `work`, `flusher`: the threads and group commit; `tables`, `schema`: the tables and their versions;
//! - `fault`, `open_error`, `value`: errors and columns;
//! - `saga`, `outbox`, `sessions`, `records`, `views`: what MongoDB holds in the cloud;
//! - `ledger`, `processed`: what DynamoDB holds;
//! - `queues`, `fair_queueing`, `inspect`, `signal`: what SQS does, and the queues for operators;
//! - `log`, `failures`: decisions, and failed messages and effects with the actions of operators;
//! - `recover`, `lock`: after a crash, and against growth;
//! - `intercept`: calls around every call of a port, to count them and to simulate crashes;
//! - `search`, with the feature of that name: the ports of the search import.

mod db_threads;
mod failures;
mod fair_queueing;
mod fault;
mod flusher;
mod folder;
mod inspect;
mod intercept;
mod ledger;
mod lock;
mod log;
mod open_error;
mod outbox;
mod processed;
mod queues;
mod records;
mod recover;
mod saga;
mod schema;
#[cfg(feature = "search")]
mod search;
mod sends;
mod sessions;
mod settings;
mod signal;
mod store;
mod storing;
mod tables;
mod value;
mod views;
mod work;

pub use folder::DATABASE;
pub use inspect::DeadLetter;
pub use intercept::{Call, Intercept, Phase};
pub use lock::{Lock, LockError};
pub use log::MAX_DECISIONS;
pub use open_error::OpenError;
pub use outbox::Outbox;
pub use recover::{Purged, Recovered};
#[cfg(feature = "search")]
pub use search::{BUCKET, LocalUpload, PendingUpload, UPLOAD_URL, UploadError};
pub use settings::Settings;
pub use signal::MessageSignal;
pub use store::Store;
