//! An embedded installation, for the library and for the binary alike.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Config, SystemHost};
use dedup::GrantTokens;
use embedded::{Settings, Store};
use imports::queues::QUEUES;
use imports::{ParseCommand, PresignUpload, SearchEvent, UploadGrant, UploadMetadata};
use jiff::{SignedDuration, Timestamp};
use lambda_host::Function;
use messages::{Host, Message, Queue, ReceiveMessages};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// What every uploaded file holds.
const TWO_RECORDS: &str = "TY  - JOUR\nTI  - First\nAU  - One, Ann\nER  - \n\n\
                           TY  - JOUR\nTI  - Second\nAU  - Two, Bob\nER  - \n";

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
        for record in batch["Records"].as_array().unwrap() {
            let Ok(message) = Message::decode(record["body"].as_str().unwrap()) else { continue };
            let mut tokens: Vec<_> = message.token.clone().into_iter().collect();
            if let Ok(SearchEvent::SearchUploadSaved(saved)) = message.read() {
                self.store_upload(&saved.object.key).await;
            }
            if let Ok(ParseCommand::StartParsing(parse)) = message.read() {
                self.store_upload(&parse.object.key).await;
                tokens.extend(parse.reply_token);
            }
            self.store.grant(message.partition, &tokens, SystemHost.now()).await.unwrap();
        }
    }

    /// Stores a file of two records under a key.
    ///
    /// # Panics
    /// When the store does not take it.
    pub async fn store_upload(&self, key: &str) {
        let metadata =
            UploadMetadata { search_name: "Gambling harms".to_owned(), expected_files: 2 }.to_map();
        let expires_at = Timestamp::now() + SignedDuration::from_hours(1);
        let grant =
            UploadGrant { key: key.to_owned(), size_bytes: TWO_RECORDS.len() as u64, metadata, expires_at };
        let form = self.store.presign(&grant).await.unwrap();
        // Several records may be of one file.
        let stored = self.store.upload(&form, TWO_RECORDS.as_bytes()).await;
        assert!(matches!(stored, Ok(_) | Err(embedded::UploadError::Used)), "{stored:?}");
    }

    /// What was sent to a queue and can be received now, in order.
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
