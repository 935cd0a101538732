//! What an import stores and reads, beside the saga that steers it.
//!
//! - [`jobs`]: the import as its reader sees it, and its progress;
//! - [`studies`]: the studies and the records that could not be read;
//! - [`objects`]: the uploaded files.
//!
//! Each module has the types and the ports; the adapters are in crates of their own.

pub mod jobs;
pub mod objects;
pub mod studies;

pub use jobs::{Cursor, Page, Progress, ReadJobs, ReportProgress, Write, WriteJobs};
pub use objects::{ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant};
pub use studies::{Quarantined, ReadStudies, Study, StudyId, WriteStudies};
