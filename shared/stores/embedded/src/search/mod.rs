//! The ports of the search import: studies, files, exports and progress.
//!
//! - `studies` (`study_rows`, `packed`), `compare` (`keys`, `file_keys`, `key_sort`, `shared_keys`): the records of files,
//!   their keys and marks;
//! - `words`: the index of the words in studies;
//! - `objects` (`object_rows`, `frames`), `upload`, `exports`, `notification`: what S3 does; `cpu_pool`: the threads
//!   that compress;
//! - `progress`, `parse_attempts`: how far a file has been read;
//! - `local_uploads`: files that this machine has yet to upload;
//! - `machine`: the disk and the worker of a data directory.

mod compare;
mod cpu_pool;
mod exports;
mod file_keys;
mod frames;
mod key_sort;
pub(crate) mod keys;
mod local_uploads;
mod machine;
mod notification;
mod object_rows;
mod objects;
mod packed;
mod parse_attempts;
mod progress;
pub(crate) mod shared_keys;
mod studies;
pub(crate) mod study_rows;
mod upload;
pub(crate) mod words;

pub use local_uploads::{LocalUpload, PendingUpload};
pub use object_rows::{BUCKET, UPLOAD_URL};
pub use upload::UploadError;
