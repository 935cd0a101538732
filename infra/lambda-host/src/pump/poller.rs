//! Receives, invokes and deletes, and invokes on schedule.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aws::{Resource, failed};
use aws_sdk_sqs::Client;
use aws_sdk_sqs::types::{DeleteMessageBatchRequestEntry, Message, MessageSystemAttributeName};
use jiff::Timestamp;
use messages::queue::MAX_BATCH;
use messages::{Queue, StoreError};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::answer::{Answer, BatchResult, settle};
use super::event;
use super::invoke::Functions;
use super::source::Source;

/// The wait time of long polling, which also delays the stop of a pump.
const WAIT: Duration = Duration::from_secs(2);
/// The delay after a failure of the queue or of all messages of a batch.
const FAILURE_WAIT: Duration = Duration::from_secs(1);

/// The report of one invocation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The function.
    pub function: &'static str,
    /// The number of messages in the event; `None` for a scheduled invocation.
    pub messages: Option<usize>,
    /// The number of messages that remain in the queue.
    pub kept: usize,
    /// The error of the whole invocation.
    pub fault: Option<String>,
}

/// Receives from queues and invokes the functions behind them.
pub struct Pump {
    /// The name of the system.
    pub system: &'static str,
    /// The client for the queues.
    pub sqs: Client,
    /// The addresses of the queues.
    pub urls: BTreeMap<Queue, String>,
    /// The functions.
    pub functions: Functions,
    /// The functions on the schedule.
    pub scheduled: Vec<&'static str>,
    /// The interval of the schedule.
    pub every: Duration,
    /// The visibility timeout of received messages; `None` selects the timeout of the queue.
    pub visibility: Option<Duration>,
    /// Is called after each invocation with the invocation's report.
    pub report: Box<dyn Fn(Invocation) + Send + Sync>,
}

impl Pump {
    /// Works until `done` resolves, and finishes the messages that were already received. Queues without an address are
    /// skipped.
    pub async fn run_until<T>(self, sources: &[Source], done: impl Future<Output = T>) -> T {
        let pump = Arc::new(self);
        let (stop, stopped) = watch::channel(());
        let mut workers = JoinSet::new();
        for source in sources.iter().filter(|source| pump.urls.contains_key(&source.queue)) {
            for _ in 0..source.concurrency {
                workers.spawn(Arc::clone(&pump).poll(source.clone(), stopped.clone()));
            }
        }
        workers.spawn(Arc::clone(&pump).schedule(stopped));
        let value = done.await;
        drop(stop);
        while workers.join_next().await.is_some() {}
        value
    }

    async fn poll(self: Arc<Self>, source: Source, mut stopped: watch::Receiver<()>) {
        while stopped.has_changed().is_ok() {
            let delivered = self.deliver(&source).await;
            if let Err(error) = &delivered {
                tracing::error!(queue = source.queue.name(), error = error.chain(), "delivering failed");
            }
            if !delivered.unwrap_or(false) {
                wait(&mut stopped, FAILURE_WAIT).await;
            }
        }
    }

    async fn schedule(self: Arc<Self>, mut stopped: watch::Receiver<()>) {
        while stopped.has_changed().is_ok() {
            for function in &self.scheduled {
                let answer = self.functions.invoke(function, &event::scheduled(Timestamp::now())).await;
                let fault = match answer {
                    Answer::Failed(why) => Some(why),
                    Answer::Payload(_) => None,
                };
                (self.report)(Invocation { function, messages: None, kept: 0, fault });
            }
            wait(&mut stopped, self.every).await;
        }
    }

    /// Receives and handles a batch. Returns `true` if the next batch may follow immediately.
    async fn deliver(&self, source: &Source) -> Result<bool, StoreError> {
        let mut has_progress = true;
        for part in event::parts(self.receive_batch(source).await?) {
            let result = self.invoke(source, &part).await;
            let done: Vec<&Message> = result.delete.iter().map(|index| &part[*index]).collect();
            for done in done.chunks(MAX_BATCH) {
                self.delete(&source.queue, done).await?;
            }
            // If all messages failed, they may be visible again immediately. Lambda slows down as well.
            has_progress &= !result.delete.is_empty();
            let (function, messages, kept) = (source.function, Some(part.len()), result.keep.len());
            (self.report)(Invocation { function, messages, kept, fault: result.fault });
        }
        Ok(has_progress)
    }

    async fn invoke(&self, source: &Source, part: &[Message]) -> BatchResult {
        let ids: Vec<&str> =
            part.iter().map(|message| message.message_id.as_deref().unwrap_or_default()).collect();
        let region = self.sqs.config().region().map_or("", |region| region.as_ref());
        let arn = event::arn(self.url(&source.queue), region);
        let answer = self.functions.invoke(source.function, &event::batch(&arn, part)).await;
        settle(&ids, &answer)
    }

    /// Receives messages until the batch is full, or the window since its first message has passed.
    async fn receive_batch(&self, source: &Source) -> Result<Vec<Message>, StoreError> {
        let mut batch = self.receive(&source.queue, source.batch_size, WAIT).await?;
        let ends = Instant::now() + source.window;
        while !batch.is_empty() && batch.len() < source.batch_size && Instant::now() < ends {
            let left = ends.saturating_duration_since(Instant::now()).min(WAIT);
            batch.extend(self.receive(&source.queue, source.batch_size - batch.len(), left).await?);
        }
        Ok(batch)
    }

    async fn receive(&self, queue: &Queue, max: usize, wait: Duration) -> Result<Vec<Message>, StoreError> {
        let doing = format!("receiving from queue {}", queue.name());
        let request = self
            .sqs
            .receive_message()
            .queue_url(self.url(queue))
            .max_number_of_messages(i32::try_from(max.min(MAX_BATCH)).unwrap_or(1))
            .set_visibility_timeout(self.visibility.map(seconds))
            .wait_time_seconds(seconds(wait))
            .message_system_attribute_names(MessageSystemAttributeName::All)
            .message_attribute_names("All");
        let answer = request.send().await.map_err(|error| failed(doing, &self.resource(queue), &error))?;
        Ok(answer.messages.unwrap_or_default())
    }

    async fn delete(&self, queue: &Queue, messages: &[&Message]) -> Result<(), StoreError> {
        let doing = format!("deleting from queue {}", queue.name());
        let entry = |(index, message): (usize, &&Message)| {
            DeleteMessageBatchRequestEntry::builder()
                .id(index.to_string())
                .set_receipt_handle(message.receipt_handle.clone())
                .build()
                .map_err(|error| StoreError::unusable(&*doing, error))
        };
        let entries = messages.iter().enumerate().map(entry).collect::<Result<_, _>>()?;
        let request = self.sqs.delete_message_batch().queue_url(self.url(queue)).set_entries(Some(entries));
        let answer = request.send().await.map_err(|error| failed(&*doing, &self.resource(queue), &error))?;
        for failure in answer.failed() {
            let (queue, code) = (queue.name(), failure.code());
            tracing::warn!(queue, code, "a message was not deleted and will be redelivered");
        }
        Ok(())
    }

    fn url(&self, queue: &Queue) -> &str {
        self.urls.get(queue).map_or("", String::as_str)
    }

    fn resource(&self, queue: &Queue) -> Resource {
        Resource {
            kind: "queue",
            name: self.url(queue).to_owned(),
            setting: aws::queues::Queues::setting(self.system, queue),
        }
    }
}

/// Rounds up to whole seconds, at least one. With a wait of zero seconds, SQS queries only some of its servers and may
/// miss messages.
fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_millis().div_ceil(1_000).max(1)).unwrap_or(i32::MAX)
}

async fn wait(stopped: &mut watch::Receiver<()>, duration: Duration) {
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        _ = stopped.changed() => {}
    }
}
