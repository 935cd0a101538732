//! A store in a folder of its own.

use std::sync::Arc;

use embedded::{Settings, Store};
use imports::queues::QUEUES;
use messages::QueueSpec;
use tempfile::TempDir;
use testing::ManualHost;

pub(crate) type Tested = testing::Checked;

pub(crate) struct Depot {
    pub(crate) folder: TempDir,
    pub(crate) host: Arc<ManualHost>,
    pub(crate) store: Store,
}

impl Depot {
    pub(crate) fn new() -> Self {
        Self::with(&QUEUES)
    }

    /// With other queues than those of the application.
    pub(crate) fn with(queues: &'static [QueueSpec]) -> Self {
        let folder = TempDir::new().unwrap();
        let host = Arc::new(ManualHost::seeded(1));
        let store = Store::open(folder.path(), host.clone(), Settings::new(queues)).unwrap();
        Self { folder, host, store }
    }

    /// The same folder once more, as after a restart.
    pub(crate) fn reopened(&self) -> Store {
        Store::open(self.folder.path(), self.host.clone(), Settings::new(&QUEUES)).unwrap()
    }

    /// The database itself.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("search-import.sqlite")).unwrap()
    }
}
