//! The saga's document: what one search leaves in the store between two messages.

use async_trait::async_trait;
use contracts::{AttemptId, FileId, Job, MessageId, SearchId, StoreError, TimeoutId, Token};
use jiff::Timestamp;
use outbox::{Entry, Settlement};
use saga::State;
use serde::{Deserialize, Serialize};

/// One search as stored. Its size is bounded by the number of files of the search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// The search.
    pub search_id: SearchId,
    /// Counts the writes; the condition of the next one.
    pub version: u64,
    /// Everything else but the outbox.
    pub content: Content,
    /// Effects that are not performed yet.
    pub outbox: Vec<Entry>,
}

/// What a write replaces as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Content {
    /// The state.
    pub state: State,
    /// Messages that changed the state and may come again.
    pub processed: Vec<Processed>,
    /// Tokens of the messages that the search waits for.
    pub expected: Vec<Expected>,
    /// The attempt that wrote this.
    pub attempt: AttemptId,
    /// The fence of that attempt's claim. An attempt with an earlier one has lost its lease, and must not build on
    /// this; 0 when there is no ledger.
    pub fence: u64,
}

impl Content {
    /// The import as a document of this version and content shows it. A job that was stored with an earlier
    /// revision is out of date.
    pub fn job(&self, search_id: SearchId, version: u64) -> Option<Job> {
        Some(Job { revision: version, ..self.state.job(search_id)? })
    }
}

/// A message that changed the state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processed {
    /// The message.
    pub id: MessageId,
    /// Its token. The entry stays until a later claim's answer shows that the token is gone; one without a token
    /// stays with the document.
    pub token: Option<Token>,
}

/// A token that the search gave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expected {
    /// The token.
    pub token: Token,
    /// Whose message will carry it.
    pub by: Awaited,
}

/// Who is to present a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Awaited {
    /// The reply about this file.
    File(FileId),
    /// This timeout.
    Timeout(TimeoutId),
}

/// One conditional write of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persist {
    /// The search.
    pub search_id: SearchId,
    /// The version that was loaded; none when there was no document. The stored one becomes one larger, and
    /// the first is 1.
    pub loaded: Option<u64>,
    /// The new content.
    pub content: Content,
    /// Entries that join the outbox.
    pub add: Vec<Entry>,
    /// Entries that leave it unperformed.
    pub cancel: Vec<MessageId>,
}

/// What became of a [`Persist`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Persisted {
    /// It is stored.
    Stored,
    /// Another write came first; nothing of this one is stored.
    Conflict,
}

/// Reads saga documents.
#[async_trait]
pub trait ReadSaga: Send + Sync {
    /// The document of each search, in order. One whose retention has passed at `now` is absent, even if the
    /// store has not deleted it yet.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a saga document.
    async fn load(&self, searches: &[SearchId], now: Timestamp) -> Result<Vec<Option<Document>>, StoreError>;
}

/// Writes saga documents.
#[async_trait]
pub trait WriteSaga: Send + Sync {
    /// Makes each write if its condition holds, content and outbox together or not at all; one answer for each,
    /// in order.
    ///
    /// # Errors
    /// When the store does not answer: some of the writes may have been made.
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError>;

    /// Settles outbox entries of several searches in one call, each on condition of its claim.
    ///
    /// # Errors
    /// When the store does not answer: the entries stay and are performed again.
    async fn settle(&self, settlements: &[(SearchId, Vec<Settlement>)]) -> Result<(), StoreError>;
}
