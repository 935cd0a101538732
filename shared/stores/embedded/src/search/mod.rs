//! The ports of the search import: studies, files, exports and progress.
//!
//! - `studies` (`rows`, `keys`, `repeated`, `packed`): the records of files, their keys and marks;
//! - `objects` (`frames`), `upload`, `exports`, `notification`: what S3 does; `beside`: the threads that compress;
//! - `progress`, `reading`: how far a file has been read;
//! - `pending`: files that this machine has yet to upload;
//! - `machine`: the disk and the worker of a data directory.

mod beside;
mod exports;
mod frames;
pub(crate) mod keys;
mod machine;
mod notification;
mod objects;
mod packed;
mod pending;
mod progress;
mod reading;
pub(crate) mod repeated;
pub(crate) mod rows;
mod studies;
mod upload;

pub use objects::{BUCKET, UPLOAD_URL};
pub use pending::{LocalUpload, PendingUpload};
pub use upload::UploadError;
