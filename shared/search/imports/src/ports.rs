//! The ports that the application works on: the engine's, and its own.
//!
//! A function takes the ports that it uses from here, and knows no adapter; which adapters there are is chosen once, at
//! a program's start. A function that asks for a service which is not configured says which setting is missing; one that
//! does not ask needs no such setting.

use std::sync::Arc;
use std::time::Duration;

use saga::{Engine, Missing, Service};

use crate::exports::KeepExports;
use crate::jobs::{Jobs, ReadProgress, ReportProgress};
use crate::key::ObjectKey;
use crate::manifest::{ManifestLimits, UploadMetadata};
use crate::objects::{FindObjects, PresignUpload, ReadObject};
use crate::reading::TrackReading;
use crate::saga::{Deadlines, SearchImport};
use crate::studies::{CompareStudies, ReadStudies, WriteStudies};

/// The uploaded files, which a function reads.
pub const OBJECTS: Service = Service("objects");
/// The bucket of the uploaded files, which a function looks through.
pub const BUCKET: Service = Service("bucket");
/// The uploaded files, which a function makes upload forms for.
pub const UPLOADS: Service = Service("uploads");

/// The exports, which a function makes.
pub const EXPORTS: Service = Service("exports");
/// The exports, which a function gives out links to.
pub const LINKS: Service = Service("links");

/// How many unreadable records of a file are kept: more than anybody corrects by hand.
pub const KEPT_UNREADABLE: u64 = 10_000;

/// The ports of one program.
#[derive(Clone)]
pub struct Ports {
    /// The ports of the engine.
    pub engine: Engine,
    /// What the database holds of the application.
    pub library: Result<Library, Missing>,
    /// Reads the uploaded files.
    pub objects: Result<Arc<dyn ReadObject>, Missing>,
    /// Looks through them.
    pub bucket: Result<Arc<dyn FindObjects>, Missing>,
    /// Makes forms for uploading a file.
    pub uploads: Result<Arc<dyn PresignUpload>, Missing>,
    /// Keeps exports.
    pub exports: Result<Arc<dyn KeepExports>, Missing>,
    /// The machine that the stores are on; none for services.
    pub machine: Option<Arc<dyn InspectMachine>>,
    /// The application's limits and key prefix.
    pub settings: Settings,
}

/// Inspects the machine that stores are on.
pub trait InspectMachine: Send + Sync {
    /// Returns the bytes that the disk has left; none if that is not known.
    fn free_bytes(&self) -> Option<u64>;

    /// Returns `true` if a process works on what is stored; none if that is not known.
    fn has_worker(&self) -> Option<bool>;
}

/// What the database holds of the application.
#[derive(Clone)]
pub struct Library {
    /// Reads studies.
    pub read_studies: Arc<dyn ReadStudies>,
    /// Stores them.
    pub write_studies: Arc<dyn WriteStudies>,
    /// Finds those that are there twice.
    pub compare_studies: Arc<dyn CompareStudies>,
    /// Reads how far a file has been read.
    pub read_progress: Arc<dyn ReadProgress>,
    /// Records how far a file has been read.
    pub report_progress: Arc<dyn ReportProgress>,
    /// Keeps track of the attempts at reading files.
    pub track_reading: Arc<dyn TrackReading>,
}

impl Library {
    /// The ports of a store that has them all.
    pub fn of<S>(store: &Arc<S>) -> Self
    where
        S: ReadStudies
            + WriteStudies
            + CompareStudies
            + ReadProgress
            + ReportProgress
            + TrackReading
            + 'static,
    {
        Self {
            read_studies: store.clone(),
            write_studies: store.clone(),
            compare_studies: store.clone(),
            read_progress: store.clone(),
            report_progress: store.clone(),
            track_reading: store.clone(),
        }
    }
}

/// The settings of the application; [`Settings::default`] is what applies where none is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What the keys of uploads begin with.
    pub key_prefix: String,
    /// The largest file accepted, in bytes.
    pub max_file_bytes: u64,
    /// The largest record read, in bytes.
    pub max_record_bytes: usize,
    /// The most records that a file may have, unreadable ones counted; one with more is refused.
    pub max_records: u64,
    /// How many unreadable records of a file are kept, the first ones; the others are only counted.
    pub kept_unreadable: u64,
    /// The percentage of unreadable records tolerated; a file with more is refused.
    pub max_quarantined_percent: u8,
    /// How long an upload form is valid.
    pub upload_valid_for: Duration,
    /// How long a search waits for what.
    pub deadlines: Deadlines,
    /// What a project may have under way at one time.
    pub allowance: Allowance,
    /// How many bytes are read of a file before its records are: enough to keep several processors busy with, and little
    /// enough that what comes of it stays small.
    pub push_bytes: usize,
}

/// What the searches of a project that have not ended may come to. Requests at the same time may go a little beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    /// How many there may be.
    pub searches: usize,
    /// The announced size of all their files, in bytes.
    pub bytes: u64,
}

impl Allowance {
    /// What each of so many searches may have, in bytes. One that takes no more is counted, and not weighed: so small ones
    /// cost one look at an index, and beside large ones they may go beyond the limit, up to twice of it.
    pub fn share(&self) -> u64 {
        self.bytes / u64::try_from(self.searches.max(1)).unwrap_or(u64::MAX)
    }
}

impl Default for Allowance {
    fn default() -> Self {
        Self { searches: 1_000, bytes: 1 << 40 }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            key_prefix: "uploads/".to_owned(),
            max_file_bytes: 1 << 30,
            max_record_bytes: 4 << 20,
            max_records: 2_000_000,
            kept_unreadable: KEPT_UNREADABLE,
            max_quarantined_percent: 50,
            upload_valid_for: Duration::from_secs(3_600),
            deadlines: Deadlines::default(),
            allowance: Allowance::default(),
            push_bytes: 1 << 20,
        }
    }
}

impl Settings {
    /// What an announcement is held to.
    pub fn manifest_limits(&self) -> ManifestLimits {
        ManifestLimits {
            max_file_bytes: self.max_file_bytes,
            max_file_name_bytes: ObjectKey::max_name_bytes(&self.key_prefix),
            max_search_name_bytes: UploadMetadata::MAX_NAME_BYTES,
        }
    }
}

impl Ports {
    /// What the database holds of the application.
    ///
    /// # Errors
    /// When no database is configured.
    pub fn library(&self) -> Result<&Library, Missing> {
        self.library.as_ref().map_err(|missing| *missing)
    }

    /// Imports as their readers see them.
    ///
    /// # Errors
    /// When no database is configured.
    pub fn jobs(&self) -> Result<Jobs, Missing> {
        let progress = Arc::clone(&self.library()?.read_progress);
        Ok(Jobs { views: self.engine.views(self.saga())?, progress })
    }

    /// The saga of a search.
    pub fn saga(&self) -> SearchImport {
        SearchImport { deadlines: self.settings.deadlines }
    }
}

impl AsRef<Engine> for Ports {
    fn as_ref(&self) -> &Engine {
        &self.engine
    }
}

impl AsMut<Engine> for Ports {
    fn as_mut(&mut self) -> &mut Engine {
        &mut self.engine
    }
}
