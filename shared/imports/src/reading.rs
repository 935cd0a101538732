//! How far the reading of a file has got, so that the next attempt goes on from there.

use async_trait::async_trait;
use messages::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::duplicates::Share;
use crate::ids::{FileId, SearchId};
use crate::job::Counts;

/// What is known of the attempts at reading a file.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Attempts that were begun, and of which nobody has said how they ended: those that crashed, and any under way.
    #[serde(default)]
    pub begun: u32,
    /// Where the next attempt goes on; none for the file's beginning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A place in a file. Everything before it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// A [`references::Checkpoint`], as it was written: perhaps by another release, whose reader counts otherwise.
    Within(Value),
    /// Its end. The answer may be on its way, so it is never read again, and stays what it was.
    End {
        /// What was found in it.
        counts: Counts,
        /// What is left of the marking of duplicates.
        unmarked: Vec<Share>,
    },
}

/// Keeps track of the attempts at reading files. Discarding a file forgets them.
#[async_trait]
pub trait TrackReading: Send + Sync {
    /// Notes that an attempt begins; returns what was known before.
    ///
    /// # Errors
    /// When the store does not answer, or holds something else.
    async fn begin(&self, search: SearchId, file: FileId) -> Result<Reading, StoreError>;

    /// Remembers a place of a file that was begun, in place of the one before. A place within does not replace the end:
    /// another attempt has read on meanwhile.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn reach(&self, search: SearchId, file: FileId, place: &Place) -> Result<(), StoreError>;

    /// Notes that an attempt ended by itself, whatever came of it: none counts as crashed any more.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn pause(&self, search: SearchId, file: FileId) -> Result<(), StoreError>;
}
