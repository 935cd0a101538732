//! The search import: what it says, decides and stores. How all this is delivered is the engine's business, in the crates
//! `messages`, `dedup`, `outbox` and `saga`.
//!
//! In reading order:
//! - [`ids`]: who and what things are; a search is a partition of the engine;
//! - [`messages`], [`queues`]: everything that travels, and where;
//! - [`manifest`], [`key`]: what a search announces, and what each uploaded file says of itself;
//! - [`saga`]: the state machine of one search;
//! - [`job`], [`jobs`]: an import as its readers see it, and how far its files are;
//! - [`studies`], [`duplicates`]: the studies, the records that could not be read, and which studies are there twice;
//! - [`objects`], [`contents`], [`reading`]: the uploaded files, what is inside packed ones, and how far the reading of one has got;
//! - [`exports`]: what is made of the studies for whoever asks for all of them;
//! - [`ports`]: all ports that the application works on.
//!
//! Ports stand beside what they store; their adapters are in crates of their own.

pub mod contents;
pub mod duplicates;
pub mod exports;
pub mod ids;
pub mod job;
pub mod jobs;
pub mod key;
pub mod manifest;
pub mod messages;
pub mod objects;
pub mod ports;
pub mod queues;
pub mod reading;
pub mod saga;
pub mod schemas;
pub mod studies;

pub use contents::{Contents, ContentsError, MAX_PARTS, Part, PartBytes, Unpacked};
pub use duplicates::{Decisions, Duplicate, Identity, Keyed, Reason, Relative, Revision, StudyAt, Tier};
pub use exports::{ExportId, ExportKey, ExportLink, KeepExports, Which};
pub use ids::{FileId, ProjectId, SearchId, TimeoutId};
pub use job::{Counts, Job, JobFile, JobState, Outcome};
pub use jobs::{AgePlace, ByAge, Jobs, Progress, ReadProgress, ReportProgress};
pub use key::ObjectKey;
pub use manifest::{Manifest, ManifestFile, UploadMetadata};
pub use messages::{ImportEvent, ParseCommand, SearchEvent};
pub use objects::{
    FindObjects, ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant,
};
pub use ports::{InspectMachine, Library, Ports, Settings};
pub use reading::{Fenced, Place, Reading, TrackReading};
pub use saga::{Deadlines, SearchImport};
pub use studies::{
    CompareStudies, Damaged, Mark, Marked, Pace, ParsedFile, Quarantined, ReadStudies, Readable, ReadyStudy,
    Selection, Study, StudyId, WriteStudies, readable,
};

/// The application's name, in the types and sources of its messages.
pub const SYSTEM: &str = "search-import";
