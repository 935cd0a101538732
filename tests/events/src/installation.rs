//! An embedded installation, for the library and for the binary.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Config, SystemHost};
use embedded::{BUCKET, Settings, Store, UploadError};
use imports::queues::QUEUES;
use imports::{Ports, PresignedPost};
use lambda_host::Function;
use messages::{Message, Queue, ReceiveMessages};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::placed::{EventError, Place};

/// Uploads a file to an embedded store unless it exists: several records of an event may refer to one file.
pub async fn upload(store: &Store, form: &PresignedPost, file: &'static [u8]) -> Result<(), EventError> {
    match store.upload(form, file).await {
        Ok(_) | Err(UploadError::Used) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An embedded installation in a temporary folder, which is deleted with it.
pub struct Installation {
    dir: TempDir,
    /// The store of the installation.
    pub store: Arc<Store>,
}

impl Installation {
    /// Creates an empty installation.
    ///
    /// # Panics
    /// Panics if the folder cannot be created.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), Arc::new(SystemHost), Settings::new(&QUEUES)).unwrap();
        Self { dir, store: Arc::new(store) }
    }

    /// Returns the ports of the installation.
    pub fn backend(&self) -> Backend {
        let config = Config { data_dir: self.dir.path().to_owned(), ..Config::default() };
        backend::embedded(&self.store, Arc::new(SystemHost), self.store.clone(), config)
    }

    /// Starts a function's binary with this installation.
    ///
    /// # Panics
    /// Panics if it cannot be started.
    pub async fn start(&self, program: impl AsRef<Path>) -> Function {
        self.start_with(program, &[]).await
    }

    /// Works like [`Self::start`], but with additional settings.
    ///
    /// # Panics
    /// Panics if it cannot be started.
    pub async fn start_with(&self, program: impl AsRef<Path>, settings: &[(&str, &str)]) -> Function {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("SEARCH_IMPORT_BACKEND", "embedded")
            .env("SEARCH_IMPORT_DATA_DIR", self.dir.path())
            .envs(settings.iter().copied());
        Function::start(command).await.unwrap()
    }

    /// Creates an installation for the messages of a batch: their subjects are stored, and the tokens of the messages
    /// and of the expected replies are granted.
    ///
    /// # Panics
    /// Panics if the folder cannot be created, or the store is unavailable.
    pub async fn admitting(batch: &Value) -> Self {
        let installation = Self::new();
        installation.admit(batch).await;
        installation
    }

    async fn admit(&self, batch: &Value) {
        self.place(&self.backend().ports).admit(batch.clone()).await.unwrap();
    }

    /// Stores a file of two records under a key.
    ///
    /// # Panics
    /// Panics if the store does not take it.
    pub async fn store_upload(&self, key: &str) {
        self.place(&self.backend().ports).store(key).await.unwrap();
    }

    fn place<'a>(
        &'a self,
        ports: &'a Ports,
    ) -> Place<'a, impl AsyncFn(&PresignedPost, &'static [u8]) -> Result<(), EventError>> {
        Place { ports, bucket: BUCKET, upload: async |form: &_, file| upload(&self.store, form, file).await }
    }

    /// Returns the messages sent to a queue that are visible now, in order.
    ///
    /// # Panics
    /// Panics if the store is unavailable, or something else was sent.
    pub async fn sent(&self, queue: &Queue) -> Vec<Message> {
        let received = self.store.receive(queue, 10, Duration::from_secs(60)).await.unwrap();
        received.iter().map(|received| Message::decode(&received.delivery.body).unwrap()).collect()
    }
}

impl Default for Installation {
    fn default() -> Self {
        Self::new()
    }
}
