//! An embedded installation, for the library and for the binary alike.

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

use crate::placed::{Failed, Place};

/// Uploads a file to an embedded store unless it exists: several records of an event may name one file.
///
/// # Errors
/// When the store does not take it.
pub async fn upload(store: &Store, form: &PresignedPost, file: &'static [u8]) -> Result<(), Failed> {
    match store.upload(form, file).await {
        Ok(_) | Err(UploadError::Used) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// An embedded installation in a folder of its own, which goes with it.
pub struct Installation {
    dir: TempDir,
    /// Its store.
    pub store: Arc<Store>,
}

impl Installation {
    /// An empty one.
    ///
    /// # Panics
    /// When there is no place for it.
    pub fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let store = Store::open(dir.path(), Arc::new(SystemHost), Settings::new(&QUEUES)).unwrap();
        Self { dir, store: Arc::new(store) }
    }

    /// The ports on it.
    pub fn backend(&self) -> Backend {
        let config = Config { data_dir: self.dir.path().to_owned(), ..Config::default() };
        backend::embedded(&self.store, Arc::new(SystemHost), self.store.clone(), config)
    }

    /// Starts a function's binary on it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub async fn start(&self, program: impl AsRef<Path>) -> Function {
        self.start_with(program, &[]).await
    }

    /// The same with more settings.
    ///
    /// # Panics
    /// When it cannot be started.
    pub async fn start_with(&self, program: impl AsRef<Path>, settings: &[(&str, &str)]) -> Function {
        let mut command = Command::new(program.as_ref());
        command
            .env_clear()
            .env("SEARCH_IMPORT_BACKEND", "embedded")
            .env("SEARCH_IMPORT_DATA_DIR", self.dir.path())
            .envs(settings.iter().copied());
        Function::start(command).await.unwrap()
    }

    /// One in which the messages of a batch mean something: what they are about is stored, and the tokens that they
    /// carry and the replies will are granted.
    ///
    /// # Panics
    /// When there is no place for it, or the store does not answer.
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
    /// When the store does not take it.
    pub async fn store_upload(&self, key: &str) {
        self.place(&self.backend().ports).store(key).await.unwrap();
    }

    fn place<'a>(
        &'a self,
        ports: &'a Ports,
    ) -> Place<'a, impl AsyncFn(&PresignedPost, &'static [u8]) -> Result<(), Failed>> {
        Place { ports, bucket: BUCKET, upload: async |form: &_, file| upload(&self.store, form, file).await }
    }

    /// Returns the visible messages of a queue, in order.
    ///
    /// # Panics
    /// When the store does not answer, or something else was sent.
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
