//! What the API shows of studies and of records that could not be read.

use std::collections::BTreeMap;
use std::ops::Range;

use imports::{Duplicate, Part, Quarantined, Reason, Study, Tier};
use messages::StoreError;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::paging::{Place, RecordPlace};
use super::walk::shown;
use crate::start_upload::{Around, Known, Raw};

/// A study: one bibliographic record as it was read.
#[derive(Serialize, ToSchema)]
pub(super) struct StudyView {
    /// What the study is addressed by within its search, such as `0-17`.
    id: String,
    /// The file that it was in.
    file_id: Uuid,
    /// Its place among the records of the file, from 1.
    record: u64,
    /// The file inside the archive, or the sheet of the workbook, that it was in; left out where the file is not packed. Line
    /// and bytes are places in that, once it is unpacked, and a sheet is a table of comma-separated values.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// The line of the file that it begins at, from 1.
    line: u64,
    /// Where it is in the file; null for studies that an earlier release stored.
    #[schema(required)]
    bytes: Option<BytesView>,
    /// The title; empty where the record has none.
    title: String,
    /// The authors, each as `Family, Given`, in the order given.
    authors: Vec<String>,
    /// The year of publication.
    #[schema(required)]
    year: Option<i32>,
    /// The date of publication where more than the year is known, as `2018-05` or `2018-05-17`.
    #[schema(required)]
    date: Option<String>,
    /// The journal or book.
    #[schema(required)]
    journal: Option<String>,
    /// The volume, as given.
    #[schema(required)]
    volume: Option<String>,
    /// The issue, as given.
    #[schema(required)]
    issue: Option<String>,
    /// The pages, as given.
    #[schema(required)]
    pages: Option<String>,
    /// The pages in full where they are given otherwise: `123-129` for `123-9`.
    #[schema(required)]
    pages_normalized: Option<String>,
    /// The DOI in lower case, without a resolver's address.
    #[schema(required)]
    doi: Option<String>,
    /// The PubMed identifier.
    #[schema(required)]
    pmid: Option<String>,
    /// The abstract.
    #[schema(required)]
    r#abstract: Option<String>,
    /// The keywords and subject headings, in the order given.
    keywords: Vec<String>,
    /// The first link of the record.
    #[schema(required)]
    url: Option<String>,
    /// The kind of work, as the format names it.
    #[schema(required)]
    r#type: Option<String>,
    /// What the record says under tags that have no field here, by tag.
    extra: BTreeMap<String, Vec<String>>,
    /// The study that it repeats, if it does.
    #[schema(required)]
    duplicate: Option<DuplicateView>,
    /// Whether its texts are cut, as all of them would be more than 1 MiB; the raw record has them.
    shortened: bool,
}

/// Where a record is in its file as it was uploaded.
#[derive(Serialize, ToSchema)]
pub(super) struct BytesView {
    /// The first byte, from 0.
    start: u64,
    /// The byte after the last one.
    end: u64,
}

/// The mark of a study that repeats an earlier one of its project, or possibly does.
#[derive(Serialize, ToSchema)]
pub(super) struct DuplicateView {
    /// The `id` of the study that it repeats.
    of: String,
    /// The search of that study.
    search_id: Uuid,
    /// The file of that study.
    file_id: Uuid,
    /// How sure it is that the two are the same work.
    tier: TierView,
    /// The name of what was found to be the same, such as `doi_title`: a line of the table by which studies are compared.
    #[schema(value_type = String)]
    reason: Reason,
    /// The same in words: "the same DOI and title".
    because: String,
}

/// How sure it is that two studies are the same work.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum TierView {
    /// One in some thousand of these is not.
    Certain,
    /// One in some hundred of these is not.
    Likely,
    /// They are alike, and something speaks against it.
    Possible,
}

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

/// The most JSON of a study where there is room for several, in bytes.
const MAX_STUDY_BYTES: usize = 1 << 20;
/// What is left of each text, in characters, and of each list, in a study that would be larger: 1.3 MB, if all of it has
/// to be escaped.
const CUT_CHARS: usize = 1_000;
const CUT_ITEMS: usize = 100;

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(CUT_CHARS) {
        text.truncate(end);
    }
}

fn id(position: u32, record: u64) -> String {
    RecordPlace { position, record }.written()
}

impl From<Range<u64>> for BytesView {
    fn from(Range { start, end }: Range<u64>) -> Self {
        Self { start, end }
    }
}

impl DuplicateView {
    fn of(duplicate: Duplicate) -> Self {
        Self {
            of: id(duplicate.position, duplicate.record),
            search_id: duplicate.search_id.as_uuid(),
            file_id: duplicate.file_id.as_uuid(),
            tier: match duplicate.tier {
                Tier::Certain => TierView::Certain,
                Tier::Likely => TierView::Likely,
                Tier::Possible => TierView::Possible,
            },
            reason: duplicate.reason,
            because: duplicate.reason.to_string(),
        }
    }
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

/// The name of the part that a record is in. What is in a gzip file has none.
fn part_of(parts: &[Part], record: u64) -> Option<String> {
    Part::of(parts, record).map(|part| part.name.clone()).filter(|name| !name.is_empty())
}

impl StudyView {
    /// A study of the file at a position.
    pub(super) fn of(position: u32, study: Study) -> Self {
        let reference = study.reference;
        Self {
            id: id(position, study.record),
            file_id: study.file_id.as_uuid(),
            record: study.record,
            part: None,
            line: study.line,
            bytes: study.bytes.map(BytesView::from),
            title: reference.title,
            authors: reference.authors,
            year: reference.year,
            date: reference.date,
            journal: reference.journal,
            volume: reference.volume,
            issue: reference.issue,
            pages: reference.pages,
            pages_normalized: reference.pages_normalized,
            doi: reference.doi,
            pmid: reference.pmid,
            r#abstract: reference.r#abstract,
            keywords: reference.keywords,
            url: reference.url,
            r#type: reference.r#type,
            extra: reference.extra,
            duplicate: study.duplicate.map(DuplicateView::of),
            shortened: false,
        }
    }

    /// The same with the part that it is in, of a file with these.
    pub(super) fn within(self, parts: &[Part]) -> Self {
        Self { part: part_of(parts, self.record), ..self }
    }

    /// The same for where there is not room for everything that a file may say: more than [`MAX_STUDY_BYTES`] are shortened.
    pub(super) fn bounded(self) -> Result<Self, StoreError> {
        Ok(if shown(&self)?.get().len() > MAX_STUDY_BYTES { self.shortened() } else { self })
    }

    fn shortened(mut self) -> Self {
        let texts = [
            &mut self.date,
            &mut self.journal,
            &mut self.volume,
            &mut self.issue,
            &mut self.pages,
            &mut self.pages_normalized,
            &mut self.doi,
            &mut self.pmid,
            &mut self.r#abstract,
            &mut self.url,
            &mut self.r#type,
        ];
        let lists = [&mut self.authors, &mut self.keywords];
        let listed = lists.into_iter().flat_map(|list| {
            list.truncate(CUT_ITEMS);
            list.iter_mut()
        });
        texts.into_iter().flatten().chain(listed).chain([&mut self.title]).for_each(cut);
        self.extra.clear();
        self.shortened = true;
        self
    }
}

impl UnreadView {
    /// A record of the file at a position.
    pub(super) fn of(position: u32, unread: Quarantined, known: &Known) -> Self {
        let Quarantined { search_id, file_id, record } = unread;
        let mended_by = known.is_mended(search_id, file_id, record.number);
        Self {
            id: id(position, record.number),
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
