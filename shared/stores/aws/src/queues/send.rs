//! Sending.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::failed;
use async_trait::async_trait;
use aws_config::timeout::TimeoutConfig;
use aws_sdk_sqs::config::Builder;
use aws_sdk_sqs::types::SendMessageBatchRequestEntry;
use futures::future::join_all;
use jiff::Timestamp;
use messages::{Outgoing, Queue, SendError, SendMessages, StoreError};

use crate::queues::attributes::Attributes;
use crate::queues::batch::pack;
use crate::queues::entries::{Outcome, outcome};
use crate::queues::{Sqs, later};

/// The maximum delay of a message in SQS
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-delay-queues.html>).
pub const MAX_DELAY: Duration = Duration::from_secs(900);

/// The maximum number of times that one call sends entries. The client's retries of requests that fail as a whole are
/// not counted. All rounds together end within the time limit of one call, on which the outbox relies.
const ROUNDS: u32 = 3;
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// A message with a longer delay than SQS supports; the outbox handles such delays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a delay of {0:?} is more than the {MAX_DELAY:?} that SQS can wait")]
pub struct DelayTooLong(pub Duration);

/// The error of SQS for an entry that it refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the queue refused the message: {0}")]
pub struct EntryFailure(pub String);

/// A message of a batch, and its index in the call.
struct BatchEntry<'a> {
    place: usize,
    message: &'a Outgoing,
    attributes: Attributes,
}

impl BatchEntry<'_> {
    fn bytes(&self) -> usize {
        self.message.body.len() + self.attributes.bytes()
    }

    /// The place is the id: unique in the batch, and short. The group makes a queue fair: one partition with many
    /// messages does not delay the messages of other partitions
    /// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html>).
    fn entry(&self) -> Result<SendMessageBatchRequestEntry, StoreError> {
        SendMessageBatchRequestEntry::builder()
            .id(self.place.to_string())
            .message_body(&self.message.body)
            .message_group_id(self.message.partition.to_string())
            .delay_seconds(whole_seconds(self.message.delay))
            .set_message_attributes(self.attributes.clone().values())
            .build()
            .map_err(|error| StoreError::unusable(self.doing(), error))
    }

    fn doing(&self) -> String {
        doing(self.message)
    }
}

fn doing(message: &Outgoing) -> String {
    format!("sending message {} to {}", message.id, message.queue)
}

/// Returns a delay in seconds, rounded up so that no message comes early.
pub(crate) fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds).unwrap_or(i32::MAX)
}

type Results = Vec<(usize, Result<(), SendError>)>;

/// The time limit of all rounds of a call together.
#[derive(Debug, Clone, Copy)]
struct TimeLimit {
    longest: Duration,
    ends_at: Timestamp,
}

impl TimeLimit {
    fn new(longest: Duration, now: Timestamp) -> Self {
        Self { longest, ends_at: later(now, longest) }
    }

    /// Returns the time that is left for another round after a pause; `None` if no time is left. Even if the clock was
    /// set back, a round has no more time than the whole call.
    fn left_after(self, pause: Duration, now: Timestamp) -> Option<Duration> {
        let left = Duration::try_from(self.ends_at.duration_since(now)).ok()?.min(self.longest);
        left.checked_sub(pause).filter(|left| !left.is_zero())
    }
}

#[async_trait]
impl SendMessages for Sqs {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let mut results = Results::new();
        let mut going: BTreeMap<&Queue, Vec<BatchEntry<'_>>> = BTreeMap::new();
        for (place, message) in messages.iter().enumerate() {
            match self.sendable(message) {
                Ok(()) => {
                    let sending = BatchEntry { place, message, attributes: Attributes::of(&message.body) };
                    going.entry(&message.queue).or_default().push(sending);
                }
                Err(error) => results.push((place, Err(error))),
            }
        }
        let batches = going.into_iter().flat_map(|(queue, going)| {
            pack(going, BatchEntry::bytes).into_iter().map(move |batch| (queue, batch))
        });
        let limit = TimeLimit::new(self.time_limit(), self.host.now());
        let sent = join_all(batches.map(|(queue, batch)| self.send_batch(queue, batch, limit))).await;
        results.extend(sent.into_iter().flatten());
        results.sort_unstable_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

impl Sqs {
    fn sendable(&self, message: &Outgoing) -> Result<(), SendError> {
        if self.urls.url(&message.queue).is_none() {
            return Err(SendError::UnknownQueue(message.queue.clone()));
        }
        if message.delay > MAX_DELAY {
            return Err(StoreError::unusable(doing(message), DelayTooLong(message.delay)).into());
        }
        Ok(())
    }

    /// Returns the time limit of a call of the client.
    fn time_limit(&self) -> Duration {
        let timeouts = self.client.config().timeout_config();
        timeouts.and_then(TimeoutConfig::operation_timeout).unwrap_or(crate::OPERATION_TIMEOUT)
    }

    /// Sends one batch until every entry is in the queue or will not be, or the rounds or the time limit are over.
    async fn send_batch(&self, queue: &Queue, mut open: Vec<BatchEntry<'_>>, limit: TimeLimit) -> Results {
        let mut results = Results::new();
        let mut left = limit.longest;
        for round in 1..=ROUNDS {
            let outcomes = self.send_round(queue, &open, left).await;
            let pause = self.pause_after(round);
            let next = limit.left_after(pause, self.host.now()).filter(|_| round < ROUNDS);
            let mut again = Vec::new();
            for (sending, outcome) in open.into_iter().zip(outcomes) {
                match outcome {
                    Ok(Outcome::Failed(_)) if next.is_some() => again.push(sending),
                    outcome => results.push((sending.place, result(&sending, outcome))),
                }
            }
            let Some(next) = next.filter(|_| !again.is_empty()) else { break };
            self.host.sleep(pause).await;
            (open, left) = (again, next);
        }
        results
    }

    fn pause_after(&self, round: u32) -> Duration {
        let longest = FIRST_BACKOFF * 2_u32.saturating_pow(round - 1);
        longest.mul_f64(0.5 + self.host.unit_random() / 2.0)
    }

    /// One outcome for each entry, in order. The client has already repeated a call that failed as a whole.
    async fn send_round(
        &self,
        queue: &Queue,
        open: &[BatchEntry<'_>],
        left: Duration,
    ) -> Vec<Result<Outcome, StoreError>> {
        let entries: Result<Vec<_>, _> = open.iter().map(BatchEntry::entry).collect();
        let entries = match entries {
            Ok(entries) => entries,
            Err(error) => return open.iter().map(|sending| Err(copy(sending, &error))).collect(),
        };
        let request = self.client.send_message_batch().set_queue_url(self.urls.url(queue).map(str::to_owned));
        // Only this limit differs: with another limit for connecting, the client would open other connections.
        let limit = TimeoutConfig::builder().operation_timeout(left).build();
        let request = request
            .set_entries(Some(entries))
            .customize()
            .config_override(Builder::new().timeout_config(limit));
        match request.send().await {
            Ok(answer) => {
                let of = |sending: &BatchEntry<'_>| {
                    outcome(&sending.place.to_string(), answer.successful(), answer.failed())
                };
                open.iter().map(|sending| Ok(of(sending))).collect()
            }
            Err(error) => {
                let resource = self.resource(queue);
                open.iter().map(|sending| Err(failed(sending.doing(), &resource, &error))).collect()
            }
        }
    }
}

fn copy(sending: &BatchEntry<'_>, error: &StoreError) -> StoreError {
    StoreError::unusable(sending.doing(), error.chain())
}

fn result(sending: &BatchEntry<'_>, outcome: Result<Outcome, StoreError>) -> Result<(), SendError> {
    match outcome? {
        Outcome::Sent => Ok(()),
        Outcome::Failed(why) => Err(StoreError::unavailable(sending.doing(), EntryFailure(why)).into()),
        Outcome::Refused(why) => Err(StoreError::unusable(sending.doing(), EntryFailure(why)).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_is_the_message_group() {
        let partition = messages::PartitionKey::from_uuid(uuid::Uuid::from_u128(7));
        let message = Outgoing {
            id: messages::MessageId::from_uuid(uuid::Uuid::nil()),
            partition,
            queue: Queue::named("q"),
            body: "{}".to_owned(),
            delay: Duration::ZERO,
        };
        let sending = BatchEntry { place: 0, message: &message, attributes: Attributes::of(&message.body) };
        let entry = sending.entry().unwrap();
        assert_eq!(entry.message_group_id(), Some(partition.to_string().as_str()));
    }

    #[test]
    fn rounds_share_the_time_of_one_call() {
        let second = |seconds| Timestamp::from_second(seconds).unwrap();
        let (longest, pause) = (Duration::from_secs(15), Duration::from_millis(500));
        let limit = TimeLimit::new(longest, second(100));
        assert_eq!(limit.left_after(pause, second(104)), Some(Duration::from_millis(10_500)));
        assert_eq!(limit.left_after(Duration::from_secs(1), second(114)), None);
        assert_eq!(limit.left_after(pause, second(115)), None);
        assert_eq!(limit.left_after(pause, second(200)), None);
        assert_eq!(limit.left_after(Duration::ZERO, second(0)), Some(longest), "the clock was set back");
    }

    #[test]
    fn delay_is_rounded_up_to_seconds() {
        assert_eq!(whole_seconds(Duration::from_millis(1_001)), 2);
        assert_eq!(whole_seconds(Duration::from_secs(900)), 900);
        assert_eq!(whole_seconds(Duration::ZERO), 0);
    }
}
