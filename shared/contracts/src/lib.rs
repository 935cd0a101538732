//! What crosses a boundary between two parts of the system, and nothing else.
//!
//! In reading order:
//! - [`ids`]: who and what things are;
//! - [`key`]: the object key of an uploaded reference file, which carries the ids and the token of its upload;
//! - [`manifest`]: what a search announces before its files arrive, and what each uploaded file says of itself;
//! - [`message`]: everything that travels through a queue, in its CloudEvents envelope;
//! - [`delivery`]: one received copy of a message, and what is to become of it;
//! - [`job`]: the import as its reader sees it;
//! - [`host`]: time, sleep and randomness, which the rest of the code receives instead of reaching for;
//! - [`observe`]: what is told about each message;
//! - [`trace`]: which trace a message belongs to;
//! - [`store`]: how every store reports a failure.
//!
//! The crate decides nothing: which message leads where is the business of the `saga` crate, and how a
//! message is delivered that of `dedup`, `outbox` and `worker`.

pub mod delivery;
pub mod host;
pub mod ids;
pub mod job;
pub mod key;
pub mod manifest;
pub mod message;
pub mod observe;
pub mod store;
pub mod trace;

pub use delivery::{Backoff, Delivery, Disposition};
pub use host::Host;
pub use ids::{AttemptId, FileId, MessageId, ProjectId, SearchId, SessionId, TimeoutId, Token};
pub use job::{Job, JobFile, JobState, Outcome};
pub use key::ObjectKey;
pub use manifest::{Manifest, ManifestFile, UploadMetadata};
pub use message::{Body, Destination, Message};
pub use observe::{Measure, Observation, Observe, Reporter, Verdict};
pub use store::StoreError;
pub use trace::Traceparent;
