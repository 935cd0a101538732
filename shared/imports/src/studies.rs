//! Studies, and the records that could not be read.

use async_trait::async_trait;
use contracts::{FileId, ProjectId, SearchId, StoreError};
use references::{Quarantine, Reference};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A study's id: derived from search, file and record, so that storing it twice stores it once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StudyId(Uuid);

impl StudyId {
    /// The id of the study from record `record` (from 1) of `file`.
    pub fn of(search: SearchId, file: FileId, record: u64) -> Self {
        let file = Uuid::new_v5(&search.as_uuid(), file.as_uuid().as_bytes());
        Self(Uuid::new_v5(&file, &record.to_be_bytes()))
    }

    /// The UUID itself.
    pub const fn as_uuid(&self) -> Uuid {
        self.0
    }
}

/// One bibliographic record as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Its id.
    pub id: StudyId,
    /// The review.
    pub project_id: ProjectId,
    /// The import that brought it.
    pub search_id: SearchId,
    /// The file it was in.
    pub file_id: FileId,
    /// Its place among the file's records, from 1.
    pub record: u64,
    /// The line it begins at, from 1.
    pub line: u64,
    /// What it says.
    pub reference: Reference,
}

/// One record that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The import.
    pub search_id: SearchId,
    /// The file it is in.
    pub file_id: FileId,
    /// Where in the file, why, and how it begins.
    pub record: Quarantine,
}

/// Stores what was read.
#[async_trait]
pub trait WriteStudies: Send + Sync {
    /// Stores studies and quarantined records, each once, however often it is called with them.
    ///
    /// # Errors
    /// When the store does not answer; some of them may be stored.
    async fn store(&self, studies: &[Study], quarantined: &[Quarantined]) -> Result<(), StoreError>;

    /// Removes everything stored from a file: one that is refused leaves nothing.
    ///
    /// # Errors
    /// When the store does not answer; some of it may still be there.
    async fn discard(&self, search: SearchId, file: FileId) -> Result<(), StoreError>;
}

/// Reads what was stored.
#[async_trait]
pub trait ReadStudies: Send + Sync {
    /// Up to `limit` studies of a file in record order, after record number `after` (0 for the first page).
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a study.
    async fn studies(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Study>, StoreError>;

    /// The quarantined records of a file in record order, at most `limit`.
    ///
    /// # Errors
    /// As [`ReadStudies::studies`].
    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError>;
}
