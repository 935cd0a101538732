//! What an import stores and reads, beside the saga that steers it.
//!
//! - [`jobs`]: the import as its reader sees it, and its progress;
//! - [`studies`]: the studies and the records that could not be read;
//! - [`duplicates`]: which studies of a search are there twice;
//! - [`objects`]: the uploaded files.
//!
//! Each module has the types and the ports; the adapters are in crates of their own.

pub mod duplicates;
pub mod jobs;
pub mod objects;
pub mod studies;

pub use duplicates::{Duplicate, Identity, Matcher, Reason};
pub use jobs::{Cursor, Page, Progress, ReadJobs, ReportProgress, Write, WriteJobs};
pub use objects::{ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant};
pub use studies::{Mark, ParsedFile, Quarantined, ReadStudies, Study, StudyId, WriteStudies};
