//! The ingest function: each notification of a stored object becomes a `SearchUploadSaved` on the saga queue.
//!
//! A notification comes at least once, in any order, and says nothing but the object's key and size. The rest is
//! in the key (ids and token) and in the object's metadata, which this function looks up. Message ids are derived
//! from the object, so that a repeated notification repeats the message.
//!
//! - [`NotifyUpload::handle`] is the function;
//! - [`notification`] reads the event.

pub mod notification;

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Service, Uses};
use contracts::message::{ObjectRef, SearchUploadSaved};
use contracts::store::chain;
use contracts::{Body, Message, MessageId, ObjectKey, Reporter, StoreError, Traceparent, Verdict};
use imports::{ObjectFacts, ReadObject};
use outbox::queue::MAX_BATCH;
use outbox::{Outgoing, Queue, SendError, SendMessages};
use uuid::Uuid;

pub use self::notification::{Notification, NotificationError};

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "notify-upload";

/// What the function works on.
pub const USES: Uses =
    Uses { function: FUNCTION, services: &[Service::Objects], receives: None, sends: &[Queue::Saga] };

/// Names messages that report a stored object.
const STORED_OBJECT: Uuid = Uuid::from_u128(0x6f1c_a0c4_0f65_4c0f_9a3b_5b7a_52b9_d001);

/// The function.
#[derive(Clone)]
pub struct NotifyUpload {
    /// Looks objects up.
    pub objects: Arc<dyn ReadObject>,
    /// Takes the messages.
    pub queue: Arc<dyn SendMessages>,
    /// Time, and who wants to know.
    pub reporter: Reporter,
    /// What the keys of uploads begin with.
    pub key_prefix: String,
}

/// Why notifications have to come again. Repeating those that were handled does no harm.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue did not take a message.
    #[error("sending SearchUploadSaved failed")]
    Send(#[from] SendError),
}

impl NotifyUpload {
    /// The function on a backend.
    pub fn over(backend: &Backend) -> Self {
        Self {
            objects: Arc::clone(&backend.objects),
            queue: Arc::clone(&backend.queue),
            reporter: backend.reporter(FUNCTION),
            key_prefix: backend.config.key_prefix.clone(),
        }
    }

    /// Handles the notifications of one event. One that is not of an upload is noted in the log and left at that:
    /// the object stays where it is.
    ///
    /// # Errors
    /// When something did not answer; the whole event is then to come again.
    pub async fn handle(&self, notifications: &[Notification]) -> Result<(), Error> {
        let reporter = self.reporter.beginning();
        let mut messages = Vec::new();
        for notification in notifications {
            match ObjectKey::parse(&self.key_prefix, &notification.key) {
                Ok(key) => messages.extend(self.message(notification, &key).await?),
                Err(error) => self.refuse(&format!("a stored object is not an upload: {}", chain(&error))),
            }
        }
        for batch in messages.chunks(MAX_BATCH) {
            let outgoing = batch
                .iter()
                .map(|message| Outgoing::new(message, Duration::ZERO))
                .collect::<Result<Vec<_>, _>>()
                .map_err(SendError::from)?;
            let results = self.queue.send(&outgoing).await;
            for (message, result) in batch.iter().zip(results) {
                result?;
                let why = "told the saga that the file is stored";
                reporter.note(Some(message), Verdict::Handled, why);
            }
        }
        Ok(())
    }

    async fn message(
        &self,
        notification: &Notification,
        key: &ObjectKey,
    ) -> Result<Option<Message>, StoreError> {
        let version = notification.version.as_deref();
        let Some(facts) = self.objects.head(&notification.bucket, &notification.key, version).await? else {
            self.refuse(&format!("file {} of search {} is gone already", key.file, key.search));
            return Ok(None);
        };
        Ok(Some(self.saved(notification, key, facts)))
    }

    fn saved(&self, notification: &Notification, key: &ObjectKey, facts: ObjectFacts) -> Message {
        let version = notification.version.as_deref().unwrap_or("");
        let parts = [notification.bucket.as_str(), notification.key.as_str(), version];
        let id = MessageId::of_fact(STORED_OBJECT, &parts);
        Message {
            id,
            source: FUNCTION.into(),
            time: self.reporter.host.now(),
            correlation_id: key.search,
            causation_id: None,
            token: key.token.clone(),
            traceparent: Some(Traceparent::of(key.search, id.derive(0)).to_string()),
            body: Body::SearchUploadSaved(SearchUploadSaved {
                project_id: key.project,
                file_id: key.file,
                file_name: key.name.clone(),
                object: ObjectRef {
                    bucket: notification.bucket.clone(),
                    key: notification.key.clone(),
                    version: notification.version.clone(),
                    size_bytes: facts.size_bytes,
                },
                metadata: facts.metadata,
            }),
        }
    }

    /// The key itself is not logged: it may hold a token.
    fn refuse(&self, why: &str) {
        self.reporter.note(None, Verdict::Rejected, why);
    }
}
