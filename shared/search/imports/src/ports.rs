//! The ports of the application: the engine's, and its own.
//!
//! A function takes its ports from here and knows no adapter; adapters are chosen once, when a program starts. A
//! function that requests a service which is not configured gets an error with the missing setting; other functions
//! do not need the setting.

use std::sync::Arc;
use std::time::Duration;

use ::saga::{Engine, MissingSetting, Service};

use crate::exports::KeepExports;
use crate::jobs::{Jobs, ReadProgress, ReportProgress};
use crate::key::ObjectKey;
use crate::manifest::{ManifestLimits, UploadMetadata};
use crate::objects::{FindObjects, PresignUpload, ReadObject};
use crate::parse_attempts::ParseAttempts;
use crate::saga::{Deadlines, SearchImport};
use crate::studies::{CompareStudies, ReadStudies, WriteStudies};
use crate::words::IndexWords;

/// The uploaded files, for functions that read them.
pub const OBJECTS: Service = Service("objects");
/// The bucket of the uploaded files, for functions that list it.
pub const BUCKET: Service = Service("bucket");
/// The uploaded files, for functions that sign upload forms.
pub const UPLOADS: Service = Service("uploads");

/// The exports, for functions that create them.
pub const EXPORTS: Service = Service("exports");
/// The exports, for functions that create links to them.
pub const LINKS: Service = Service("links");

/// The default number of unreadable records of a file that are stored, which is more than a reviewer corrects by
/// hand.
pub const KEPT_UNREADABLE: u64 = 10_000;

/// The ports of one program.
#[derive(Clone)]
pub struct Ports {
    /// The ports of the engine.
    pub engine: Engine,
    /// The application's stores in the database.
    pub study_stores: Result<StudyStores, MissingSetting>,
    /// Reads the uploaded files.
    pub objects: Result<Arc<dyn ReadObject>, MissingSetting>,
    /// Lists uploaded files.
    pub bucket: Result<Arc<dyn FindObjects>, MissingSetting>,
    /// Signs upload forms.
    pub uploads: Result<Arc<dyn PresignUpload>, MissingSetting>,
    /// Stores exports.
    pub exports: Result<Arc<dyn KeepExports>, MissingSetting>,
    /// The machine of the embedded stores; `None` for services.
    pub machine: Option<Arc<dyn InspectMachine>>,
    /// The application's limits and key prefix.
    pub settings: Settings,
}

/// Inspects the machine of the embedded stores.
pub trait InspectMachine: Send + Sync {
    /// Returns the free bytes of the disk, or `None` if they are not known.
    fn free_bytes(&self) -> Option<u64>;

    /// Returns `true` if a process holds the data directory, or `None` if that is not known.
    fn has_worker(&self) -> Option<bool>;
}

/// The application's stores in the database.
#[derive(Clone)]
pub struct StudyStores {
    /// Reads studies.
    pub read_studies: Arc<dyn ReadStudies>,
    /// Stores studies.
    pub write_studies: Arc<dyn WriteStudies>,
    /// Finds and marks duplicates.
    pub compare_studies: Arc<dyn CompareStudies>,
    /// Stores the index of words.
    pub index_words: Arc<dyn IndexWords>,
    /// Reads the progress of files.
    pub read_progress: Arc<dyn ReadProgress>,
    /// Reports the progress of files.
    pub report_progress: Arc<dyn ReportProgress>,
    /// Records the attempts to read files.
    pub parse_attempts: Arc<dyn ParseAttempts>,
}

impl StudyStores {
    /// Returns the ports of a store that implements them all.
    pub fn of<S>(store: &Arc<S>) -> Self
    where
        S: ReadStudies
            + WriteStudies
            + CompareStudies
            + IndexWords
            + ReadProgress
            + ReportProgress
            + ParseAttempts
            + 'static,
    {
        Self {
            read_studies: store.clone(),
            write_studies: store.clone(),
            compare_studies: store.clone(),
            index_words: store.clone(),
            read_progress: store.clone(),
            report_progress: store.clone(),
            parse_attempts: store.clone(),
        }
    }
}

/// The settings of the application; [`Settings::default`] has the default values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The key prefix of uploads.
    pub key_prefix: String,
    /// The maximum size of a file, in bytes.
    pub max_file_bytes: u64,
    /// The maximum size of a record, in bytes.
    pub max_record_bytes: usize,
    /// The maximum number of records of a file, including unreadable ones; a file with more is rejected.
    pub max_records: u64,
    /// The maximum number of unreadable records of a file that are stored; further ones are only counted.
    pub kept_unreadable: u64,
    /// The maximum percentage of unreadable records; a file with more is rejected.
    pub max_quarantined_percent: u8,
    /// The validity of an upload form.
    pub upload_valid_for: Duration,
    /// The time limits of a search.
    pub deadlines: Deadlines,
    /// The quota of unfinished searches of a project.
    pub quota: Quota,
    /// The number of bytes that are fed to a reader before its records are taken: enough to occupy several
    /// processors, but few enough to bound the memory for the results.
    pub push_bytes: usize,
}

/// The quota of a project's unfinished searches. Concurrent requests may exceed it slightly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// The maximum number of searches.
    pub searches: usize,
    /// The maximum total of their announced file sizes, in bytes.
    pub bytes: u64,
}

impl Quota {
    /// Returns the size, in bytes, up to which a search is only counted and its size is ignored. Small searches
    /// therefore need just one index lookup; together with large ones, they may exceed the size limit by a factor of
    /// up to two.
    pub fn share(&self) -> u64 {
        self.bytes / u64::try_from(self.searches.max(1)).unwrap_or(u64::MAX)
    }
}

impl Default for Quota {
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
            quota: Quota::default(),
            push_bytes: 1 << 20,
        }
    }
}

impl Settings {
    /// Returns the limits of announcements.
    pub fn manifest_limits(&self) -> ManifestLimits {
        ManifestLimits {
            max_file_bytes: self.max_file_bytes,
            max_file_name_bytes: ObjectKey::max_name_bytes(&self.key_prefix),
            max_search_name_bytes: UploadMetadata::MAX_NAME_BYTES,
        }
    }
}

impl Ports {
    /// Returns the application's stores.
    pub fn study_stores(&self) -> Result<&StudyStores, MissingSetting> {
        self.study_stores.as_ref().map_err(Clone::clone)
    }

    /// Returns the queries of import jobs.
    pub fn jobs(&self) -> Result<Jobs, MissingSetting> {
        let progress = Arc::clone(&self.study_stores()?.read_progress);
        Ok(Jobs { views: self.engine.views(self.saga())?, progress })
    }

    /// Returns the saga of a search.
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
