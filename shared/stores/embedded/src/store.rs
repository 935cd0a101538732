//! Opening a data directory, and the parts that all ports share.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use messages::{Host, StoreError};
use rusqlite::Connection;

use crate::db_threads::DbThreads;
use crate::fault::Fault;
use crate::folder::Folder;
use crate::intercept::{Call, Intercept, Phase};
use crate::lock::{Lock, LockError};
use crate::open_error::OpenError;
use crate::schema;
#[cfg(feature = "search")]
use crate::search::shared_keys::SharedKeyCache;
use crate::sends::Sends;
use crate::settings::Settings;
use crate::work::Durability;
use crate::writes_in_progress::WritesInProgress;

/// A data directory. Clones share it; the last clone that is dropped completes the submitted work and closes it.
#[derive(Clone)]
pub struct Store {
    shared: Arc<StoreInner>,
    intercept: Option<Arc<dyn Intercept>>,
}

struct StoreInner {
    threads: DbThreads,
    host: Arc<dyn Host>,
    settings: Settings,
    folder: Folder,
    sends: Sends,
    writes: Arc<WritesInProgress>,
    #[cfg(feature = "search")]
    shared_keys: SharedKeyCache,
}

impl Store {
    /// Opens a data directory for work, and creates missing files. A worker takes the [`Store::lock`] first and calls
    /// [`Store::recover`] next.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be created or read, belongs to another program, is damaged, has lost
    /// its database, or was written by a newer version. The contents of the directory are not changed.
    pub fn open(dir: &Path, host: Arc<dyn Host>, settings: Settings) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { path: dir.to_owned(), source };
        let folder = Folder::prepare(dir, settings.system).map_err(failed)?;
        let path = folder.database();
        let lost = |left: Option<String>| {
            left.map_or(Ok(()), |left| Err(OpenError::Lost { path: path.clone(), left }))
        };
        lost(folder.left_without_database().map_err(failed)?)?;
        folder.create_database().map_err(failed)?;
        let may_begin = || lost(folder.orphaned().map_err(failed)?);
        let writer = schema::open_for_writing(&path, may_begin)?;
        Self::start(folder, Some(writer), host, settings)
    }

    /// Opens a data directory for inspection, while another process may work in it. Writes fail.
    ///
    /// # Errors
    /// Returns an error if there is no data directory, it belongs to another program, or another version wrote it.
    pub fn open_read_only(dir: &Path, host: Arc<dyn Host>, settings: Settings) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { path: dir.to_owned(), source };
        Self::start(Folder::open(dir, settings.system).map_err(failed)?, None, host, settings)
    }

    fn start(
        folder: Folder,
        writer: Option<Connection>,
        host: Arc<dyn Host>,
        settings: Settings,
    ) -> Result<Self, OpenError> {
        let reader = schema::open_for_reading(&folder.database())?;
        let threads = DbThreads::start(writer, reader, folder.flush_log())
            .map_err(|source| OpenError::Folder { path: folder.path().to_owned(), source })?;
        let shared = StoreInner {
            threads,
            host,
            settings,
            folder,
            sends: Sends::new(),
            writes: Arc::default(),
            #[cfg(feature = "search")]
            shared_keys: SharedKeyCache::default(),
        };
        Ok(Self { shared: Arc::new(shared), intercept: None })
    }

    /// Takes the exclusive lock of a data directory, which is created if it does not exist.
    ///
    /// # Errors
    /// Returns an error if another process holds it; the error names that process.
    pub fn lock(dir: &Path) -> Result<Lock, LockError> {
        Lock::take(dir)
    }

    /// Returns the reason of the last write that the disk refused; `None` if it refused none.
    pub fn disk_refusal(&self) -> Option<String> {
        self.threads().refused()
    }

    /// Returns the bytes that the disk of the data directory has left; `None` if the system does not report them.
    pub fn free_bytes(&self) -> Option<u64> {
        self.folder().free_bytes()
    }

    /// Returns `true` if a process holds the lock of the data directory; `None` if that cannot be determined.
    pub fn has_worker(&self) -> Option<bool> {
        Lock::is_held(self.folder()).ok()
    }

    /// Returns the same store with `intercept` called before and after every port call made through this handle.
    #[must_use]
    pub fn with_intercept(&self, intercept: Arc<dyn Intercept>) -> Self {
        Self { shared: Arc::clone(&self.shared), intercept: Some(intercept) }
    }

    /// Returns the data directory.
    pub fn dir(&self) -> &Path {
        self.shared.folder.path()
    }

    /// Returns the settings that the store was opened with.
    pub fn settings(&self) -> &Settings {
        &self.shared.settings
    }

    pub(crate) fn host(&self) -> &Arc<dyn Host> {
        &self.shared.host
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.shared.host.now()
    }

    pub(crate) fn sends(&self) -> &Sends {
        &self.shared.sends
    }

    pub(crate) fn writes_in_progress(&self) -> &Arc<WritesInProgress> {
        &self.shared.writes
    }

    #[cfg(feature = "search")]
    pub(crate) fn shared_keys(&self) -> &SharedKeyCache {
        &self.shared.shared_keys
    }

    pub(crate) fn threads(&self) -> &DbThreads {
        &self.shared.threads
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.shared.folder
    }

    /// Runs a port call that writes durably.
    pub(crate) async fn change<T, F>(&self, call: Call, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.step(call, Phase::Before).await;
        let result = self.threads().write(doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    /// Runs a port call whose write may be lost in a power failure, together with all later writes.
    pub(crate) async fn change_in_passing<T, F>(
        &self,
        call: Call,
        doing: String,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.step(call, Phase::Before).await;
        let result = self.threads().write_and(Durability::Committed, doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    /// Runs a port call that reads.
    pub(crate) async fn look<T, F>(&self, call: Call, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.step(call, Phase::Before).await;
        let result = self.threads().read(doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    pub(crate) async fn step(&self, call: Call, phase: Phase) {
        if let Some(intercept) = &self.intercept {
            intercept.step(call, phase).await;
        }
    }
}
