//! The search import: its messages, decisions and stored data. Delivery belongs to the engine, in the crates
//! `messages`, `dedup`, `outbox` and `saga`.
//!
//! In reading order:
//! - [`ids`]: identifiers; a search is a partition of the engine;
//! - [`messages`], [`queues`]: all messages and their queues;
//! - [`manifest`], [`key`]: the announcement of a search, and the metadata of each uploaded file;
//! - [`saga`]: the state machine of one search;
//! - [`job`], [`jobs`]: the view of an import, and its queries;
//! - [`studies`], [`duplicates`]: studies, unreadable records, and duplicate marks;
//! - [`words`]: the search for words in studies;
//! - [`objects`], [`contents`], [`parse_attempts`]: uploaded files, the contents of packed ones, and the checkpoints of
//!   reading them;
//! - [`exports`]: exports that are created as objects;
//! - [`ports`]: all ports of the application.
//!
//! Ports are declared next to the types that they store; their adapters are separate crates.

pub mod contents;
pub mod duplicates;
pub mod exports;
pub mod ids;
pub mod job;
pub mod jobs;
pub mod key;
pub mod manifest;
pub mod messages;
mod names;
pub mod objects;
pub mod parse_attempts;
pub mod ports;
mod queue_names;
pub mod queues;
pub mod saga;
pub mod schemas;
pub mod studies;
mod vocabulary;
pub mod words;

pub use contents::{Contents, ContentsError, MAX_PARTS, Part, PartBytes, UnpackedPart};
pub use duplicates::{
    Candidate, Decisions, Duplicate, Identity, Reason, Revision, StudyKeys, StudyRef, Tier,
};
pub use exports::{ExportFolder, ExportId, ExportKey, ExportLink, KeepExports, StudyFilter};
pub use ids::{FileId, ProjectId, SearchId, TimeoutId};
pub use job::{Counts, Job, JobFile, JobState, Outcome};
pub use jobs::{AgePlace, ByAge, FilePhase, Jobs, Progress, ReadProgress, ReportProgress};
pub use key::ObjectKey;
pub use manifest::{Manifest, ManifestFile, UploadMetadata};
pub use messages::{ImportEvent, ParseCommand, SearchEvent};
pub use objects::{
    FindObjects, ObjectFacts, ObjectStream, PresignUpload, PresignedPost, ReadObject, UploadGrant,
};
pub use parse_attempts::{AttemptState, FileFence, ParseAttempts, ReadingStatus};
pub use ports::{InspectMachine, Ports, Settings, StudyStores};
pub use saga::{Deadlines, SearchImport};
pub use studies::{
    CompareStudies, DamagedRecord, DuplicateCounts, FileRef, Mark, ParsedFile, PreparedStudy,
    QuarantinedRecord, ReadStudies, Readable, Selection, StoredFile, Study, StudyId, WriteBatching,
    WriteStudies, readable,
};
pub use words::{IndexWords, WordQuery};

/// The application's name, in the types and sources of its messages.
pub const SYSTEM: &str = "search-import";
