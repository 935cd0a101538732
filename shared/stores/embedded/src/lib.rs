//! Every port on one machine: SQLite and a folder.
//!
//! # What it promises
//! - **Durable.** Acknowledged writes are on the disk: they survive `kill -9` at any moment, and a power failure if the
//!   disk honours flushes. The write-ahead log is flushed before an answer, and an object's bytes and folder before the
//!   row that names them. A complete file of an object is never deleted because the database does not list it. Only a
//!   power failure may undo the bookkeeping of an attempt: the claim and release of its partition, receipts, settled
//!   effects, and the decision log. All later writes are undone with it, as if the attempt had been interrupted there.
//! - **Atomic.** Each port call is one transaction: a saga's content with its outbox, a session with its data, an
//!   uploaded object with its notification.
//! - **Like the cloud services.** Queues have visibility timeouts, delays, receive limits and dead-letter queues;
//!   uploads need an unexpired permission with an exact key and a size limit, and produce a notification in S3's form;
//!   expiry is checked on read, not by deletion. It passes the same contract suites of the `testing` crate as every
//!   other adapter.
//!
//! # What it deliberately does not do
//! - **No second machine and no second worker process.** One process works in a data directory, which [`Store::lock`]
//!   enforces; others may read it ([`Store::open_read_only`]).
//! - **No trust in existing files.** A data directory may come from an untrusted source: links are not followed, names
//!   in the database cannot lead out of it, and a damaged database or one of another program is refused with a one-line
//!   error.
//! - **No queues of its own.** The table in [`Settings::queues`] defines the queues, their receive limits and their
//!   dead-letter queues.
//! - **No clock of its own.** Time and ids come from the [`messages::Host`] that it is opened with.
//! - **No background work.** The program that runs it calls [`Store::recover`] at its start and [`Store::purge`]
//!   periodically.
//!
//! # Example
//!
//! A session that stores a record and sends a message, together or not at all:
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//!
//! use embedded::{Settings, Store};
//! use messages::{Host, PartitionKey, Queue, QueueSpec, messages};
//! use outbox::Key;
//! use serde_json::json;
//!
//! const MAIL: Queue = Queue::named("mail");
//! messages! { pub enum Mail of "seats" to MAIL { Confirm { seat: u32 } = 1 } }
//! static QUEUES: [QueueSpec; 4] = [
//!     QueueSpec::standard(outbox::session::CONTROL, Queue::named("control-dead")),
//!     QueueSpec::without_consumer(Queue::named("control-dead")),
//!     QueueSpec::standard(MAIL, Queue::named("mail-dead")),
//!     QueueSpec::without_consumer(Queue::named("mail-dead")),
//! ];
//!
//! # async fn book(dir: &Path, host: Arc<dyn Host>) -> Result<(), Box<dyn std::error::Error>> {
//! let store = Arc::new(Store::open(dir, host.clone(), Settings::of("seats", &QUEUES))?);
//! let engine = store.engine("seats", host, Arc::new(()));
//! let entry = engine.entry_point("web")?;
//! let mut session = entry.session(PartitionKey::named("seats", "17"));
//! session.write(Key::new("seat", "17"), json!({ "guest": "Ada" }));
//! session.send(&Mail::Confirm { seat: 17 })?;
//! session.commit().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Modules, in reading order
//! - `store`, `settings`: opening, and the parts that all ports share;
//! - `folder`: the files of the data directory and their permissions;
//! - `db_threads`, `work`, `flusher`: the threads and group commit; `tables`, `schema`: the tables and their versions;
//! - `engine`: the engine of an application on the store; `application`: its own tables in the same transactions;
//! - `fault`, `open_error`, `value`: errors and columns;
//! - `saga`, `outbox`, `sessions`, `records`, `views`: the data that a deployment keeps in MongoDB;
//! - `ledger`, `processed`: the data that a deployment keeps in DynamoDB;
//! - `queues`, `fair_queueing`, `inspect`, `signal`: the behaviour of SQS, and the queues for operators;
//! - `log`, `failures`: decisions, and failed messages and effects with the actions of operators;
//! - `recover`, `lock`: after a crash, and against growth;
//! - `intercept`: calls around every call of a port, to count them and to simulate crashes;
//! - `search`, with the feature of that name: the ports of the search import.

mod application;
mod db_threads;
mod engine;
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
mod tables;
mod value;
mod views;
mod work;
mod writes_in_progress;

pub use ::outbox::session::WorkVerdict;
pub use application::{SessionWork, WithWork};
pub use folder::DATABASE;
pub use inspect::DeadLetter;
pub use intercept::{Call, Intercept, Phase};
pub use lock::{Lock, LockError};
pub use log::MAX_DECISIONS;
pub use open_error::OpenError;
pub use outbox::Outbox;
pub use recover::{PurgeReport, RecoveryReport};
/// The types of the application's statements.
pub use rusqlite;
#[cfg(feature = "search")]
pub use search::{BUCKET, LocalUpload, PendingUpload, UPLOAD_URL, UploadError};
pub use settings::Settings;
pub use signal::MessageSignal;
pub use store::Store;
