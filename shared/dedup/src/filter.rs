//! The filter pair: a guard before a handler and a note after it.
//!
//! The guard is cheap, not perfect: two copies handled at the same moment both pass it. So it belongs in front
//! of handlers that may safely run twice, and only spares them the work.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{Host, Message, StoreError};

/// How long a processed message is remembered: 24 hours.
pub const REMEMBER_FOR: SignedDuration = SignedDuration::from_hours(24);

/// What the guard says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Run the handler.
    Continue,
    /// The message was processed before: acknowledge it without running the handler.
    Stop,
}

/// Remembers keys for a while.
#[async_trait]
pub trait RememberProcessed: Send + Sync {
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

/// The filter pair of one handler.
pub struct Filter {
    /// The handler's name: two handlers of one message do not stand in each other's way.
    handler: &'static str,
    store: Arc<dyn RememberProcessed>,
    host: Arc<dyn Host>,
}

impl Filter {
    /// The pair for `handler`.
    pub fn new(handler: &'static str, store: Arc<dyn RememberProcessed>, host: Arc<dyn Host>) -> Self {
        Self { handler, store, host }
    }

    /// To be asked before the handler runs.
    ///
    /// # Errors
    /// When the store does not answer; the message is then to be delivered again.
    pub async fn before(&self, message: &Message) -> Result<Verdict, StoreError> {
        let seen = self.store.is_remembered(&self.key(message), self.host.now()).await?;
        Ok(if seen { Verdict::Stop } else { Verdict::Continue })
    }

    /// Remembers the message. To be called after the handler succeeded, and only then: a handler that fails leaves no
    /// trace.
    ///
    /// # Errors
    /// When the store does not answer. The handler has succeeded all the same.
    pub async fn on_success(&self, message: &Message) -> Result<(), StoreError> {
        let expires_at = self.host.now().checked_add(REMEMBER_FOR).unwrap_or(Timestamp::MAX);
        self.store.remember(&self.key(message), expires_at).await
    }

    fn key(&self, message: &Message) -> String {
        format!("{}:{}", self.handler, message.id)
    }
}
