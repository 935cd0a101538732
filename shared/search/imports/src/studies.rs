//! Studies, and the records that could not be read.

use std::any::Any;
use std::ops::Range;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use references::{Quarantine, Record, Reference};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::contents::Part;
use crate::duplicates::{Duplicate, Identity, Keyed, Relative, Revision, StudyAt, Tier};
use crate::ids::{FileId, ProjectId, SearchId};
use crate::messages::ObjectRef;
use crate::reading::{Fenced, Place};

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
    /// Derived from search, file and record; see [`StudyId::of`].
    pub id: StudyId,
    /// The review that the search is for.
    pub project_id: ProjectId,
    /// The import that brought it.
    pub search_id: SearchId,
    /// The file it was in.
    pub file_id: FileId,
    /// Its place among the file's records, from 1.
    pub record: u64,
    /// The line it begins at, from 1.
    pub line: u64,
    /// Where its bytes are in the file as it was uploaded; none in what releases before stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Range<u64>>,
    /// What it says.
    pub reference: Reference,
    /// The study that it repeats, if it does. Not stored with a study, but by [`CompareStudies::mark`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<Duplicate>,
}

impl Study {
    /// What a record of a file is stored as.
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

    /// Whether it is taken for the same work as an earlier one.
    pub fn is_duplicate(&self) -> bool {
        self.duplicate.is_some_and(|duplicate| duplicate.is_same())
    }
}

/// One record that could not be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Quarantined {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file it is in.
    pub file_id: FileId,
    /// Where in the file, why, and how it begins.
    pub record: Quarantine,
}

/// A file that was read to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParsedFile {
    /// The search that the file belongs to.
    pub search_id: SearchId,
    /// The file's id, unique within the search.
    pub file_id: FileId,
    /// Its place among the files of the search, from 0.
    pub position: u32,
    /// Its name without a path, as it was uploaded.
    pub name: String,
    /// Where its bytes are, for as long as they are kept.
    pub object: ObjectRef,
    /// What was read inside, where the file is packed: places of records are places in the part that they are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// When its search was announced; none in what releases before stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub announced_at: Option<Timestamp>,
}

impl ParsedFile {
    /// The place of one of its studies in the order of the project. Searches whose announcement is not known were announced
    /// before all others: their files were read by a release that did not remember it.
    pub fn order(&self, record: u64) -> (Option<Timestamp>, SearchId, u32, u64) {
        (self.announced_at, self.search_id, self.position, record)
    }

    /// Where one of its studies is.
    pub fn study(&self, record: u64) -> StudyAt {
        StudyAt { search_id: self.search_id, file_id: self.file_id, record }
    }
}

/// The study to mark, and its mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The study.
    pub at: StudyAt,
    /// The study that it repeats, and how the two were matched; none when it repeats none.
    pub duplicate: Option<Duplicate>,
}

/// How many studies of a file have which mark.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marked {
    /// Those that are certainly there before.
    pub certain: u64,
    /// Those that likely are.
    pub likely: u64,
    /// Those of which somebody has said that they are.
    pub said: u64,
    /// Those that are only possibly there before: nobody takes them for duplicates.
    pub possible: u64,
}

impl Marked {
    /// All that are taken for duplicates.
    pub fn duplicates(&self) -> u64 {
        self.certain + self.likely + self.said
    }

    /// The same of several files.
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

/// A study as its store writes it, see [`WriteStudies::make_ready`]. Nobody but that store knows what it is.
#[derive(Debug)]
pub struct ReadyStudy(Box<dyn Any + Send>);

impl ReadyStudy {
    /// What a store has made of a study.
    pub fn new(ready: impl Any + Send) -> Self {
        Self(Box::new(ready))
    }

    /// What the store made of it.
    ///
    /// # Errors
    /// When another store did. No other try goes better.
    pub fn into_inner<T: Any>(self) -> Result<T, StoreError> {
        let foreign = |_| StoreError::unusable("storing a study", "another store has made it ready");
        self.0.downcast().map(|ready| *ready).map_err(foreign)
    }
}

/// How much of a file a store takes at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many studies and quarantined records in a call.
    pub records: usize,
    /// How many such calls for one file may be under way at the same time, at least one: more would only be in each other's way.
    pub calls: usize,
}

/// Stores what was read.
#[async_trait]
pub trait WriteStudies: Send + Sync {
    /// How [`WriteStudies::store_ready`] is called best for one file.
    fn pace(&self) -> Pace {
        Pace { records: 1_000, calls: 1 }
    }

    /// Does whatever storing a study takes that needs nothing but the study. Whoever reads a file on several threads has each
    /// of them do that too, and the calls that store have little left to do.
    ///
    /// # Errors
    /// When the study cannot be written down, or the memory for it is lacking.
    fn make_ready(&self, study: Study) -> Result<ReadyStudy, StoreError>;

    /// Stores studies and quarantined records of a file, all of them or none, each once, however often it is called with
    /// them. A power cut may undo it, with all that came after it, until a place behind them is reached or the file is
    /// finished.
    ///
    /// # Errors
    /// When the store does not answer; then they may be stored. Retryable when the file has another fence; then they are
    /// not. When another store has made the studies ready.
    async fn store_ready(
        &self,
        file: &Fenced,
        studies: Vec<ReadyStudy>,
        quarantined: Vec<Quarantined>,
    ) -> Result<(), StoreError>;

    /// Makes studies ready and stores them.
    ///
    /// # Errors
    /// As [`WriteStudies::make_ready`] and [`WriteStudies::store_ready`].
    async fn store(
        &self,
        file: &Fenced,
        studies: Vec<Study>,
        quarantined: Vec<Quarantined>,
    ) -> Result<(), StoreError> {
        let studies = studies.into_iter().map(|study| self.make_ready(study)).collect::<Result<_, _>>()?;
        self.store_ready(file, studies, quarantined).await
    }

    /// Takes back everything that is stored of a file that was neither read to its end nor refused. Its place is `then`
    /// from now on; none for its beginning. Nobody stores more of it but by the fence that is returned, or by one that
    /// [`TrackReading::begin`] returns from now on.
    ///
    /// [`TrackReading::begin`]: crate::TrackReading::begin
    ///
    /// # Errors
    /// When the store does not answer; then some of it may be there still, and the next attempt that begins removes it.
    /// Retryable when the file has another fence, or was read to its end or refused.
    async fn discard(&self, file: &Fenced, then: Option<&Place>) -> Result<Fenced, StoreError>;

    /// Takes back everything that is stored of a file for good, also of one that was read to its end. Nobody stores more of
    /// it, or remembers that it was read; whoever begins to read it again finds it refused, with this reason.
    ///
    /// # Errors
    /// When the store does not answer; then some of it may be there still. It may be repeated.
    async fn remove(&self, search: SearchId, file: FileId, refused: &Place) -> Result<(), StoreError>;

    /// Remembers that a file was read to its end, once all of it is stored; not of one that was removed.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError>;

    /// Lets a file be one that was never read to its end: it is no longer among those that [`ReadStudies::parsed`] lists,
    /// whoever begins to read it finds it refused, and what is stored of it is there until [`WriteStudies::remove`], which is
    /// to follow.
    ///
    /// # Errors
    /// When the store does not answer. It may be repeated.
    async fn withdraw(&self, search: SearchId, file: FileId, refused: &Place) -> Result<(), StoreError>;
}

/// Finds studies of a project by what they have in common, and marks those that are there twice.
///
/// Whoever changes what a project holds counts that with [`CompareStudies::revise`] once it is stored, and then looks at
/// what has become of all studies that it may concern. A mark says by which revision it was made, and gives way only to one of
/// a later one: whoever has the later one has seen more, however late the other one writes.
#[async_trait]
pub trait CompareStudies: Send + Sync {
    /// Counts a change of what a project holds. Each call returns a greater number.
    ///
    /// # Errors
    /// When the store does not answer; it may be counted.
    async fn revise(&self, project: ProjectId) -> Result<Revision, StoreError>;

    /// Studies of a project that have one of these keys, at most `limit`. Fewer than that are all whose files were read to
    /// their end ([`WriteStudies::finish`]); those of other files may be among them, or not. At most some thousand keys, each
    /// once.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a study.
    async fn sharing(
        &self,
        project: ProjectId,
        keys: &[u64],
        limit: usize,
    ) -> Result<Vec<Relative>, StoreError>;

    /// Marks studies, at most some thousand. What a later revision has said of a study stays; a study that is not stored
    /// gets no mark.
    ///
    /// # Errors
    /// When the store does not answer; some of them may be stored.
    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError>;
}

/// Which studies of a file to read, and how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Selection {
    /// Only those with a mark that is at least as sure as this.
    pub marked: Option<Tier>,
    /// Those after this record number; 0 for the first page.
    pub after: u64,
    /// The most studies.
    pub limit: usize,
    /// The most bytes that they take in the store: the study that reaches it is the last one of the page.
    pub bytes: usize,
}

/// One stored record of a file that cannot be read. It is a cause of the [`StoreError`] of a page that has it.
#[derive(Debug, thiserror::Error)]
#[error("study {record} cannot be read; the others can")]
pub struct Damaged {
    /// The number of the record.
    pub record: u64,
    /// The number of records of the page that come before it.
    pub before: usize,
    /// The damage.
    #[source]
    pub source: messages::store::Source,
}

impl Damaged {
    /// Returns the record that an error is about; none if it is another error.
    pub fn of(error: &StoreError) -> Option<&Self> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(cause) = next {
            if let Some(damaged) = cause.downcast_ref::<Self>() {
                return Some(damaged);
            }
            next = cause.source();
        }
        None
    }
}

/// A page of the readable records of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable<T> {
    /// The readable records, in order.
    pub items: Vec<T>,
    /// The record before it that cannot be read, and why.
    pub damaged: Option<(u64, String)>,
    /// The number of the last record: the next page is after it. None at the end.
    pub last: Option<u64>,
}

/// Reads a page, and skips a record that cannot be read. `read` returns the records after a number, up to a number of them;
/// `number` returns the number of one.
///
/// # Errors
/// When the store does not answer, or something else than one record is damaged.
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
        Err(error) => match Damaged::of(&error) {
            None => Err(error),
            Some(Damaged { before: 0, record, source }) => Ok(Readable {
                items: Vec::new(),
                damaged: Some((*record, messages::store::chain(source.as_ref()))),
                last: Some(*record),
            }),
            Some(Damaged { before, .. }) => read(after, *before).await.map(|items| page(items, None)),
        },
    }
}

/// Reads what was stored.
#[async_trait]
pub trait ReadStudies: Send + Sync {
    /// Some studies of a file in record order; none when there are no more.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a study.
    async fn select(
        &self,
        search: SearchId,
        file: FileId,
        selection: Selection,
    ) -> Result<Vec<Study>, StoreError>;

    /// Up to `limit` studies of a file in record order, after record number `after` (0 for the first page), however
    /// large they are.
    ///
    /// # Errors
    /// As [`ReadStudies::select`].
    async fn studies(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Study>, StoreError> {
        self.select(search, file, Selection { marked: None, after, limit, bytes: usize::MAX }).await
    }

    /// Up to `limit` quarantined records of a file in record order, after record number `after`.
    ///
    /// # Errors
    /// As [`ReadStudies::studies`].
    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError>;

    /// By what others find the studies of a file: as [`ReadStudies::studies`], without anything that these say. A store may leave out keys
    /// that no other study of the project has; only those of files that were read to their end count.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Keyed>, StoreError>;

    /// What these studies of a file are recognised by, at most some thousand. Those that are not stored are left out.
    ///
    /// # Errors
    /// As [`ReadStudies::studies`].
    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError>;

    /// The files of a search that were read to their end, in their order.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a file.
    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError>;

    /// How many studies of a file are marked.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn marked(&self, search: SearchId, file: FileId) -> Result<Marked, StoreError>;
}
