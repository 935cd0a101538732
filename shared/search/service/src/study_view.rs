//! The JSON of a study, in API responses and in exports.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use imports::{Duplicate, ParsedFile, Part, Reason, Study, Tier};
use messages::StoreError;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;
use uuid::Uuid;

/// The location of a record: the position of its file among the files of the search, from 0, and its number in that
/// file, from 1.
///
/// The API addresses studies by this location, because both stores index it. The ids that are derived from it are not
/// stored everywhere, because they would double the size of a short record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordPlace {
    /// The position of the file among the files of its search, from 0.
    pub position: u32,
    /// The number of the record in the file, from 1.
    pub record: u64,
}

impl fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position, self.record)
    }
}

/// A study: one bibliographic record.
#[derive(Serialize, ToSchema)]
pub struct StudyView {
    /// The id of the study within its import, such as `0-17`.
    id: String,
    /// The import that contains it.
    search_id: Uuid,
    /// The file that contains it.
    file_id: Uuid,
    /// Its number among the records of the file, from 1.
    record: u64,
    /// The file inside the archive, or the sheet of the workbook, that contains it; omitted if the file is not a
    /// container. Line and bytes refer to the unpacked part, where a sheet is a table of comma-separated values.
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    /// The line of the file at which it begins, from 1.
    line: u64,
    /// The byte range in the file; null for studies that an earlier version stored.
    #[schema(required)]
    bytes: Option<BytesView>,
    /// The title; empty if the record has none.
    title: String,
    /// The authors, each as `Family, Given`, in the order given.
    authors: Vec<String>,
    /// The year of publication.
    #[schema(required)]
    year: Option<i32>,
    /// The date of publication if more than the year is known, as `2018-05` or `2018-05-17`.
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
    /// The pages in full if they are abbreviated: `123-129` for `123-9`.
    #[schema(required)]
    pages_normalized: Option<String>,
    /// The DOI in lower case, without the address of a resolver.
    #[schema(required)]
    doi: Option<String>,
    /// The PubMed identifier.
    #[schema(required)]
    pmid: Option<String>,
    /// The number in PubMed Central, such as `PMC7012345`; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pmcid: Option<String>,
    /// The accession number in Embase, or the identifier of embase.com, such as `L2004567890`; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    embase_id: Option<String>,
    /// The accession number in Web of Science, such as `WOS:000478028100004`; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    wos_id: Option<String>,
    /// The accession number in another database; omitted if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    accession: Option<String>,
    /// The registration numbers of trials that the record is or names, such as `NCT00000001`; omitted if there are
    /// none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trial_ids: Vec<String>,
    /// The abstract.
    #[schema(required)]
    r#abstract: Option<String>,
    /// The keywords and subject headings, in the order given.
    keywords: Vec<String>,
    /// The first link of the record.
    #[schema(required)]
    url: Option<String>,
    /// The type of the work, as named by the format.
    #[schema(required)]
    r#type: Option<String>,
    /// The values of tags that have no field here, by tag.
    extra: BTreeMap<String, Vec<String>>,
    /// The duplicate mark; null if it does not repeat an earlier study.
    #[schema(required)]
    duplicate: Option<DuplicateView>,
    /// `true` if its texts were truncated because the study would exceed 1 MiB; the raw record is complete.
    shortened: bool,
}

/// The byte range of a record in the uploaded file.
#[derive(Serialize, ToSchema)]
pub struct BytesView {
    /// The first byte, from 0.
    start: u64,
    /// The byte after the last one.
    end: u64,
}

/// The mark of a study that repeats, or may repeat, an earlier one of its review.
#[derive(Serialize, ToSchema)]
pub struct DuplicateView {
    /// The `id` of the study that it repeats.
    of: String,
    /// The import that contains that study.
    search_id: Uuid,
    /// The file that contains that study.
    file_id: Uuid,
    /// The certainty that both are the same work.
    tier: CertaintyView,
    /// The name of the matching rule, such as `doi_title`.
    #[schema(value_type = String)]
    reason: Reason,
    /// The rule as a phrase, such as "the same DOI and title".
    because: String,
}

/// The certainty that two studies are the same work.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum CertaintyView {
    /// Wrong about once in several thousand cases.
    Certain,
    /// Wrong about once in several hundred cases.
    Likely,
    /// Similar, but with contradicting fields.
    Possible,
}

/// The maximum size of a study's JSON in responses with several studies, in bytes.
const MAX_STUDY_BYTES: usize = 1 << 20;
/// The maximum length of each text and each list in a study that is truncated: 1.3 MB in total, if every character
/// has to be escaped.
const CUT_CHARS: usize = 1_000;
const CUT_ITEMS: usize = 100;

fn cut(text: &mut String) {
    if let Some((end, _)) = text.char_indices().nth(CUT_CHARS) {
        text.truncate(end);
    }
}

impl From<Range<u64>> for BytesView {
    fn from(Range { start, end }: Range<u64>) -> Self {
        Self { start, end }
    }
}

impl DuplicateView {
    fn of(duplicate: Duplicate) -> Self {
        Self {
            of: RecordPlace { position: duplicate.position, record: duplicate.record }.to_string(),
            search_id: duplicate.search_id.as_uuid(),
            file_id: duplicate.file_id.as_uuid(),
            tier: match duplicate.tier {
                Tier::Certain => CertaintyView::Certain,
                Tier::Likely => CertaintyView::Likely,
                Tier::Possible => CertaintyView::Possible,
            },
            reason: duplicate.reason,
            because: duplicate.reason.to_string(),
        }
    }
}

/// Returns the name of the part that contains a record. The content of a gzip file has no name.
pub fn part_of(parts: &[Part], record: u64) -> Option<String> {
    Part::of(parts, record).map(|part| part.name.clone()).filter(|name| !name.is_empty())
}

impl StudyView {
    /// Returns the view of a study of the file at a position.
    pub fn of(position: u32, study: Study) -> Self {
        let reference = study.reference;
        Self {
            id: RecordPlace { position, record: study.record }.to_string(),
            search_id: study.search_id.as_uuid(),
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
            pmcid: reference.pmcid,
            embase_id: reference.embase_id,
            wos_id: reference.wos_id,
            accession: reference.accession,
            trial_ids: reference.trial_ids,
            r#abstract: reference.r#abstract,
            keywords: reference.keywords,
            url: reference.url,
            r#type: reference.r#type,
            extra: reference.extra,
            duplicate: study.duplicate.map(DuplicateView::of),
            shortened: false,
        }
    }

    /// Adds the name of the part that contains the study.
    pub fn within(self, parts: &[Part]) -> Self {
        Self { part: part_of(parts, self.record), ..self }
    }

    /// Truncates the study if its JSON would exceed `MAX_STUDY_BYTES`.
    pub fn bounded(self) -> Result<Self, StoreError> {
        Ok(if to_json(&self)?.get().len() > MAX_STUDY_BYTES { self.shortened() } else { self })
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
            &mut self.pmcid,
            &mut self.embase_id,
            &mut self.wos_id,
            &mut self.accession,
            &mut self.r#abstract,
            &mut self.url,
            &mut self.r#type,
        ];
        let lists = [&mut self.authors, &mut self.keywords, &mut self.trial_ids];
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

/// Returns a study as a line of an export in JSON Lines.
pub fn study_line(file: &ParsedFile, study: Study) -> Result<Box<RawValue>, StoreError> {
    to_json(&StudyView::of(file.position, study).within(&file.parts))
}

/// Serializes a value that an answer or an export shows.
pub fn to_json(value: &impl Serialize) -> Result<Box<RawValue>, StoreError> {
    to_raw_value(value).map_err(|error| StoreError::unusable("serializing a record", error))
}
