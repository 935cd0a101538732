//! Duplicate filter: a check before a handler runs and a record after it succeeds.
//!
//! The check is cheap but not exact: two redeliveries that are handled at the same time both pass it. It therefore
//! only protects handlers that may safely run twice, and saves them the work.
//!
//! A message is a duplicate in two cases. In the first case, it was recorded as processed and the record has not
//! expired. In the second case, it is a command whose reply is no longer expected. The reply's token leaves the ledger
//! when the reply takes effect, so an answered command is recognised at any age.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, StoreError, Token};

use crate::ledger::CheckTokens;

/// Lifetime of the record of a processed message: 14 days, the maximum retention of SQS
/// (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html>). A message that
/// an operator redrives lives for another 14 days; with a ledger it is recognised by the token of its reply.
pub const REMEMBER_FOR: SignedDuration = SignedDuration::from_hours(14 * 24);

/// Lifetime of the record of a command that was sent again: one day, longer than a queue redelivers it. A dead letter that
/// an operator redrives after that is handled; it resumes or finds the work complete.
const REMEMBER_RESENT_FOR: SignedDuration = SignedDuration::from_hours(24);

/// Part of each key of [`Filter::on_resent`], and of no key of [`Filter::on_success`].
pub const RESENT_RECORD: &str = ":record:";

/// Decision of the check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Run the handler.
    Continue,
    /// Acknowledge the message without running the handler, for this reason.
    Stop(&'static str),
}

/// Set of keys, each with an expiry time.
#[async_trait]
pub trait ProcessedMessages: Send + Sync {
    /// Returns whether the set contains `key` and its expiry is after `now`. Implementations compare the expiry,
    /// because a store may delete expired entries late.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; a retry may succeed.
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError>;

    /// Inserts `key` until `expires_at`. Inserting it again only changes the expiry.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the call may be repeated.
    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError>;
}

/// Stores that a filter reads and writes.
#[derive(Clone)]
pub struct Stores {
    /// Messages that were processed.
    pub processed: Arc<dyn ProcessedMessages>,
    /// Tokens of the expected replies.
    pub tokens: Arc<dyn CheckTokens>,
}

/// Duplicate filter of one handler.
pub struct Filter {
    /// Name of the handler. It is part of the key, so that two handlers of one message are independent.
    handler: &'static str,
    stores: Stores,
    host: Arc<dyn Host>,
}

impl Filter {
    /// Creates the filter of `handler`.
    pub fn new(handler: &'static str, stores: Stores, host: Arc<dyn Host>) -> Self {
        Self { handler, stores, host }
    }

    /// Decides whether the handler runs. `answer` is the token that the reply will carry.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable. The message must then be redelivered.
    pub async fn before(&self, message: &Message, answer: Option<&Token>) -> Result<Verdict, StoreError> {
        let now = self.host.now();
        if self.stores.processed.is_remembered(&self.key(message, answer), now).await? {
            return Ok(Verdict::Stop("it was handled before"));
        }
        if let Some(token) = answer
            && !self.stores.tokens.is_granted(message.partition, token, now).await?
        {
            return Ok(Verdict::Stop("it was answered before"));
        }
        Ok(Verdict::Continue)
    }

    /// Remembers the message with the token of its answer. Call it only after the handler succeeded, so that a failed
    /// attempt is repeated.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The work of the handler remains valid.
    pub async fn on_success(&self, message: &Message, answer: Option<&Token>) -> Result<(), StoreError> {
        self.remember(&self.key(message, answer), REMEMBER_FOR).await
    }

    /// Returns whether [`Self::on_resent`] recorded this queue record of the message. Then only its acknowledgement failed.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The message must then be redelivered.
    pub async fn was_resent(&self, message: &Message, record_id: &str) -> Result<bool, StoreError> {
        // Without ids, the copy could not be distinguished from this record.
        if record_id.is_empty() {
            return Ok(false);
        }
        self.stores.processed.is_remembered(&self.resent_key(message, record_id), self.host.now()).await
    }

    /// Remembers that the message was sent again because its work continues later. The copy is another record of the
    /// queue, so it is not affected. A record without an id is not remembered.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. A redelivery of this record is then handled and sent once more.
    pub async fn on_resent(&self, message: &Message, record_id: &str) -> Result<(), StoreError> {
        if record_id.is_empty() {
            return Ok(());
        }
        self.remember(&self.resent_key(message, record_id), REMEMBER_RESENT_FOR).await
    }

    async fn remember(&self, key: &str, lifetime: SignedDuration) -> Result<(), StoreError> {
        let expires_at = self.host.now().checked_add(lifetime).unwrap_or(Timestamp::MAX);
        self.stores.processed.remember(key, expires_at).await
    }

    fn resent_key(&self, message: &Message, record_id: &str) -> String {
        format!("{}:{}{RESENT_RECORD}{record_id}", self.handler, message.id)
    }

    /// Returns the key of a message. It contains the token of the answer: after a restore to an earlier version, a
    /// partition sends the same command under the same message id and expects an answer with another token.
    fn key(&self, message: &Message, answer: Option<&Token>) -> String {
        match answer {
            Some(token) => format!("{}:{}:{token}", self.handler, message.id),
            None => format!("{}:{}", self.handler, message.id),
        }
    }
}
