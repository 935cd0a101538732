//! Studies, unreadable records, and the ports that store them.

use std::any::Any;
use std::ops::Range;

use ::messages::StoreError;
use async_trait::async_trait;
use references::{Quarantine, Record, Reference};
use serde::{Deserialize, Serialize};

use crate::duplicates::{Candidate, Duplicate, Identity, Revision, StudyKeys, Tier};
use crate::ids::{FileId, ProjectId, SearchId};
use crate::parse_attempts::{FileFence, ReadingStatus};
use crate::vocabulary::StudyRef;
use crate::words::{BucketRange, WordPart};

pub use crate::vocabulary::{FileRef, ParsedFile, StudyId};

/// A stored bibliographic record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Derived from search, file and record; see [`StudyId::of`].
    pub id: StudyId,
    /// The review that the search belongs to.
    pub project_id: ProjectId,
    /// The search that contains the study.
    pub search_id: SearchId,
    /// The file that contains the study.
    pub file_id: FileId,
    /// The record number in the file, from 1.
    pub record: u64,
    /// The line at which the record begins, from 1.
    pub line: u64,
    /// The byte range in the uploaded file; absent in studies that earlier versions stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<u64>>,
    /// The bibliographic fields.
    pub reference: Reference,
    /// The duplicate mark, if any. The mark is stored by [`CompareStudies::mark`], separately from the study.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Duplicate>,
}

impl Study {
    /// Returns the study for a record of a file.
    pub fn of(project_id: ProjectId, search_id: SearchId, file_id: FileId, record: Record) -> Self {
        let Record { number, line, bytes, reference } = record;
        Self {
            id: StudyId::of(search_id, file_id, number),
            project_id,
            search_id,
            file_id,
            record: number,
            line,
            bytes: Some(bytes),
            reference,
            duplicate: None,
        }
    }

    /// Returns `true` if it is treated as a duplicate of an earlier study.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate.is_some_and(|duplicate| duplicate.is_same())
    }
}

/// A record that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QuarantinedRecord {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file that contains the record.
    pub file_id: FileId,
    /// The location of the record, the reason, and its first characters.
    pub record: Quarantine,
}

/// A file with studies in the store, whether or not its search counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFile {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file.
    pub file_id: FileId,
    /// The project that the studies of the search belong to.
    pub project_id: ProjectId,
    /// The number of studies.
    pub studies: u64,
}

/// A study and its new mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The study.
    pub at: StudyRef,
    /// The mark; `None` if the study does not repeat another one.
    pub duplicate: Option<Duplicate>,
}

/// The number of marked studies of a file, by how they were marked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DuplicateCounts {
    /// Certain duplicates.
    pub certain: u64,
    /// Likely duplicates.
    pub likely: u64,
    /// Duplicates by a reviewer's decision.
    pub said: u64,
    /// Possible duplicates, which are not treated as duplicates.
    pub possible: u64,
}

impl DuplicateCounts {
    /// Returns the number of studies that are treated as duplicates.
    pub fn duplicates(&self) -> u64 {
        self.certain + self.likely + self.said
    }

    /// Returns the sum of two counts.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            certain: self.certain + other.certain,
            likely: self.likely + other.likely,
            said: self.said + other.said,
            possible: self.possible + other.possible,
        }
    }
}

/// A study in the form in which its store writes it; see [`WriteStudies::prepare`]. Only that store knows the
/// type.
#[derive(Debug)]
pub struct PreparedStudy(Box<dyn Any + Send>);

impl PreparedStudy {
    /// Wraps the prepared form of a study.
    pub fn new(ready: impl Any + Send) -> Self {
        Self(Box::new(ready))
    }

    /// Returns the prepared form.
    ///
    /// # Errors
    /// Returns a permanent error if another store has prepared the study.
    pub fn into_inner<T: Any>(self) -> Result<T, StoreError> {
        let foreign = |_| StoreError::unusable("storing a study", "another store has prepared it");
        self.0.downcast().map(|ready| *ready).map_err(foreign)
    }
}

/// The preferred batch size and concurrency of a store's writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteBatching {
    /// The number of studies and quarantined records in a call.
    pub records: usize,
    /// The maximum number of concurrent calls for one file, at least one; more calls would only block each other.
    pub calls: usize,
}

/// Stores the records of files.
#[async_trait]
pub trait WriteStudies: Send + Sync {
    /// Returns the preferred way of calling [`WriteStudies::store_prepared`] for one file.
    fn batching(&self) -> WriteBatching {
        WriteBatching { records: 1_000, calls: 1 }
    }

    /// Does all work of storing a study that needs only the study. The parser calls it on several reading threads,
    /// which leaves little work for the calls that store.
    ///
    /// # Errors
    /// Returns an error if the study cannot be serialized, or memory is exhausted.
    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError>;

    /// Stores studies and quarantined records of a file atomically. The call is idempotent. A power failure may undo
    /// it, together with later writes, until a later checkpoint is saved or the file is finished.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the records may be stored. Returns a retryable error if the file
    /// has another fence; the records are not stored. Returns an error if another store has prepared the studies.
    async fn store_prepared(
        &self,
        file: &FileFence,
        studies: Vec<PreparedStudy>,
        quarantined: Vec<QuarantinedRecord>,
    ) -> Result<(), StoreError>;

    /// Prepares studies and stores them.
    ///
    /// # Errors
    /// Works like [`WriteStudies::prepare`] and [`WriteStudies::store_prepared`].
    async fn store(
        &self,
        file: &FileFence,
        studies: Vec<Study>,
        quarantined: Vec<QuarantinedRecord>,
    ) -> Result<(), StoreError> {
        let studies = studies.into_iter().map(|study| self.prepare(study)).collect::<Result<_, _>>()?;
        self.store_prepared(file, studies, quarantined).await
    }

    /// Deletes all stored records of a file that was neither completed nor rejected, and sets its status to `then`;
    /// `None` is its beginning. Afterwards, only the returned fence, or a later fence from [`ParseAttempts::start`],
    /// permits writes.
    ///
    /// [`ParseAttempts::start`]: crate::ParseAttempts::start
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; some records may remain, and the next attempt removes them.
    /// Returns a retryable error if the file has another fence, or was completed or rejected.
    async fn discard(&self, file: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError>;

    /// Deletes all stored records of a file permanently, even if it was completed. Afterwards nothing can be stored
    /// for the file, and a later attempt to read it finds it rejected for this reason.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; some records may remain. The call can be repeated.
    async fn remove(&self, search: SearchId, file: FileId, refused: &ReadingStatus)
    -> Result<(), StoreError>;

    /// Lists a file as complete, once all of it is stored; does nothing for a removed file.
    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError>;

    /// Removes a file from the completed ones: [`ReadStudies::parsed`] no longer lists it, and a later attempt to read
    /// it finds it rejected. The records of the file remain until [`WriteStudies::remove`], which must follow.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The call can be repeated.
    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError>;
}

/// Finds studies of a project that share keys, and marks duplicates.
///
/// A worker that changes a project first stores the change, then calls [`CompareStudies::revise`], and then reads all
/// studies that the change may affect. A mark contains the revision of its worker and is replaced only by one with an
/// equal or later revision: a worker with a later revision has seen more, even if the other worker writes later.
#[async_trait]
pub trait CompareStudies: Send + Sync {
    /// Counts a change of a project. Each call returns a greater number.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; the change may be counted.
    async fn revise(&self, project: ProjectId) -> Result<Revision, StoreError>;

    /// Returns up to `limit` studies of a project for each of these keys. If there are fewer, they include all studies
    /// of completed files ([`WriteStudies::finish`]); studies of other files may or may not be included. A key that
    /// only one study has may return none. `keys` has up to a few thousand distinct keys.
    async fn sharing(
        &self,
        project: ProjectId,
        keys: &[u64],
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError>;

    /// Marks up to a few thousand studies. A mark with a later revision stays; a study that is not stored gets no
    /// mark.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable; some marks may be stored.
    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError>;
}

/// A selection of studies of a file, for one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// Selects studies with a mark of at least this certainty.
    pub marked: Option<Tier>,
    /// Selects studies after this record number; 0 for the first page.
    pub after: u64,
    /// The maximum number of studies.
    pub limit: usize,
    /// The maximum stored size in bytes: the study that reaches it is the last one of the page.
    pub bytes: usize,
}

/// A stored record that cannot be read. It is a cause of the [`StoreError`] of a page that contains the record.
#[derive(Debug, thiserror::Error)]
#[error("study {record} cannot be read; the others can")]
pub struct DamagedRecord {
    /// The number of the record.
    pub record: u64,
    /// The number of records before the damaged one in the page.
    pub before: usize,
    /// The damage.
    #[source]
    pub source: messages::store::Source,
}

impl DamagedRecord {
    /// Returns the damaged record that an error is about, or `None` for another error.
    pub fn of(error: &StoreError) -> Option<&Self> {
        messages::store::cause(error)
    }
}

/// A page of the readable records of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable<T> {
    /// The readable records, in order.
    pub items: Vec<T>,
    /// The damaged record before these records, and the reason.
    pub damaged: Option<(u64, String)>,
    /// The number of the last record, after which the next page starts; `None` at the end.
    pub last: Option<u64>,
}

/// Reads a page and skips a record that cannot be read. `read` returns up to a number of records after a number;
/// `number` returns the number of a record.
///
/// # Errors
/// Returns an error if the store is unavailable, or more than one record is damaged.
pub async fn readable<T, F>(
    after: u64,
    limit: usize,
    number: impl Fn(&T) -> u64,
    read: impl Fn(u64, usize) -> F,
) -> Result<Readable<T>, StoreError>
where
    F: Future<Output = Result<Vec<T>, StoreError>>,
{
    let page = |items: Vec<T>, damaged| {
        let last = items.last().map(&number);
        Readable { items, damaged, last }
    };
    match read(after, limit).await {
        Ok(items) => Ok(page(items, None)),
        Err(error) => match DamagedRecord::of(&error) {
            None => Err(error),
            Some(DamagedRecord { before: 0, record, source }) => Ok(Readable {
                items: Vec::new(),
                damaged: Some((*record, messages::store::chain(source.as_ref()))),
                last: Some(*record),
            }),
            Some(DamagedRecord { before, .. }) => read(after, *before).await.map(|items| page(items, None)),
        },
    }
}

/// Reads stored studies.
#[async_trait]
pub trait ReadStudies: Send + Sync {
    /// Returns selected studies of a file in record order; an empty list at the end.
    async fn select(
        &self,
        search: SearchId,
        file: FileId,
        selection: Selection,
    ) -> Result<Vec<Study>, StoreError>;

    /// Returns up to `limit` studies of a file of any size, in record order, after record number `after` (0 for the
    /// first page).
    async fn studies(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Study>, StoreError> {
        self.select(search, file, Selection { marked: None, after, limit, bytes: usize::MAX }).await
    }

    /// Returns up to `limit` quarantined records of a file in record order, after record number `after`.
    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError>;

    /// Returns the keys of a file's studies, with paging as in [`ReadStudies::studies`]. A page of fewer than `limit`
    /// studies is the last one. A store may omit keys that no other study of a completed file in the project has.
    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError>;

    /// Returns the compared fields of up to a few thousand studies of a file. Studies that are not stored are
    /// omitted.
    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError>;

    /// Returns the completed files of a search, in their order.
    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError>;

    /// Returns up to `limit` files with studies in the store's order, starting after a file or at the beginning. Each
    /// file takes a few reads, so a small limit keeps the call short.
    async fn stored_files(&self, after: Option<FileRef>, limit: usize)
    -> Result<Vec<StoredFile>, StoreError>;

    /// Counts the marked studies of a file.
    async fn marked(&self, search: SearchId, file: FileId) -> Result<DuplicateCounts, StoreError>;

    /// Returns these studies of a file, given in order of their records. Stops after the study that reaches a size of
    /// `bytes`. Studies that are not stored are omitted.
    async fn studies_at(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        bytes: usize,
    ) -> Result<Vec<Study>, StoreError>;

    /// Returns the studies that are treated as duplicates of these studies of a file, in an order that does not change:
    /// the record of the original, and the duplicate. For each original, they are at least the first `limit`
    /// duplicates.
    async fn repeating(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        limit: usize,
    ) -> Result<Vec<(u64, StudyRef)>, StoreError>;

    /// Returns some buckets of the first part of a file's index of words with records after `after`. Returns `None` if
    /// these records are not indexed.
    async fn words(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        buckets: &[BucketRange],
    ) -> Result<Option<WordPart>, StoreError>;
}
