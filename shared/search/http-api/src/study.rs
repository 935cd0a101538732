//! Views of studies and of records that could not be read.

use imports::{Part, QuarantinedRecord};
use serde::Serialize;
use serde_json::value::RawValue;

use super::page::DamagedView;
use service::study_view::{BytesView, RecordPlace, StudyView, part_of};
use service::{Around, Raw, SearchRepairs};
use utoipa::ToSchema;
use uuid::Uuid;

/// A study and the text that it was read from.
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
    /// The record as it is in the uploaded file, decoded; null if it is not available.
    #[schema(required)]
    pub(super) raw: Option<String>,
    /// `true` if `raw` has only the beginning of the record; it is limited to 256 KiB of the file.
    pub(super) truncated: bool,
    /// The reason why `raw` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) raw_missing: Option<&'static str>,
}

/// A study and the earlier study that it repeats.
#[derive(Serialize, ToSchema)]
pub(super) struct PairView {
    /// The import that contains the later study.
    pub(super) search_id: Uuid,
    /// The later study, which is marked as a duplicate.
    pub(super) study: StudyView,
    /// The earlier study.
    #[schema(required)]
    pub(super) original: Option<StudyView>,
}

/// A record that was not imported because it could not be read.
#[derive(Serialize, ToSchema)]
pub(super) struct UnreadView {
    /// The id of the record within its import, such as `0-18`.
    id: String,
    /// The file that contains it.
    file_id: Uuid,
    /// Its number in the file, from 1.
    record: u64,
    /// The file inside the archive, or the sheet of the workbook, that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// The line of the file at which it begins, from 1.
    line: u64,
    /// The byte range of the record in the file.
    bytes: BytesView,
    /// The reason why it could not be read, in plain language for the reviewer.
    reason: String,
    /// The first 200 characters of the record.
    excerpt: String,
    /// The import that has read the record in corrected form, or is about to; see the repair of an import.
    #[schema(required)]
    mended_by: Option<Uuid>,
}

/// The text around a file's records. It allows clients to build a readable file from some of the records.
#[derive(Serialize, ToSchema)]
pub(super) struct SurroundingTextView {
    /// The text before the first record: the header row of a table, or the elements around the records of XML.
    before: String,
    /// The text between two records.
    between: String,
    /// The text after the last record.
    after: String,
}

/// A record that was not imported, and its text.
#[derive(Serialize, ToSchema)]
pub(super) struct UnreadDetail {
    /// The record.
    pub(super) unread: UnreadView,
    /// The text around the records of its file, to be sent as UTF-8 with corrected records; null if the file is no
    /// longer stored.
    #[schema(required)]
    pub(super) around: Option<SurroundingTextView>,
    #[serde(flatten)]
    pub(super) raw: RawView,
}

/// A page with items that are already serialized.
#[derive(Serialize)]
pub(super) struct PageBody {
    pub(super) items: Vec<Box<RawValue>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) damaged: Vec<DamagedView>,
    pub(super) next: Option<String>,
}

macro_rules! list {
    ($(#[$what:meta] $list:ident of $item:ty;)*) => { $(
        #[$what]
        #[derive(ToSchema)]
        #[allow(dead_code, reason = "it only describes what a page has")]
        pub(super) struct $list {
            /// The items of the page, in the order of files and records.
            items: Vec<$item>,
            /// Stored records that belong to the page and cannot be read any more; absent if there are none. Restore a
            /// backup, or delete their import and upload its files again.
            damaged: Option<Vec<DamagedView>>,
            /// The cursor for the `after` of the next request; null if no more items follow. A page may be short or
            /// empty even if more pages follow.
            #[schema(required)]
            next: Option<String>,
        }
    )* };
}
list! {
    /// A page of studies.
    StudyList of StudyView;
    /// A page of records that were not imported.
    UnreadList of UnreadView;
    /// A page of duplicates.
    PairList of PairView;
}

impl From<Around> for SurroundingTextView {
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
    /// Returns the view of a record of the file at a position.
    pub(super) fn of(position: u32, unread: QuarantinedRecord, known: &SearchRepairs) -> Self {
        let QuarantinedRecord { search_id, file_id, record } = unread;
        let corrected_by = known.corrected_by(search_id, file_id, record.number);
        Self {
            id: RecordPlace { position, record: record.number }.to_string(),
            file_id: file_id.as_uuid(),
            record: record.number,
            part: None,
            line: record.line,
            bytes: record.bytes.into(),
            reason: record.reason,
            excerpt: record.excerpt,
            mended_by: corrected_by.map(|search| search.as_uuid()),
        }
    }

    /// Adds the name of the part that contains the record.
    pub(super) fn within(self, parts: &[Part]) -> Self {
        Self { part: part_of(parts, self.record), ..self }
    }
}
