//! The ingest function: each notification of a stored object becomes a `SearchUploadSaved` on the saga queue.
//!
//! A notification is delivered at least once, in any order, and contains only the object's key and size. The other
//! data is in the key (ids and token) and in the object's metadata, which this function looks up. Message ids are
//! derived from the object, so a repeated notification repeats the message.
//!
//! - [`NotifyUpload::handle`] is the function;
//! - [`notification`] parses the event.

pub mod notification;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use imports::messages::{ObjectRef, SearchUploadSaved};
use imports::ports::OBJECTS;
use imports::queues::{SAGA, UPLOADS};
use imports::{ObjectFacts, ObjectKey, Ports, ReadObject, SearchEvent};
use jiff::Timestamp;
use messages::host::stop_late;
use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{
    Backoff, Consumer, DEADLINE_NEAR, Delivery, Disposition, Message, MessageId, Outgoing, Payload, Reporter,
    SendError, SendMessages, StoreError, Verdict,
};
use saga::{Function, MissingSetting, Source};
use uuid::Uuid;

pub use notification::{Notification, NotificationError};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "notify-upload";

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[OBJECTS],
    source: Source::Notifications(UPLOADS),
    sends: &[SAGA],
    drains: &[],
    build: Some(build),
};

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, MissingSetting> {
    Ok(Arc::new(NotifyUpload::over(ports)?))
}

/// The namespace of the ids of messages that report a stored object.
const STORED_OBJECT: Uuid = Uuid::from_u128(0x6f1c_a0c4_0f65_4c0f_9a3b_5b7a_52b9_d001);

/// The handler of notifications.
#[derive(Clone)]
pub struct NotifyUpload {
    /// Reads the metadata of objects.
    pub objects: Arc<dyn ReadObject>,
    /// Sends the messages.
    pub send: Arc<dyn SendMessages>,
    /// Provides the clock and reports decisions.
    pub reporter: Reporter,
    /// The key prefix of uploads.
    pub key_prefix: String,
    /// The time after the deadline of an invocation at which the work on a notification is stopped; `None` for no limit.
    pub overtime: Option<Duration>,
}

/// Errors after which notifications are redelivered. Handling a notification again is safe.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The queue did not accept a message.
    #[error("sending SearchUploadSaved failed")]
    Send(#[from] SendError),
}

impl NotifyUpload {
    /// Returns the function over these ports.
    pub fn over(ports: &Ports) -> Result<Self, MissingSetting> {
        Ok(Self {
            objects: ports.objects.clone()?,
            send: Arc::clone(&ports.engine.send),
            reporter: ports.engine.reporter(NAME),
            key_prefix: ports.settings.key_prefix.clone(),
            overtime: ports.engine.overtime,
        })
    }

    /// Handles the notifications of one event. A notification of another object is logged and skipped; the object
    /// stays in the bucket.
    ///
    /// # Errors
    /// Returns an error if a service is unavailable; the whole event must then be redelivered.
    pub async fn handle(&self, notifications: &[Notification]) -> Result<(), Error> {
        let reporter = self.reporter.started_now();
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
                .map(|message| Outgoing::new(message, SAGA, Duration::ZERO))
                .collect::<Result<Vec<_>, _>>()
                .map_err(SendError::from)?;
            let results = self.send.send(&outgoing).await;
            for (message, result) in batch.iter().zip(results) {
                result?;
                let why = "reported the stored file to the saga";
                reporter.note(Some(message), Verdict::Handled, why);
            }
        }
        Ok(())
    }

    async fn message(&self, notification: &Notification, key: &ObjectKey) -> Result<Option<Message>, Error> {
        let version = notification.version.as_deref();
        let Some(facts) = self.objects.head(&notification.bucket, &notification.key, version).await? else {
            self.refuse(&format!("file {} of search {} does not exist any more", key.file, key.search));
            return Ok(None);
        };
        Ok(Some(self.saved(notification, key, facts)?))
    }

    fn saved(
        &self,
        notification: &Notification,
        key: &ObjectKey,
        facts: ObjectFacts,
    ) -> Result<Message, Error> {
        let version = notification.version.as_deref().unwrap_or("");
        let parts = [notification.bucket.as_str(), notification.key.as_str(), version];
        let id = MessageId::for_fact(STORED_OBJECT, &parts);
        let object = ObjectRef {
            bucket: notification.bucket.clone(),
            key: notification.key.clone(),
            version: notification.version.clone(),
            size_bytes: facts.size_bytes,
        };
        let saved = SearchUploadSaved::of(key, object, facts.metadata);
        let body = SearchEvent::SearchUploadSaved(saved).body().map_err(SendError::from)?;
        let message = Message::new(id, NAME, key.search, self.reporter.host.now(), body);
        Ok(Message { token: key.token.clone(), ..message })
    }

    /// Reports a rejected notification. The key is not logged because it may contain a token.
    fn refuse(&self, why: &str) {
        self.reporter.note(None, Verdict::Rejected, why);
    }
}

#[async_trait]
impl Consumer for NotifyUpload {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            let reporter = self.reporter.with_receive_count(delivery.receive_count);
            let function = Self { reporter, ..self.clone() };
            let host = &*self.reporter.host;
            let answer = match host.is_past(deadline) {
                true => None,
                false => stop_late(host, deadline, self.overtime, function.consume_one(delivery)).await,
            };
            answers.push(answer.unwrap_or_else(|| function.again(delivery, DEADLINE_NEAR.to_owned())));
        }
        answers
    }
}

impl NotifyUpload {
    /// Reports notifications that must be redelivered; an alarm counts these reports. An unavailable store makes the rest
    /// of a batch late. Without a delay, its receives would be used up soon.
    fn again(&self, delivery: &Delivery, reason: String) -> Disposition {
        self.reporter.note(None, Verdict::Retried, &reason);
        let after = Backoff::FAILURE.after(delivery.receive_count, self.reporter.host.unit_random());
        Disposition::Retry { after, reason }
    }

    async fn consume_one(&self, delivery: &Delivery) -> Disposition {
        let notifications = serde_json::from_str(&delivery.body)
            .map_err(|error| error.to_string())
            .and_then(|event| Notification::read_all(&event).map_err(|error| chain(&error)));
        let notifications = match notifications {
            Ok(notifications) => notifications,
            Err(reason) => return self.reporter.reject(None, reason),
        };
        match self.handle(&notifications).await {
            Ok(()) => Disposition::Acknowledge,
            Err(error) => self.again(delivery, chain(&error)),
        }
    }
}
