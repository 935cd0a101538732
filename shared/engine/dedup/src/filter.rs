//! The filter pair: a guard before a handler and a note after it.
//!
//! The guard is cheap, not perfect: two copies handled at the same moment both pass it. So it belongs in front
//! of handlers that may safely run twice, and only spares them the work.
//!
//! It asks two things. Whether the message is remembered, which is known for a while after it was handled. And, of a
//! command that is to be answered, whether its answer is still awaited: the token of the answer leaves the ledger when
//! the answer takes effect, so a command that was answered is recognised at any age.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, StoreError, Token};

use crate::ledger::CheckTokens;

/// How long a processed message is remembered: 14 days, the longest that SQS keeps a message
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>). One that an
/// operator puts back into its queue lives that long once more; it is recognised by its answer's token, where there is a
/// ledger.
pub const REMEMBER_FOR: SignedDuration = SignedDuration::from_hours(14 * 24);

/// What the guard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Run the handler.
    Continue,
    /// Acknowledge it without running the handler; why.
    Stop(&'static str),
}

/// Remembers keys for a while.
#[async_trait]
pub trait ProcessedMessages: Send + Sync {
    /// Whether `key` is remembered at `now`. Deletion by the store may be late, so the expiry counts, not the
    /// presence.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError>;

    /// Remembers `key` until `expires_at`; repeating it changes nothing but the expiry.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError>;
}

/// What a filter asks.
#[derive(Clone)]
pub struct Stores {
    /// Remembers what was handled.
    pub processed: Arc<dyn ProcessedMessages>,
    /// Knows which answers are awaited.
    pub tokens: Arc<dyn CheckTokens>,
}

/// The filter pair of one handler.
pub struct Filter {
    /// The handler's name: two handlers of one message do not stand in each other's way.
    handler: &'static str,
    stores: Stores,
    host: Arc<dyn Host>,
}

impl Filter {
    /// The pair for `handler`.
    pub fn new(handler: &'static str, stores: Stores, host: Arc<dyn Host>) -> Self {
        Self { handler, stores, host }
    }

    /// To be asked before the handler runs, with the token that the answer will carry.
    ///
    /// # Errors
    /// When a store does not answer; the message is then to be delivered again.
    pub async fn before(&self, message: &Message, answer: Option<&Token>) -> Result<Verdict, StoreError> {
        let now = self.host.now();
        if self.stores.processed.is_remembered(&self.key(message), now).await? {
            return Ok(Verdict::Stop("it was handled before"));
        }
        if let Some(token) = answer
            && !self.stores.tokens.is_granted(message.partition, token, now).await?
        {
            return Ok(Verdict::Stop("it was answered before"));
        }
        Ok(Verdict::Continue)
    }

    /// Remembers the message. To be called after the handler succeeded, and only then: a handler that fails leaves no
    /// trace.
    ///
    /// # Errors
    /// When the store does not answer. The handler has succeeded all the same.
    pub async fn on_success(&self, message: &Message) -> Result<(), StoreError> {
        let expires_at = self.host.now().checked_add(REMEMBER_FOR).unwrap_or(Timestamp::MAX);
        self.stores.processed.remember(&self.key(message), expires_at).await
    }

    fn key(&self, message: &Message) -> String {
        format!("{}:{}", self.handler, message.id)
    }
}
