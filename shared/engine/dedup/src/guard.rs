//! Consumer around a stateless handler: it decodes messages, filters duplicates, sends replies and logs decisions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::host::stop_late;
use messages::panics::{contain, contain_async};
use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{
    Backoff, Body, Consumer, DEADLINE_NEAR, Delivery, Disposition, EncodeError, Message, Outgoing,
    PanicError, Payload, Queue, Reporter, SendError, SendMessages, StoreError, Token, Verdict,
};

use crate::filter::{self, Filter, Stores};

/// A command together with its message.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandMessage<C> {
    /// The message.
    pub message: Message,
    /// The decoded payload.
    pub command: C,
    /// The reason why the command was dead-lettered or failed last, if its queue reports it.
    pub reason: Option<String>,
}

/// Result of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerResult {
    why: String,
    replies: Vec<Reply>,
    completion: Completion,
}

/// The treatment of a command after its handler returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completion {
    /// The command is remembered as handled.
    Remember,
    /// The command is sent again.
    Resend,
    /// The command is acknowledged but not remembered.
    Drop,
}

#[derive(Debug, Clone, PartialEq)]
struct Reply {
    index: usize,
    queue: Queue,
    body: Body,
}

impl HandlerResult {
    /// The command is complete. `why` is the reason or the result for the log.
    pub fn completed(why: impl Into<String>) -> Self {
        Self { why: why.into(), replies: Vec::new(), completion: Completion::Remember }
    }

    /// The handler completed a part of the work, saved a checkpoint, and resumes when it receives the command again.
    /// This does not count as a failure: the command is sent again as a new message with a receive count of zero, and
    /// this delivery is acknowledged. If the acknowledgement fails, the filter recognises the redelivery, so failing
    /// acknowledgements do not multiply the command. After a crash between the two steps, the queue contains the command
    /// twice, both times under its id. Both copies resume from the checkpoint, and both end when the work is complete.
    pub fn continue_later(why: impl Into<String>) -> Self {
        Self { completion: Completion::Resend, ..Self::completed(why) }
    }

    /// The command has no effect, because the stored data does not require it: a restore has undone the change that
    /// sent it. The command is acknowledged like a duplicate and is not remembered.
    pub fn dropped(why: impl Into<String>) -> Self {
        Self { completion: Completion::Drop, ..Self::completed(why) }
    }

    /// Adds a reply to the sender of the command. It carries the command's reply token, which admits one reply: a saga
    /// acknowledges a second one as a duplicate. A command that was not sent with a request has no such token, and the
    /// saga rejects the reply.
    ///
    /// # Errors
    /// Returns the errors of [`Self::indexed_reply`].
    pub fn reply<P: Payload>(self, reply: &P) -> Result<Self, HandlerError> {
        self.reply_to(P::QUEUE, reply)
    }

    /// Adds a reply like [`Self::reply`] to another queue than that of its type, for a handler that serves several sagas
    /// whose events have one form.
    ///
    /// # Errors
    /// Returns the errors of [`Self::indexed_reply`].
    pub fn reply_to<P: Payload>(self, queue: Queue, reply: &P) -> Result<Self, HandlerError> {
        let index = self.replies.len();
        self.indexed_reply(index, queue, reply)
    }

    /// Adds a reply like [`Self::reply`] with an explicit index. The id of the reply is derived from the command's id
    /// and the index. Handlers that may both answer one command use different indexes; the token admits only one reply.
    ///
    /// # Errors
    /// Returns the errors of [`Self::indexed_reply`].
    pub fn reply_as<P: Payload>(self, index: usize, reply: &P) -> Result<Self, HandlerError> {
        self.indexed_reply(index, P::QUEUE, reply)
    }

    /// Adds a reply with an explicit index and queue; see [`Self::reply_as`] and [`Self::reply_to`].
    ///
    /// # Errors
    /// Returns an error if the reply cannot be represented in JSON, or the result does not complete the command, which
    /// would be answered too early. A retry does not help.
    pub fn indexed_reply<P: Payload>(
        mut self,
        index: usize,
        queue: Queue,
        reply: &P,
    ) -> Result<Self, HandlerError> {
        if self.completion != Completion::Remember {
            let why = format!("the handler replies {}, but has not completed the command", reply.kind().name);
            return Err(HandlerError::Permanent(why));
        }
        self.replies.push(Reply { index, queue, body: reply.body()? });
        Ok(self)
    }
}

/// The maximum delay of a retry. With it, 20 deliveries of a command end within 80 hours, before its queue deletes the
/// command: the queues of the templates keep a message for four days. SQS hides a message for at most 12 hours
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html>).
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(4 * 60 * 60);

/// The number of deliveries from which a command is sent again if the invocation has no time for it.
const LATE_DELIVERIES: u32 = 10;

/// Failure of a handler.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// A store failed. The command is redelivered until its queue dead-letters it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The command is invalid, for this reason. It is dead-lettered at once.
    #[error("{0}")]
    Permanent(String),
    /// Another service failed. The command is redelivered after a delay, until its queue dead-letters it.
    #[error("{reason}")]
    Retry {
        /// The reason, for the decision log.
        reason: String,
        /// The least delay, which the service asked for, up to [`MAX_RETRY_AFTER`]. [`Handler::backoff`] applies if it is
        /// longer: an outage must not use up all deliveries although each response asks for a short delay.
        after: Option<Duration>,
    },
}

impl From<EncodeError> for HandlerError {
    fn from(error: EncodeError) -> Self {
        Self::Permanent(chain(&error))
    }
}

/// Handler of commands. It must be idempotent, because it may be called twice with one command.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// Type of the command.
    type Command: Payload;
    /// `true` if a command that only a newer version can read waits for that version. Otherwise it is dead-lettered at
    /// once.
    const AWAITS_UPGRADE: bool = true;

    /// Executes the command. `reporter` logs decisions about it. The handler starts no new step after `deadline`. A call
    /// that has not returned some seconds later is stopped at its next `await`, and the command is redelivered.
    ///
    /// # Errors
    /// Returns an error if the command was not completed. The variant decides whether the command is redelivered or
    /// dead-lettered.
    async fn handle(
        &self,
        asked: &CommandMessage<Self::Command>,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError>;

    /// Returns whether a command is remembered after it was handled, so that its duplicates are dropped. Otherwise
    /// every delivery is handled, except redeliveries of a record that was sent again.
    ///
    /// After a restore of the database, a repeated change sends its command under the same message id. Without a reply
    /// token, the command looks like a duplicate of the earlier one, whose work the restore has undone. Such a command
    /// should be remembered only if its work is expensive and outside the database.
    fn is_remembered(&self, _command: &Self::Command) -> bool {
        true
    }

    /// Returns the delays between the deliveries of a command that failed, unless the error states one. With a longer
    /// backoff, the receive limit of the queue bridges a longer outage of the service that the handler calls. Delays,
    /// including their random part, are at most [`MAX_RETRY_AFTER`]. A reply that could not be sent is retried with
    /// [`Backoff::FAILURE`].
    fn backoff(&self, _command: &Self::Command) -> Backoff {
        Backoff::FAILURE
    }

    /// Returns the reply token of a command of an earlier version, which carries the token in its payload.
    fn reply_token(&self, _command: &Self::Command) -> Option<Token> {
        None
    }
}

/// Ports of a guarded handler.
#[derive(Clone)]
pub struct Ports {
    /// The queue that delivers the commands, to which they are sent again; `None` for the queue of the command's type.
    pub queue: Option<Queue>,
    /// Sends the replies.
    pub send: Arc<dyn SendMessages>,
    /// Stores of the duplicate filter. Without them every redelivery is handled, which suits handlers that only reply.
    pub filter: Option<Stores>,
    /// Clock and decision log, with the handler's name.
    pub reporter: Reporter,
    /// The time after the deadline of an invocation at which a call of the handler is stopped; `None` for no limit.
    pub overtime: Option<Duration>,
}

/// The usual [`Ports::overtime`]. An invocation on Lambda ends five seconds after its deadline, and needs the rest to
/// store its answers.
pub const OVERTIME: Duration = Duration::from_secs(3);

/// Wraps a handler as the consumer of a queue. The steps for each message are, in this order: the duplicate check, the
/// handler, its replies, the record of the processed message. A crash between two steps repeats the message, so a reply
/// is never lost.
pub fn guard<H: Handler>(ports: Ports, handler: H) -> Arc<dyn Consumer> {
    let filter = ports
        .filter
        .map(|stores| Filter::new(ports.reporter.function, stores, Arc::clone(&ports.reporter.host)));
    let queue = ports.queue.unwrap_or(H::Command::QUEUE);
    let Ports { send, reporter, overtime, .. } = ports;
    Arc::new(IdempotentConsumer { queue, send, filter, reporter, overtime, handler })
}

struct IdempotentConsumer<H> {
    queue: Queue,
    send: Arc<dyn SendMessages>,
    filter: Option<Filter>,
    reporter: Reporter,
    overtime: Option<Duration>,
    handler: H,
}

/// Reason why a message is not acknowledged.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("sending the reply failed")]
    Send(#[from] SendError),
    #[error(transparent)]
    Panicked(#[from] PanicError),
}

impl Failure {
    /// Returns whether the message itself causes the failure, so that every attempt fails.
    fn is_of_message(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Send(error) => !error.is_retryable(),
            Self::Handler(_) | Self::Store(_) => false,
        }
    }
}

/// Returns the delay of a retry, at most [`MAX_RETRY_AFTER`] with its random part.
fn delay(Backoff { first, max }: Backoff, received: u32, random: f64) -> Duration {
    let bounded = Backoff { first, max: max.min(MAX_RETRY_AFTER) };
    bounded.after(received, random).min(MAX_RETRY_AFTER)
}

#[async_trait]
impl<H: Handler> Consumer for IdempotentConsumer<H> {
    async fn consume(&self, batch: &[Delivery], deadline: Option<Timestamp>) -> Vec<Disposition> {
        let mut answers = Vec::with_capacity(batch.len());
        for delivery in batch {
            let reporter = self.reporter.started_now().with_receive_count(delivery.receive_count);
            let late = reporter.host.is_past(deadline);
            answers.push(self.consume_one(delivery, &reporter, deadline, late).await);
        }
        answers
    }
}

impl<H: Handler> IdempotentConsumer<H> {
    async fn consume_one(
        &self,
        delivery: &Delivery,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
        late: bool,
    ) -> Disposition {
        let read = |message: &Message| {
            let command = message.read::<H::Command>();
            command.map_err(|error| if H::AWAITS_UPGRADE { error } else { error.for_good() })
        };
        let received = delivery.receive_count;
        let (message, command) = match contain(|| reporter.read(delivery, read)) {
            Ok(Ok(read)) => read,
            Ok(Err(refused)) => return refused,
            Err(panicked) => {
                let message = Message::decode(&delivery.body).ok();
                return reporter.faulty(message.as_ref(), received, panicked.to_string());
            }
        };
        let asked = CommandMessage { message, command, reason: delivery.reason.clone() };
        if late {
            return self.postpone(&asked, delivery, reporter).await;
        }
        let work = self.work(&asked, delivery, reporter, deadline);
        // A drop between two steps is like a crash there.
        let done = stop_late(&*reporter.host, deadline, self.overtime, work).await.unwrap_or_else(|| {
            let reason = "the handler did not return in time".to_owned();
            Err(HandlerError::Retry { reason, after: None }.into())
        });
        match done {
            Ok(()) => Disposition::Acknowledge,
            Err(Failure::Handler(HandlerError::Permanent(why))) => reporter.reject(Some(&asked.message), why),
            Err(Failure::Handler(HandlerError::Retry { reason, after: Some(after) })) => {
                let backoff = self.handler.backoff(&asked.command);
                let backoff = delay(backoff, received, reporter.host.unit_random());
                let after = after.clamp(backoff, MAX_RETRY_AFTER);
                reporter.retry_after(&asked.message, after, received, reason)
            }
            Err(error) if error.is_of_message() => {
                reporter.faulty(Some(&asked.message), received, chain(&error))
            }
            Err(error) => {
                // The backoff of the handler is for its own service. A reply or a filter that failed is retried soon.
                let backoff = match &error {
                    Failure::Handler(_) => self.handler.backoff(&asked.command),
                    _ => Backoff::FAILURE,
                };
                let after = delay(backoff, received, reporter.host.unit_random());
                reporter.retry_after(&asked.message, after, received, chain(&error))
            }
        }
    }

    /// Returns a command to its queue for which the invocation has no time left. Each redelivery counts towards the
    /// receive limit of the queue, although the command was never tried. A command that waits for long is therefore
    /// sent again.
    async fn postpone(
        &self,
        asked: &CommandMessage<H::Command>,
        delivery: &Delivery,
        reporter: &Reporter,
    ) -> Disposition {
        let received = delivery.receive_count;
        if received >= LATE_DELIVERIES && self.resend_once(asked, delivery).await.is_ok() {
            reporter.note(Some(&asked.message), Verdict::Retried, DEADLINE_NEAR);
            return Disposition::Acknowledge;
        }
        reporter.retry_late(&asked.message, received)
    }

    /// Sends the command again, unless an earlier delivery of this record has done so.
    async fn resend_once(
        &self,
        asked: &CommandMessage<H::Command>,
        delivery: &Delivery,
    ) -> Result<(), Failure> {
        if self.was_resent(asked, delivery).await? { Ok(()) } else { self.resend(asked, delivery).await }
    }

    /// Returns `true` if an earlier delivery of this record has sent the command again.
    async fn was_resent(
        &self,
        asked: &CommandMessage<H::Command>,
        delivery: &Delivery,
    ) -> Result<bool, StoreError> {
        match &self.filter {
            Some(filter) if delivery.receive_count > 1 => {
                filter.was_resent(&asked.message, &delivery.record_id).await
            }
            _ => Ok(false),
        }
    }

    async fn work(
        &self,
        asked: &CommandMessage<H::Command>,
        delivery: &Delivery,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<(), Failure> {
        if self.was_resent(asked, delivery).await? {
            reporter.note(Some(&asked.message), Verdict::Duplicate, "it was sent again before");
            return Ok(());
        }
        let token = asked.message.reply_token.clone().or_else(|| self.handler.reply_token(&asked.command));
        let filter = self.filter.as_ref().filter(|_| self.handler.is_remembered(&asked.command));
        if let Some(filter) = filter
            && let filter::Verdict::Stop(why) = filter.before(&asked.message, token.as_ref()).await?
        {
            reporter.note(Some(&asked.message), Verdict::Duplicate, why);
            return Ok(());
        }
        let done = contain_async(async { self.handler.handle(asked, reporter, deadline).await }).await??;
        if done.completion == Completion::Drop {
            reporter.note(Some(&asked.message), Verdict::Duplicate, &done.why);
            return Ok(());
        }
        if done.completion == Completion::Resend {
            self.resend(asked, delivery).await?;
            reporter.note(Some(&asked.message), Verdict::Retried, &done.why);
            return Ok(());
        }
        self.reply(asked, reporter, token.as_ref(), done.replies).await?;
        // Log before recording the message as processed. In the other order a crash in between would leave only the log
        // of a duplicate.
        reporter.note(Some(&asked.message), Verdict::Handled, &done.why);
        if let Some(filter) = filter
            && let Err(error) = filter.on_success(&asked.message, token.as_ref()).await
        {
            // A redelivery will be handled again, which is safe because handlers are idempotent.
            self.warn_not_remembered(&asked.message, &error);
        }
        Ok(())
    }

    /// Sends the command again, and remembers that this record of it is done.
    async fn resend(&self, asked: &CommandMessage<H::Command>, delivery: &Delivery) -> Result<(), Failure> {
        let Message { id, partition, .. } = asked.message;
        let (queue, body) = (self.queue.clone(), delivery.body.clone());
        let again = Outgoing { id, partition, queue, body, delay: Duration::ZERO };
        self.send.send(&[again]).await.into_iter().collect::<Result<(), _>>()?;
        if let Some(filter) = &self.filter
            && let Err(error) = filter.on_resent(&asked.message, &delivery.record_id).await
        {
            // The command is sent once more only if the acknowledgement fails too.
            self.warn_not_remembered(&asked.message, &error);
        }
        Ok(())
    }

    fn warn_not_remembered(&self, message: &Message, error: &StoreError) {
        let (function, correlation_id) = (self.reporter.function, message.partition);
        let (message_id, error) = (message.id, error.chain());
        tracing::warn!(function, %correlation_id, %message_id, error, "remembering a message failed");
    }

    async fn reply(
        &self,
        asked: &CommandMessage<H::Command>,
        reporter: &Reporter,
        token: Option<&Token>,
        replies: Vec<Reply>,
    ) -> Result<(), Failure> {
        let outgoing = replies.into_iter().map(|Reply { index, queue, body }| {
            let (id, now) = (asked.message.id.derive(index), reporter.host.now());
            let message = asked.message.caused_message(id, reporter.function, now, body);
            let message =
                Message { token: token.cloned(), ..message }.in_partition(asked.message.reply_partition());
            Outgoing::new(&message, queue, Duration::ZERO)
        });
        let outgoing = outgoing.collect::<Result<Vec<_>, _>>().map_err(SendError::from)?;
        for batch in outgoing.chunks(MAX_BATCH) {
            self.send.send(batch).await.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use messages::{Host, PartitionKey, Queue};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const CARDS: Queue = Queue::named("cards");

    messages::messages! {
        enum Command of "shop" to CARDS { Charge { after_s: u64 } = 1 }
    }

    struct StillHost;

    #[async_trait]
    impl Host for StillHost {
        fn now(&self) -> Timestamp {
            Timestamp::UNIX_EPOCH
        }
        fn fresh_id(&self) -> Uuid {
            Uuid::nil()
        }
        fn random_id(&self) -> Uuid {
            Uuid::nil()
        }
        fn unit_random(&self) -> f64 {
            0.0
        }
        async fn sleep(&self, _: Duration) {}
    }

    #[async_trait]
    impl SendMessages for StillHost {
        async fn send(&self, _: &[Outgoing]) -> Vec<Result<(), SendError>> {
            Vec::new()
        }
    }

    /// Fails with a delay, or without one.
    struct Charging(Option<Duration>);

    #[async_trait]
    impl Handler for Charging {
        type Command = Command;

        async fn handle(
            &self,
            _: &CommandMessage<Command>,
            _: &Reporter,
            _: Option<Timestamp>,
        ) -> Result<HandlerResult, HandlerError> {
            Err(HandlerError::Retry { reason: "too many requests".to_owned(), after: self.0 })
        }
    }

    /// Fails without a delay, and waits for ten minutes each time.
    struct Patient;

    #[async_trait]
    impl Handler for Patient {
        type Command = Command;

        async fn handle(
            &self,
            _: &CommandMessage<Command>,
            _: &Reporter,
            _: Option<Timestamp>,
        ) -> Result<HandlerResult, HandlerError> {
            Err(StoreError::unavailable("charging", "no connection").into())
        }

        fn backoff(&self, Command::Charge { after_s }: &Command) -> Backoff {
            let delay = Duration::from_secs(*after_s);
            Backoff { first: delay, max: delay }
        }
    }

    /// Replies to each command.
    struct Replying;

    #[async_trait]
    impl Handler for Replying {
        type Command = Command;

        async fn handle(
            &self,
            asked: &CommandMessage<Command>,
            _: &Reporter,
            _: Option<Timestamp>,
        ) -> Result<HandlerResult, HandlerError> {
            HandlerResult::completed("charged").reply(&asked.command)
        }

        fn backoff(&self, _: &Command) -> Backoff {
            Backoff { first: MAX_RETRY_AFTER, max: MAX_RETRY_AFTER }
        }
    }

    /// Returns from the first command, and not from the second one.
    struct Hanging;

    #[async_trait]
    impl Handler for Hanging {
        type Command = Command;

        async fn handle(
            &self,
            asked: &CommandMessage<Command>,
            _: &Reporter,
            _: Option<Timestamp>,
        ) -> Result<HandlerResult, HandlerError> {
            match asked.command {
                Command::Charge { after_s: 0 } => Ok(HandlerResult::completed("charged")),
                Command::Charge { .. } => std::future::pending().await,
            }
        }
    }

    /// Keeps what is sent.
    #[derive(Default)]
    struct Outbox(std::sync::Mutex<Vec<Outgoing>>);

    #[async_trait]
    impl SendMessages for Outbox {
        async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
            self.0.lock().unwrap().extend(messages.iter().cloned());
            messages.iter().map(|_| Ok(())).collect()
        }
    }

    /// Sends nothing.
    struct ThrottledSender;

    #[async_trait]
    impl SendMessages for ThrottledSender {
        async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
            let throttled =
                || SendError::Store(StoreError::unavailable("sending to queue cards", "too many calls"));
            messages.iter().map(|_| Err(throttled())).collect()
        }
    }

    /// Completes a part of the work each time.
    struct Continuing;

    #[async_trait]
    impl Handler for Continuing {
        type Command = Command;

        async fn handle(
            &self,
            _: &CommandMessage<Command>,
            _: &Reporter,
            _: Option<Timestamp>,
        ) -> Result<HandlerResult, HandlerError> {
            Ok(HandlerResult::continue_later("the deadline is near"))
        }

        fn is_remembered(&self, _: &Command) -> bool {
            false
        }
    }

    /// Remembers every message, and expects every reply.
    #[derive(Default)]
    struct Memory(std::sync::Mutex<std::collections::BTreeMap<String, Timestamp>>);

    #[async_trait]
    impl filter::ProcessedMessages for Memory {
        async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
            Ok(self.0.lock().unwrap().get(key).is_some_and(|until| *until > now))
        }
        async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
            self.0.lock().unwrap().insert(key.to_owned(), expires_at);
            Ok(())
        }
    }

    #[async_trait]
    impl crate::CheckTokens for Memory {
        async fn is_granted(&self, _: PartitionKey, _: &Token, _: Timestamp) -> Result<bool, StoreError> {
            Ok(true)
        }
    }

    #[test]
    fn redelivery_of_continued_command_sends_no_further_copy() {
        let (sent, memory) = (Arc::new(Outbox::default()), Arc::new(Memory::default()));
        let filter = Some(Stores { processed: memory.clone(), tokens: memory });
        let consumer = guard(ports(sent.clone(), filter), Continuing);
        let body = command(0).encode().unwrap();
        let receive = |record_id: &str, receive_count| {
            let delivery =
                Delivery { record_id: record_id.into(), body: body.clone(), receive_count, reason: None };
            let answers = consumer.consume(&[delivery], None).now_or_never().unwrap();
            assert_eq!(answers, [Disposition::Acknowledge]);
            sent.0.lock().unwrap().len()
        };
        assert_eq!(receive("first", 1), 1);
        assert_eq!(receive("first", 2), 1, "its acknowledgement failed");
        assert_eq!(receive("copy", 1), 2, "the copy continues");
        assert_eq!(receive("copy", 2), 2);
        assert_eq!(receive("", 2), 3, "a record without an id");
        assert_eq!(receive("", 2), 4, "it may be the copy");
        let copy = sent.0.lock().unwrap()[1].clone();
        assert_eq!((copy.id, copy.body), (command(0).id, body.clone()));
    }

    #[test]
    fn continued_command_returns_to_its_own_queue() {
        for (queue, expected) in [(Some(Queue::named("bank")), "bank"), (None, CARDS.name())] {
            let sent = Arc::new(Outbox::default());
            let ports = Ports { queue, ..ports(sent.clone(), None) };
            let delivery = Delivery {
                record_id: "1".into(),
                body: command(0).encode().unwrap(),
                receive_count: 1,
                reason: None,
            };
            guard(ports, Continuing).consume(&[delivery], None).now_or_never().unwrap();
            assert_eq!(sent.0.lock().unwrap()[0].queue.name(), expected);
        }
    }

    #[test]
    fn command_without_time_left_is_sent_again_before_its_last_delivery() {
        let (sent, memory) = (Arc::new(Outbox::default()), Arc::new(Memory::default()));
        let filter = Some(Stores { processed: memory.clone(), tokens: memory });
        let consumer = guard(ports(sent.clone(), filter), Replying);
        let body = command(0).encode().unwrap();
        let receive = |receive_count| {
            let delivery =
                Delivery { record_id: "1".into(), body: body.clone(), receive_count, reason: None };
            let passed = Timestamp::UNIX_EPOCH - jiff::SignedDuration::from_secs(1);
            let answers = consumer.consume(&[delivery], Some(passed)).now_or_never().unwrap();
            (answers[0] == Disposition::Acknowledge, sent.0.lock().unwrap().len())
        };
        assert_eq!(receive(LATE_DELIVERIES - 1), (false, 0));
        assert_eq!(receive(LATE_DELIVERIES), (true, 1));
        assert_eq!(receive(LATE_DELIVERIES + 1), (true, 1), "its acknowledgement failed");
    }

    #[test]
    fn reply_between_sagas_goes_to_requesting_partition() {
        let sent = Arc::new(Outbox::default());
        let consumer = guard(ports(sent.clone(), None), Replying);
        let sender = PartitionKey::from_uuid(Uuid::from_u128(2));
        let reply_to = messages::ReplyAddress { queue: CARDS, partition: sender };
        let reply_token = Some(Token::minted_at_entry(sender, Uuid::from_u128(3)));
        for (reply_to, reply_token, partition) in
            [(Some(reply_to), reply_token, sender), (None, None, command(0).partition)]
        {
            let message = Message { reply_to, reply_token: reply_token.clone(), ..command(0) };
            let body = message.encode().unwrap();
            let delivery = Delivery { record_id: "1".into(), body, receive_count: 1, reason: None };
            consumer.consume(&[delivery], None).now_or_never().unwrap();
            let reply = Message::decode(&sent.0.lock().unwrap().pop().unwrap().body).unwrap();
            assert_eq!((reply.partition, reply.token), (partition, reply_token));
        }
    }

    fn ports(send: Arc<dyn SendMessages>, filter: Option<Stores>) -> Ports {
        Ports { queue: None, send, filter, reporter: reporter(), overtime: Some(OVERTIME) }
    }

    fn reporter() -> Reporter {
        let (host, observer) = (Arc::new(StillHost), Arc::new(()));
        Reporter { function: "charge", host, observer, began_at: None, attempt: None, state: None }
    }

    fn command(after_s: u64) -> Message {
        let body = Body {
            system: "shop".into(),
            name: "Charge".into(),
            version: 1,
            data: json!({ "after_s": after_s }).into(),
        };
        let id = Uuid::from_u128(1);
        let (partition, id) = (PartitionKey::from_uuid(id), messages::MessageId::from_uuid(id));
        Message::new(id, "test", partition, Timestamp::UNIX_EPOCH, body)
    }

    fn answer(handler: impl Handler<Command = Command>, after_s: u64) -> Disposition {
        let send = Arc::new(StillHost);
        let consumer = guard(ports(send, None), handler);
        let body = command(after_s).encode().unwrap();
        let delivery = Delivery { record_id: "1".into(), body, receive_count: 1, reason: None };
        consumer.consume(&[delivery], None).now_or_never().unwrap().remove(0)
    }

    fn delay(after: Option<Duration>) -> u64 {
        match answer(Charging(after), 0) {
            Disposition::Retry { after, reason } => {
                assert_eq!(reason, "too many requests");
                after.as_secs()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn retry_waits_for_requested_delay() {
        let after = |seconds| delay(Some(Duration::from_secs(seconds)));
        assert_eq!(after(90), 90);
        assert_eq!(after(0), Backoff::FAILURE.first.as_secs(), "all deliveries would fail within seconds");
        assert_eq!(after(u64::MAX), MAX_RETRY_AFTER.as_secs(), "longer than a queue can hide a message");
        assert_eq!(
            delay(None),
            Backoff::FAILURE.first.as_secs(),
            "without a delay, the backoff of the handler"
        );
    }

    /// The clock of these tests has passed every delay at once.
    #[test]
    fn handler_that_hangs_keeps_answers_of_others() {
        let consumer = guard(ports(Arc::new(StillHost), None), Hanging);
        let deliveries = [0, 1, 0].map(|after_s| {
            let body = command(after_s).encode().unwrap();
            Delivery { record_id: after_s.to_string(), body, receive_count: 1, reason: None }
        });
        let deadline = Some(Timestamp::from_second(25).unwrap());
        let answers = consumer.consume(&deliveries, deadline).now_or_never().unwrap();
        let [first, Disposition::Retry { reason, .. }, last] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!(reason, "the handler did not return in time");
        assert_eq!([first, last], [&Disposition::Acknowledge; 2]);
    }

    #[test]
    fn unsent_reply_is_retried_without_backoff_of_handler() {
        let consumer = guard(ports(Arc::new(ThrottledSender), None), Replying);
        let body = command(0).encode().unwrap();
        let delivery = Delivery { record_id: "1".into(), body, receive_count: 1, reason: None };
        let answer = consumer.consume(&[delivery], None).now_or_never().unwrap().remove(0);
        let Disposition::Retry { after, .. } = &answer else { panic!("{answer:?}") };
        assert_eq!(*after, Backoff::FAILURE.first);
    }

    #[test]
    fn delay_with_random_part_is_bounded() {
        let longest = Backoff { first: Duration::MAX, max: Duration::MAX };
        for random in [0.0, 0.7, 1.0] {
            assert_eq!(super::delay(longest, 20, random), MAX_RETRY_AFTER);
        }
        assert!(
            MAX_RETRY_AFTER * 20 < messages::queue::RETENTION,
            "20 deliveries end before a queue deletes the command"
        );
    }

    #[test]
    fn failed_command_waits_for_backoff_of_handler() {
        for (asked, expected) in [(600, 600), (u64::MAX, MAX_RETRY_AFTER.as_secs())] {
            let answer = answer(Patient, asked);
            let Disposition::Retry { after, reason } = &answer else { panic!("{answer:?}") };
            assert_eq!((after.as_secs(), &**reason), (expected, "charging failed: no connection"));
        }
    }
}
