//! SQS adapters: the queues.
//!
//! - [`Queues`]: the addresses of the queues;
//! - [`Sqs`]: [`messages::SendMessages`] for every function, and [`messages::ReceiveMessages`] for programs without an
//!   event source. A function behind a queue does not need the latter: Lambda receives and deletes for it;
//!   [`messages::InspectQueues`] for operators and health checks.
//!
//! A batch call may succeed while some of its entries fail: the result of every entry is checked, and entries that
//! failed temporarily are sent again, a few times within the time limit of the call. The outbox retries the rest.
//!
//! A queue with a receive limit has it as its redrive policy; the adapter itself moves only messages that are
//! dead-lettered immediately.

mod attributes;
mod batch;
mod entries;
mod inspect;
mod receipt;
mod receive;
mod send;
mod urls;

use std::sync::Arc;
use std::time::Duration;

use crate::{Resource, failed};
use aws_sdk_sqs::Client;
use aws_types::SdkConfig;
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Queue, QueueSpec, StoreError};

pub use attributes::DEAD_LETTER_REASON;
pub use receipt::{MalformedReceipt, Receipt};
pub use send::{DelayTooLong, EntryFailure, MAX_DELAY};
pub use urls::Queues;

/// Returns the client for a configuration, with its own time limit for each call, including retries. Sending messages
/// takes no longer than one call, although entries are sent again.
pub fn client(config: &SdkConfig, call_timeout: Duration) -> Client {
    let timeouts = crate::timeouts(call_timeout);
    Client::from_conf(aws_sdk_sqs::config::Builder::from(config).timeout_config(timeouts).build())
}

/// The port of the queues, with one client.
#[derive(Clone)]
pub struct Sqs {
    client: Client,
    urls: Queues,
    queues: &'static [QueueSpec],
    host: Arc<dyn Host>,
    wait: Duration,
}

impl Sqs {
    /// The default time that a receive waits for a message: the minimum for which SQS queries all its servers, so that
    /// it finds every available message
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html>).
    pub const WAIT: Duration = Duration::from_secs(1);

    /// Returns the queues at their addresses. `queues` names the dead-letter queue of each.
    pub fn new(client: Client, urls: Queues, queues: &'static [QueueSpec], host: Arc<dyn Host>) -> Self {
        Self { client, urls, queues, host, wait: Self::WAIT }
    }

    /// Returns the adapter with another time that a receive waits for a message, in whole seconds up to 3: the client ends
    /// an attempt after [`crate::ATTEMPT_TIMEOUT`]. A receive that waits zero seconds queries only some of the queue's servers, and may miss messages.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Checks that a queue exists.
    ///
    /// # Errors
    /// Returns an error if the queue has no URL, does not exist, or does not answer.
    pub async fn check(&self, queue: &Queue) -> Result<(), StoreError> {
        let doing = format!("looking for queue {queue}");
        let request = self.client.get_queue_attributes().queue_url(self.url(queue, &doing)?);
        request.send().await.map_err(|error| failed(doing, &self.resource(queue), &error))?;
        Ok(())
    }

    fn url(&self, queue: &Queue, doing: &str) -> Result<&str, StoreError> {
        self.urls.url(queue).ok_or_else(|| {
            let setting = self.urls.setting_of(queue);
            StoreError::unusable(doing, format!("no URL is set for queue {queue}: {setting} is not set"))
        })
    }

    fn dead_letters_of(&self, queue: &Queue) -> Option<Queue> {
        QueueSpec::dead_letters_of(self.queues, queue)
    }

    fn resource(&self, queue: &Queue) -> Resource {
        let name = self.urls.url(queue).unwrap_or_default().to_owned();
        Resource { kind: "queue", name, setting: self.urls.setting_of(queue) }
    }
}

fn later(at: Timestamp, by: Duration) -> Timestamp {
    SignedDuration::try_from(by).ok().and_then(|by| at.checked_add(by).ok()).unwrap_or(Timestamp::MAX)
}
