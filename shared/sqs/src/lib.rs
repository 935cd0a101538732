//! SQS adapters: the queues.
//!
//! - [`Queues`]: where the queues are;
//! - [`Sqs`]: [`outbox::SendMessages`] for every function, and [`outbox::ReceiveMessages`] for programs that receive
//!   by themselves. A function behind a queue does not need the latter: Lambda receives and deletes for it.
//!
//! A batch call succeeds while entries of it fail: every entry's result is looked at, and only what failed for a
//! reason that may pass is sent again, a few times within the call. What is still not sent then is the outbox's.
//!
//! A queue with a receive limit has that as its redrive policy; the adapter itself moves only what is to be given up
//! at once.

mod attributes;
mod batch;
mod entries;
mod queues;
mod receipt;
mod receive;
mod send;

use std::sync::Arc;
use std::time::Duration;

use aws::{Resource, failed};
use aws_sdk_sqs::Client;
use aws_types::SdkConfig;
use contracts::{Host, StoreError};
use outbox::Queue;

pub use queues::Queues;
pub use receipt::{MalformedReceipt, Receipt};
pub use send::{DelayTooLong, EntryFailure, MAX_DELAY};

/// The client for a configuration, with a limit of its own for each call, repetitions included.
pub fn client(config: &SdkConfig, call_timeout: Duration) -> Client {
    let timeouts = aws::timeouts(call_timeout);
    Client::from_conf(aws_sdk_sqs::config::Builder::from(config).timeout_config(timeouts).build())
}

/// The queues, through one client.
#[derive(Clone)]
pub struct Sqs {
    client: Client,
    queues: Queues,
    host: Arc<dyn Host>,
    wait: Duration,
}

impl Sqs {
    /// How long a receive waits for a message by default: the least for which SQS asks all its servers, so that what
    /// is there is found
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-short-and-long-polling.html>).
    pub const WAIT: Duration = Duration::from_secs(1);

    /// The queues at their addresses.
    pub fn new(client: Client, queues: Queues, host: Arc<dyn Host>) -> Self {
        Self { client, queues, host, wait: Self::WAIT }
    }

    /// As it is, with another time that a receive waits for a message, in whole seconds up to 20. Zero asks some of
    /// the queue's servers alone, and may overlook messages.
    #[must_use]
    pub fn waiting(self, wait: Duration) -> Self {
        Self { wait, ..self }
    }

    /// Asks whether a queue is there.
    ///
    /// # Errors
    /// When it has no address, is not there, or does not answer.
    pub async fn check(&self, queue: Queue) -> Result<(), StoreError> {
        let doing = format!("looking for queue {}", queue.name());
        let request = self.client.get_queue_attributes().queue_url(self.url(queue, &doing)?);
        request.send().await.map_err(|error| failed(doing, &self.resource(queue), &error))?;
        Ok(())
    }

    fn url(&self, queue: Queue, doing: &str) -> Result<&str, StoreError> {
        self.queues.url(queue).ok_or_else(|| {
            let name = queue.name();
            StoreError::unusable(
                doing,
                format!("{} is not set, so queue {name} is nowhere", Queues::setting(queue)),
            )
        })
    }

    fn resource(&self, queue: Queue) -> Resource {
        let name = self.queues.url(queue).unwrap_or_default().to_owned();
        Resource { kind: "queue", name, setting: Queues::setting(queue) }
    }
}
