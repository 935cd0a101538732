//! A store in a temporary folder.

use std::collections::BTreeMap;
use std::sync::Arc;

use contracts::{ManualHost, sample};
use embedded::{BUCKET, Settings, Store};
use futures::TryStreamExt;
use imports::messages::ObjectRef;
use imports::queues::QUEUES;
use imports::{PresignUpload, ReadObject, UploadGrant};
use messages::{QueueSpec, StoreError};
use tempfile::TempDir;

pub(crate) type TestResult = contracts::CheckResult;

pub(crate) struct Depot {
    pub(crate) folder: TempDir,
    pub(crate) host: Arc<ManualHost>,
    pub(crate) store: Store,
}

impl Depot {
    pub(crate) fn new() -> Self {
        Self::with(&QUEUES)
    }

    /// Creates a store whose queues differ from the queues of the application.
    pub(crate) fn with(queues: &'static [QueueSpec]) -> Self {
        let folder = TempDir::new().unwrap();
        let host = Arc::new(ManualHost::seeded(1));
        let store = Store::open(folder.path(), host.clone(), Settings::new(queues)).unwrap();
        Self { folder, host, store }
    }

    /// Opens the same folder again, as after a restart.
    pub(crate) fn reopened(&self) -> Store {
        Store::open(self.folder.path(), self.host.clone(), Settings::new(&QUEUES)).unwrap()
    }

    /// Uploads an object.
    pub(crate) async fn upload(&self, key: &str, content: &[u8]) -> TestResult {
        let grant = UploadGrant {
            key: key.to_owned(),
            size_bytes: content.len() as u64,
            metadata: BTreeMap::new(),
            expires_at: sample::later(sample::now(&*self.host), 60),
        };
        let form = self.store.presign(&grant).await?;
        self.store.upload(&form, content).await?;
        Ok(())
    }

    /// The bytes of an object.
    pub(crate) async fn read(&self, key: &str) -> Result<Vec<u8>, StoreError> {
        let object = ObjectRef { bucket: BUCKET.into(), key: key.to_owned(), version: None, size_bytes: 0 };
        let stream = ReadObject::open(&self.store, &object, 0).await?.unwrap();
        stream.try_concat().await
    }

    /// The database itself.
    pub(crate) fn database(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.folder.path().join("search-import.sqlite")).unwrap()
    }
}
