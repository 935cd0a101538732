//! The search for words in studies, and its index.
//!
//! A [`WordQuery`] defines which studies match a text. The index only finds candidates: the studies of a file that
//! contain all words of a query, wherever they are. Each candidate is then compared with the query itself, so a result
//! does not depend on whether, or by which store, a file is indexed.
//!
//! The index of a file consists of parts, each with the words of a range of its records. A part is immutable: a
//! completed file never changes. A store keeps the words of a part in buckets by their first two characters and reads
//! only the buckets of the words that a query contains.

mod part;
mod query;
mod split;

use async_trait::async_trait;
use messages::StoreError;

use crate::ids::{FileId, SearchId};
use crate::vocabulary::FileRef;

pub use self::part::{DamagedPart, END, PartBuilder, WordBucket, WordPart};
pub use self::query::{BucketRange, TooManyWords, WordQuery};

/// A completed file whose words are not all indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnindexedFile {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file.
    pub file_id: FileId,
    /// The last record that is indexed; 0 if none is.
    pub after: u64,
}

/// Stores the index of words. [`crate::ReadStudies::words`] reads it, and [`crate::WriteStudies::remove`] deletes it.
#[async_trait]
pub trait IndexWords: Send + Sync {
    /// Returns up to `limit` completed files whose words are not all indexed, in the store's order, starting after a
    /// file or at the beginning.
    async fn unindexed(&self, after: Option<FileRef>, limit: usize)
    -> Result<Vec<UnindexedFile>, StoreError>;

    /// Stores the part that follows the last stored one of a file. Returns `false`, and stores nothing, if the file is
    /// not listed as completed, or another worker has stored the part.
    async fn store_words(&self, search: SearchId, file: FileId, part: WordPart) -> Result<bool, StoreError>;
}
