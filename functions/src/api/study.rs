//! What the API shows of studies and of records that could not be read.

use imports::{Part, Quarantined};
use serde::Serialize;
use serde_json::value::RawValue;
use service::study_view::{BytesView, RecordPlace, StudyView, part_of};
use service::{Around, Known, Raw};
use utoipa::ToSchema;
use uuid::Uuid;

/// A study, and what it was read from.
#[derive(Serialize, ToSchema)]
pub(super) struct StudyDetail {
    /// The study.
    pub(super) study: StudyView,
    #[serde(flatten)]
    pub(super) raw: RawView,
}

/// The text that a record was read from.
#[derive(Serialize, ToSchema)]
pub(super) struct RawView {
    /// The record as it is in the uploaded file, decoded; null where it cannot be shown.
    #[schema(required)]
    pub(super) raw: Option<String>,
    /// Whether `raw` is only the beginning: it has up to 256 KiB of the file.
    pub(super) truncated: bool,
    /// Why `raw` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_missing: Option<&'static str>,
}

/// A study that repeats another one, beside that one.
#[derive(Serialize, ToSchema)]
pub(super) struct PairView {
    /// The search that brought the later study.
    pub(super) search_id: Uuid,
    /// The later study, which is marked.
    pub(super) study: StudyView,
    /// The earlier study, which it repeats.
    #[schema(required)]
    pub(super) original: Option<StudyView>,
}

/// A record that could not be read.
#[derive(Serialize, ToSchema)]
pub(super) struct UnreadView {
    /// What the record is addressed by within its search, such as `0-18`.
    id: String,
    /// The file that it is in.
    file_id: Uuid,
    /// Its place among the records of the file, from 1.
    record: u64,
    /// The file inside the archive, or the sheet of the workbook, that it is in, as with studies.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// The line of the file that it begins at, from 1.
    line: u64,
    /// Where it is in the file.
    bytes: BytesView,
    /// Why it could not be read, in words for the reviewer.
    reason: String,
    /// How it begins: its first 200 characters.
    excerpt: String,
    /// The search that has it in a form that can be read, or is about to; see the repair of a search.
    #[schema(required)]
    mended_by: Option<Uuid>,
}

/// What a file has around its records: so a file of some of them can be made that can be read.
#[derive(Serialize, ToSchema)]
pub(super) struct AroundView {
    /// Before the first record: the header row of a table, or the elements around the records of XML.
    before: String,
    /// Between two records.
    between: String,
    /// After the last record.
    after: String,
}

/// A record that could not be read, and its text.
#[derive(Serialize, ToSchema)]
pub(super) struct UnreadDetail {
    /// The record.
    pub(super) unread: UnreadView,
    /// What its file has around its records, to be sent as UTF-8 with records that are mended; null where the file is not
    /// stored any more.
    #[schema(required)]
    pub(super) around: Option<AroundView>,
    #[serde(flatten)]
    pub(super) raw: RawView,
}

/// A page as it is written.
#[derive(Serialize)]
pub(super) struct PageBody {
    pub(super) items: Vec<Box<RawValue>>,
    pub(super) next: Option<String>,
}

macro_rules! list {
    ($(#[$what:meta] $list:ident of $item:ty;)*) => { $(
        #[$what]
        #[derive(ToSchema)]
        #[allow(dead_code, reason = "it only describes what a page has")]
        pub(super) struct $list {
            /// What the page has, in the order of files and records.
            items: Vec<$item>,
            /// Where the page ends, for the `after` of the next one; null when nothing follows. A page may be short, or
            /// empty, although more follows.
            #[schema(required)]
            next: Option<String>,
        }
    )* };
}
list! {
    /// Some of the studies of a search.
    StudyList of StudyView;
    /// Some of the records of a search that could not be read.
    UnreadList of UnreadView;
    /// Some of the studies of a search that repeat another one.
    PairList of PairView;
}

impl From<Around> for AroundView {
    fn from(Around { before, between, after }: Around) -> Self {
        Self { before, between, after }
    }
}

impl From<Raw> for RawView {
    fn from(raw: Raw) -> Self {
        match raw {
            Raw::Text { text, truncated } => Self { raw: Some(text), truncated, raw_missing: None },
            Raw::Missing(why) => Self { raw: None, truncated: false, raw_missing: Some(why) },
        }
    }
}

impl UnreadView {
    /// A record of the file at a position.
    pub(super) fn of(position: u32, unread: Quarantined, known: &Known) -> Self {
        let Quarantined { search_id, file_id, record } = unread;
        let mended_by = known.is_mended(search_id, file_id, record.number);
        Self {
            id: RecordPlace { position, record: record.number }.to_string(),
            file_id: file_id.as_uuid(),
            record: record.number,
            part: None,
            line: record.line,
            bytes: record.bytes.into(),
            reason: record.reason,
            excerpt: record.excerpt,
            mended_by: mended_by.map(|search| search.as_uuid()),
        }
    }

    /// The same with the part that it is in, of a file with these.
    pub(super) fn within(self, parts: &[Part]) -> Self {
        Self { part: part_of(parts, self.record), ..self }
    }
}
