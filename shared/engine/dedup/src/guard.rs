//! A handler without state behind a queue: decoded, guarded, answered and noted, each in one place.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::panics::{contain, contain_async};
use messages::queue::MAX_BATCH;
use messages::store::chain;
use messages::{
    Backoff, Body, Consumer, Delivery, Disposition, EncodeError, Message, Outgoing, Panicked, Payload, Queue,
    Reporter, SendError, SendMessages, StoreError, Token, Verdict,
};

use crate::filter::{self, Filter, Stores};

/// A command, and the message that it came with.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked<C> {
    /// The message.
    pub message: Message,
    /// What it says.
    pub command: C,
}

/// What a handler did.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    why: String,
    replies: Vec<Reply>,
    is_again: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Reply {
    index: usize,
    queue: Queue,
    body: Body,
}

impl Done {
    /// It did its work; why, or what came of it, is for the log.
    pub fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), replies: Vec::new(), is_again: false }
    }

    /// It did a part of its work, has stored how far it is, and goes on when the command comes again. That is no
    /// failure: the command is sent once more, as a message that was never received, and this delivery is acknowledged.
    /// After a crash in between there are two of them; both go on where the work is, and both end with it.
    pub fn again(why: impl Into<String>) -> Self {
        Self { is_again: true, ..Self::because(why) }
    }

    /// Replies to the sender of the command, with the token that came with it.
    ///
    /// # Errors
    /// When the reply cannot be encoded.
    pub fn reply<P: Payload>(self, reply: &P) -> Result<Self, HandlerError> {
        let index = self.replies.len();
        self.reply_as(index, reply)
    }

    /// The same under an index of its own: the reply's id is derived from the command's id and this. Handlers that may
    /// both answer one command take different ones; the token admits one of the replies.
    ///
    /// # Errors
    /// When the reply cannot be encoded.
    pub fn reply_as<P: Payload>(mut self, index: usize, reply: &P) -> Result<Self, HandlerError> {
        self.replies.push(Reply { index, queue: P::QUEUE, body: reply.body()? });
        Ok(self)
    }
}

/// Why a command was not handled.
#[derive(Debug, thiserror::Error)]
pub enum HandlerError {
    /// A store did not answer, or never will: the command comes again, until its queue gives it up.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The command is wrong in itself, in words; it goes to the dead-letter queue at once.
    #[error("{0}")]
    GiveUp(String),
}

impl From<EncodeError> for HandlerError {
    fn from(error: EncodeError) -> Self {
        Self::GiveUp(chain(&error))
    }
}

/// Handles commands. It may be called twice with one command, and must then do no harm.
#[async_trait]
pub trait Handler: Send + Sync + 'static {
    /// What it is asked to do.
    type Command: Payload;
    /// Whether a command that only a later release can read waits for that release; otherwise it goes to the dead-letter
    /// queue at once.
    const AWAITS_UPGRADE: bool = true;

    /// Does it. `reporter` takes notes of this command; nothing is to be begun after `deadline`.
    ///
    /// # Errors
    /// When it was not done.
    async fn handle(
        &self,
        asked: &Asked<Self::Command>,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<Done, HandlerError>;

    /// The token for the answer, for commands of earlier releases, which have it in their data.
    fn reply_token(&self, _command: &Self::Command) -> Option<Token> {
        None
    }
}

/// What a guarded handler works on.
#[derive(Clone)]
pub struct Ports {
    /// Takes the replies.
    pub send: Arc<dyn SendMessages>,
    /// Know what was handled. Without them every copy is handled: for handlers that do no more than reply.
    pub filter: Option<Stores>,
    /// Time, and who wants to know; with the handler's name.
    pub reporter: Reporter,
}

/// The handler behind a queue. For each message, in this order: the guard, the handler, its replies, the note. A crash
/// between two of them leads to a repetition, and never to a reply that is not sent.
pub fn guard<H: Handler>(ports: Ports, handler: H) -> Arc<dyn Consumer> {
    let filter = ports
        .filter
        .map(|stores| Filter::new(ports.reporter.function, stores, Arc::clone(&ports.reporter.host)));
    Arc::new(Guarded { send: ports.send, filter, reporter: ports.reporter, handler })
}

struct Guarded<H> {
    send: Arc<dyn SendMessages>,
    filter: Option<Filter>,
    reporter: Reporter,
    handler: H,
}

/// Why a message has to come again.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Handler(#[from] HandlerError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("sending the reply failed")]
    Send(#[from] SendError),
    #[error(transparent)]
    Panicked(#[from] Panicked),
}

impl Failure {
    /// Whether the message itself is at fault, so that it fails the same way each time.
    fn is_of_message(&self) -> bool {
        match self {
            Self::Panicked(_) => true,
            Self::Send(error) => !error.is_retryable(),
            Self::Handler(_) | Self::Store(_) => false,
        }
    }
}

#[async_trait]
impl<H: Handler> Consumer for Guarded<H> {
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

impl<H: Handler> Guarded<H> {
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
        if late {
            let reason = "the function's deadline is near".to_owned();
            return reporter.retry(&message, Backoff::NONE, received, reason);
        }
        let asked = Asked { message, command };
        match self.work(&asked, &delivery.body, reporter, deadline).await {
            Ok(()) => Disposition::Acknowledge,
            Err(Failure::Handler(HandlerError::GiveUp(why))) => reporter.reject(Some(&asked.message), why),
            Err(error) if error.is_of_message() => {
                reporter.faulty(Some(&asked.message), received, chain(&error))
            }
            Err(error) => reporter.retry(&asked.message, Backoff::FAILURE, received, chain(&error)),
        }
    }

    async fn work(
        &self,
        asked: &Asked<H::Command>,
        body: &str,
        reporter: &Reporter,
        deadline: Option<Timestamp>,
    ) -> Result<(), Failure> {
        let token = asked.message.reply_token.clone().or_else(|| self.handler.reply_token(&asked.command));
        if let Some(filter) = &self.filter
            && let filter::Verdict::Stop(why) = filter.before(&asked.message, token.as_ref()).await?
        {
            reporter.note(Some(&asked.message), Verdict::Duplicate, why);
            return Ok(());
        }
        let done = contain_async(async { self.handler.handle(asked, reporter, deadline).await }).await??;
        if done.is_again {
            let Message { id, partition, .. } = asked.message;
            let (queue, body) = (H::Command::QUEUE, body.to_owned());
            let again = Outgoing { id, partition, queue, body, delay: Duration::ZERO };
            self.send.send(&[again]).await.into_iter().collect::<Result<(), _>>()?;
            reporter.note(Some(&asked.message), Verdict::Retried, &done.why);
            return Ok(());
        }
        self.reply(asked, reporter, token, done.replies).await?;
        // Before it is remembered: after a crash in between, a copy is called a duplicate.
        reporter.note(Some(&asked.message), Verdict::Handled, &done.why);
        if let Some(filter) = &self.filter
            && let Err(error) = filter.on_success(&asked.message).await
        {
            // A copy will be handled again, which does no harm.
            let (function, correlation_id) = (reporter.function, asked.message.partition);
            let (message_id, error) = (asked.message.id, error.chain());
            tracing::warn!(function, %correlation_id, %message_id, error, "remembering a message failed");
        }
        Ok(())
    }

    async fn reply(
        &self,
        asked: &Asked<H::Command>,
        reporter: &Reporter,
        token: Option<Token>,
        replies: Vec<Reply>,
    ) -> Result<(), Failure> {
        let outgoing = replies.into_iter().map(|Reply { index, queue, body }| {
            let (id, now) = (asked.message.id.derive(index), reporter.host.now());
            let message = asked.message.caused_message(id, reporter.function, now, body);
            Outgoing::new(&Message { token: token.clone(), ..message }, queue, Duration::ZERO)
        });
        let outgoing = outgoing.collect::<Result<Vec<_>, _>>().map_err(SendError::from)?;
        for batch in outgoing.chunks(MAX_BATCH) {
            self.send.send(batch).await.into_iter().collect::<Result<(), _>>()?;
        }
        Ok(())
    }
}
