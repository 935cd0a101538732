//! Opening a data directory, and what all ports have in common.

use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use messages::{Host, QueueSpec, StoreError};
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
use crate::storing::Storing;
use crate::work::Durability;

/// A data directory. Clones share it; the last one dropped closes it, after what was handed over is done.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    intercept: Option<Arc<dyn Intercept>>,
}

struct Shared {
    engine: DbThreads,
    host: Arc<dyn Host>,
    settings: Settings,
    folder: Folder,
    sends: Sends,
    storing: Arc<Storing>,
    #[cfg(feature = "search")]
    shared_keys: SharedKeyCache,
}

impl Store {
    /// Opens a data directory for work, and creates what is missing. Whoever works in it holds its
    /// [`Store::lock`] first and calls [`Store::recover`] next.
    ///
    /// # Errors
    /// When it cannot be created or read, was made by another program, is damaged or has lost its database, or has the
    /// form of a later release. What is there is left as it is then.
    pub fn open(dir: &Path, host: Arc<dyn Host>, settings: Settings) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { path: dir.to_owned(), source };
        let folder = Folder::prepare(dir).map_err(failed)?;
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

    /// Opens a data directory with these queues for inspection, beside a process that works in it. Whatever would
    /// write fails.
    ///
    /// # Errors
    /// When there is no data directory, it was made by another program, or it has the form of another release.
    pub fn open_read_only(
        dir: &Path,
        host: Arc<dyn Host>,
        queues: &'static [QueueSpec],
    ) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder { path: dir.to_owned(), source };
        Self::start(Folder::open(dir).map_err(failed)?, None, host, Settings::new(queues))
    }

    fn start(
        folder: Folder,
        writer: Option<Connection>,
        host: Arc<dyn Host>,
        settings: Settings,
    ) -> Result<Self, OpenError> {
        let reader = schema::open_for_reading(&folder.database())?;
        let engine = DbThreads::start(writer, reader, folder.flush_log())
            .map_err(|source| OpenError::Folder { path: folder.path().to_owned(), source })?;
        let shared = Shared {
            engine,
            host,
            settings,
            folder,
            sends: Sends::new(),
            storing: Arc::default(),
            #[cfg(feature = "search")]
            shared_keys: SharedKeyCache::default(),
        };
        Ok(Self { shared: Arc::new(shared), intercept: None })
    }

    /// Takes the exclusive right to work in a data directory, which is created if need be.
    ///
    /// # Errors
    /// When another process has it; the error names that process.
    pub fn lock(dir: &Path) -> Result<Lock, LockError> {
        Lock::take(dir)
    }

    /// Returns why the disk took no more data, the last time that it did not; none if it took all of it so far.
    pub fn disk_refusal(&self) -> Option<String> {
        self.engine().refused()
    }

    /// Returns the bytes that the disk of the data directory has left; none if the system does not report them.
    pub fn free_bytes(&self) -> Option<u64> {
        self.folder().free_bytes()
    }

    /// Returns `true` if a process holds the lock of the data directory; none if that cannot be determined.
    pub fn has_worker(&self) -> Option<bool> {
        Lock::is_held(self.folder()).ok()
    }

    /// The same store, with `intercept` called around every call of a port made through this handle.
    #[must_use]
    pub fn with_intercept(&self, intercept: Arc<dyn Intercept>) -> Self {
        Self { shared: Arc::clone(&self.shared), intercept: Some(intercept) }
    }

    /// The data directory.
    pub fn dir(&self) -> &Path {
        self.shared.folder.path()
    }

    /// The settings it was opened with.
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

    pub(crate) fn storing(&self) -> &Arc<Storing> {
        &self.shared.storing
    }

    #[cfg(feature = "search")]
    pub(crate) fn shared_keys(&self) -> &SharedKeyCache {
        &self.shared.shared_keys
    }

    pub(crate) fn engine(&self) -> &DbThreads {
        &self.shared.engine
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.shared.folder
    }

    /// A port's call that writes, durably.
    pub(crate) async fn change<T, F>(&self, call: Call, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.step(call, Phase::Before).await;
        let result = self.engine().write(doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    /// A port's call that writes what a power cut may undo, together with all that came after it.
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
        let result = self.engine().write_and(Durability::Committed, doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    /// A port's call that reads.
    pub(crate) async fn look<T, F>(&self, call: Call, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.step(call, Phase::Before).await;
        let result = self.engine().read(doing, work).await;
        self.step(call, Phase::After).await;
        result
    }

    pub(crate) async fn step(&self, call: Call, phase: Phase) {
        if let Some(intercept) = &self.intercept {
            intercept.step(call, phase).await;
        }
    }
}
