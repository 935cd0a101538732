//! Merging the duplicates of a study into one record.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use imports::{FileRef, Jobs, ReadStudies, SearchId, Study, StudyRef, readable};
use messages::StoreError;
use references::Reference;

/// The maximum size of the tags that a merged record takes from duplicates, in bytes.
const MAX_EXTRA_BYTES: usize = 16 << 10;

/// The maximum number of duplicates of a study that are merged. Only a file that was made for this purpose contains
/// more.
const MAX_MERGED: usize = 50;
/// The maximum size of the duplicates that are read at a time, in bytes, plus up to one study.
const READ_BYTES: usize = 1 << 20;
/// The maximum size of all duplicates of a batch in bytes, except for a batch of one study.
const BATCH_BYTES: usize = 4 << 20;

/// The origin of the values of a study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Origin {
    /// A file of a database.
    Read,
    /// A file with a reviewer's corrections, which belongs to an import that repairs another import. The values of such
    /// a file take precedence.
    Corrected,
}

/// A record that takes the most complete value of each field from a study and its duplicates. The result depends only
/// on the order in which they are added, the study itself first.
///
/// - The record takes the longest of the texts. A title in capitals is replaced by a title that is not in capitals.
/// - The record takes the list of authors and the list of keywords with the most entries. If two lists have the same
///   number of entries, the record takes the list with the longest names.
/// - The record takes other values, such as the DOI, from the first study that has them. Year and date agree, and so do
///   both forms of the pages.
/// - The record has all registration numbers of trials, and the tags without a field that the study itself does not
///   have.
struct MergedRecord {
    reference: Reference,
    origin: Origin,
    /// The fields whose values are corrected.
    corrected: BTreeSet<&'static str>,
}

impl MergedRecord {
    /// Returns the record of a study without its duplicates.
    fn new(reference: Reference, origin: Origin) -> Self {
        Self { reference, origin, corrected: BTreeSet::new() }
    }

    /// Returns the record.
    fn into_reference(self) -> Reference {
        self.reference
    }

    /// Adds a duplicate.
    fn add(&mut self, other: Reference, origin: Origin) {
        let (corrects, only_adds) = (origin > self.origin, origin < self.origin);
        let Self { reference: merged, corrected, .. } = self;
        // A value that a reviewer has corrected stays, and replaces any other.
        let mut takes = |field: &'static str, is_empty: bool, was_empty: bool, is_better: bool| {
            if is_empty || corrected.contains(field) {
                return false;
            }
            if corrects {
                corrected.insert(field);
            }
            corrects || was_empty || (is_better && !only_adds)
        };
        let Reference { title, authors, keywords, r#abstract, journal, pages, year, date, .. } = other;
        let is_better = is_better_title(&title, &merged.title);
        if takes("title", title.is_empty(), merged.title.is_empty(), is_better) {
            merged.title = title;
        }
        let is_better = size(&authors) > size(&merged.authors);
        if takes("authors", authors.is_empty(), merged.authors.is_empty(), is_better) {
            merged.authors = authors;
        }
        let is_better = size(&keywords) > size(&merged.keywords);
        if takes("keywords", keywords.is_empty(), merged.keywords.is_empty(), is_better) {
            merged.keywords = keywords;
        }
        for (field, own, value) in
            [("abstract", &mut merged.r#abstract, r#abstract), ("journal", &mut merged.journal, journal)]
        {
            let is_better = length(value.as_deref()) > length(own.as_deref());
            if takes(field, value.is_none(), own.is_none(), is_better) {
                *own = value;
            }
        }
        let is_better = length(pages.as_deref()) > length(merged.pages.as_deref());
        if takes("pages", pages.is_none(), merged.pages.is_none(), is_better) {
            (merged.pages, merged.pages_normalized) = (pages, other.pages_normalized);
        }
        let is_more_exact = year == merged.year && length(date.as_deref()) > length(merged.date.as_deref());
        if takes("year", year.is_none(), merged.year.is_none(), is_more_exact) {
            (merged.year, merged.date) = (year, date);
        }
        for (field, own, value) in [
            ("volume", &mut merged.volume, other.volume),
            ("issue", &mut merged.issue, other.issue),
            ("doi", &mut merged.doi, other.doi),
            ("pmid", &mut merged.pmid, other.pmid),
            ("pmcid", &mut merged.pmcid, other.pmcid),
            ("embase_id", &mut merged.embase_id, other.embase_id),
            ("wos_id", &mut merged.wos_id, other.wos_id),
            ("accession", &mut merged.accession, other.accession),
            ("url", &mut merged.url, other.url),
            ("type", &mut merged.r#type, other.r#type),
        ] {
            if takes(field, value.is_none(), own.is_none(), false) {
                *own = value;
            }
        }
        for id in other.trial_ids {
            if !merged.trial_ids.contains(&id) {
                merged.trial_ids.push(id);
            }
        }
        let mut bytes = merged.extra.iter().map(|(tag, values)| tag.len() + size(values).1).sum::<usize>();
        for (tag, values) in other.extra {
            let more = tag.len() + size(&values).1;
            if !merged.extra.contains_key(&tag) && bytes + more <= MAX_EXTRA_BYTES {
                bytes += more;
                merged.extra.insert(tag, values);
            }
        }
    }
}

/// Completes studies with the values of their duplicates, for an export.
#[derive(Clone)]
pub struct DuplicateMerger {
    jobs: Jobs,
    /// The origins of the searches that were looked up.
    origins: HashMap<SearchId, Origin>,
    /// The maximum number of studies that are completed at a time. The number is halved if the duplicates of the
    /// studies are too large.
    batch: usize,
}

impl DuplicateMerger {
    /// Creates a merger.
    pub fn new(jobs: Jobs) -> Self {
        Self { jobs, origins: HashMap::new(), batch: usize::MAX }
    }

    /// Completes those studies of a file that are not duplicates, and removes studies at the end whose duplicates do
    /// not fit into memory together with the others. At least one study remains. Possible duplicates are not merged. A
    /// duplicate that cannot be read is omitted.
    pub async fn complete(
        &mut self,
        stored: &dyn ReadStudies,
        studies: &mut Vec<Study>,
    ) -> Result<(), StoreError> {
        loop {
            let count = self.batch.min(studies.len());
            if self.complete_all(stored, &mut studies[..count]).await? {
                studies.truncate(count);
                self.batch = self.batch.saturating_mul(2);
                return Ok(());
            }
            self.batch = (count / 2).max(1);
        }
    }

    /// Completes all these studies of a file. Returns `false`, and changes nothing, if their duplicates are too large.
    async fn complete_all(
        &mut self,
        stored: &dyn ReadStudies,
        studies: &mut [Study],
    ) -> Result<bool, StoreError> {
        let Some(Study { search_id, file_id, .. }) = studies.first() else { return Ok(true) };
        let (search, file) = (*search_id, *file_id);
        let kept = studies.iter().filter(|study| !study.is_duplicate());
        let kept: Vec<u64> = kept.map(|study| study.record).collect();
        let mut pairs: Vec<(StudyRef, u64)> = Vec::new();
        let (mut last, mut count) = (None, 0);
        for (original, at) in stored.repeating(search, file, &kept, MAX_MERGED).await? {
            count = if last == Some(original) { count + 1 } else { 1 };
            last = Some(original);
            if count <= MAX_MERGED {
                pairs.push((at, original));
            }
        }
        if pairs.is_empty() {
            return Ok(true);
        }
        // The ids of searches are in the order of the announcements.
        pairs.sort_unstable();
        let own = self.origin(search).await?;
        let originals: BTreeSet<u64> = pairs.iter().map(|(_, original)| *original).collect();
        let left = if studies.len() > 1 { BATCH_BYTES } else { usize::MAX };
        let mut batch = Batch { merged: HashMap::new(), left };
        for study in studies.iter().filter(|study| originals.contains(&study.record)) {
            batch.merged.insert(study.record, MergedRecord::new(study.reference.clone(), own));
        }
        for of_file in pairs.chunk_by(|(one, _), (next, _)| one.file() == next.file()) {
            let [(first, _), ..] = of_file else { continue };
            let origin = self.origin(first.search_id).await?;
            if !add(stored, first.file(), origin, of_file, &mut batch).await? {
                return Ok(false);
            }
        }
        for study in studies {
            if let Some(merged) = batch.merged.remove(&study.record) {
                study.reference = merged.into_reference();
            }
        }
        Ok(true)
    }

    async fn origin(&mut self, search: SearchId) -> Result<Origin, StoreError> {
        if let Some(known) = self.origins.get(&search) {
            return Ok(*known);
        }
        let job = self.jobs.job(search).await?;
        let is_repair = job.is_some_and(|job| job.repairs.is_some());
        let origin = if is_repair { Origin::Corrected } else { Origin::Read };
        self.origins.insert(search, origin);
        Ok(origin)
    }
}

/// The merged records of a batch of studies.
struct Batch {
    /// By the number of the study's record.
    merged: HashMap<u64, MergedRecord>,
    /// The size in bytes of the duplicates that may still be read.
    left: usize,
}

/// Adds the duplicates of one file. Returns `false` if they are too large.
async fn add(
    stored: &dyn ReadStudies,
    FileRef { search_id, file_id }: FileRef,
    origin: Origin,
    pairs: &[(StudyRef, u64)],
    batch: &mut Batch,
) -> Result<bool, StoreError> {
    let originals: BTreeMap<u64, u64> = pairs.iter().map(|(at, original)| (at.record, *original)).collect();
    let mut after = 0;
    while originals.last_key_value().is_some_and(|(last, _)| *last > after) {
        let read = |after, limit| {
            let records: Vec<u64> =
                originals.range(after + 1..).map(|(record, _)| *record).take(limit).collect();
            async move { stored.studies_at(search_id, file_id, &records, READ_BYTES).await }
        };
        let page = readable(after, originals.len(), |study: &Study| study.record, read).await?;
        for study in page.items {
            let Some(left) = batch.left.checked_sub(bytes(&study.reference)) else { return Ok(false) };
            batch.left = left;
            let original = originals.get(&study.record);
            if let Some(merged) = original.and_then(|original| batch.merged.get_mut(original)) {
                merged.add(study.reference, origin);
            }
        }
        // The page is empty if the other studies were deleted concurrently.
        let Some(last) = page.last else { break };
        after = last;
    }
    Ok(true)
}

/// Returns the size of the texts of a record in bytes.
fn bytes(reference: &Reference) -> usize {
    let lists = [&reference.authors, &reference.keywords, &reference.trial_ids].map(|list| size(list).1);
    let extra = reference.extra.iter().map(|(tag, values)| tag.len() + size(values).1);
    let texts = [
        &reference.r#abstract,
        &reference.journal,
        &reference.volume,
        &reference.issue,
        &reference.pages,
        &reference.pages_normalized,
        &reference.date,
        &reference.doi,
        &reference.accession,
        &reference.url,
        &reference.r#type,
    ];
    let texts = texts.map(|text| text.as_ref().map_or(0, String::len));
    reference.title.len() + lists.into_iter().chain(extra).chain(texts).sum::<usize>()
}

/// Returns the number of entries and of their bytes.
fn size(list: &[String]) -> (usize, usize) {
    (list.len(), list.iter().map(String::len).sum())
}

fn length(text: Option<&str>) -> usize {
    text.map_or(0, |text| text.chars().count())
}

fn is_better_title(title: &str, than: &str) -> bool {
    let is_capitals = |text: &str| !text.chars().any(char::is_lowercase);
    (!is_capitals(title), length(Some(title))) > (!is_capitals(than), length(Some(than)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn list(texts: &[&str]) -> Vec<String> {
        texts.iter().map(ToString::to_string).collect()
    }

    fn merged(first: Reference, others: Vec<(Reference, Origin)>) -> Reference {
        let mut merged = MergedRecord::new(first, Origin::Read);
        for (other, origin) in others {
            merged.add(other, origin);
        }
        merged.into_reference()
    }

    fn kept() -> Reference {
        Reference {
            title: "SLEEP AND HEALTH".to_owned(),
            authors: list(&["Smith J", "Doe B"]),
            year: Some(2019),
            journal: text("J Sleep"),
            volume: text("7"),
            pages: text("12"),
            doi: text("10.5555/a"),
            extra: [("SN".to_owned(), list(&["1234-5678"]))].into(),
            ..Reference::default()
        }
    }

    fn other() -> Reference {
        Reference {
            title: "Sleep and health".to_owned(),
            authors: list(&["Smith, John", "Doe, Bob"]),
            year: Some(2019),
            date: text("2019-05"),
            journal: text("Journal of Sleep"),
            volume: text("8"),
            pages: text("12-9"),
            pages_normalized: text("12-19"),
            doi: text("10.5555/b"),
            pmid: text("30000001"),
            r#abstract: text("Background."),
            keywords: list(&["sleep"]),
            trial_ids: list(&["NCT00000001"]),
            extra: [("SN".to_owned(), list(&["other"])), ("LA".to_owned(), list(&["eng"]))].into(),
            ..Reference::default()
        }
    }

    #[test]
    fn most_complete_values_are_taken() {
        let expected = Reference {
            volume: text("7"),
            doi: text("10.5555/a"),
            extra: [("SN".to_owned(), list(&["1234-5678"])), ("LA".to_owned(), list(&["eng"]))].into(),
            ..other()
        };
        assert_eq!(merged(kept(), vec![(other(), Origin::Read)]), expected);
        assert_eq!(merged(kept(), vec![(other(), Origin::Read), (other(), Origin::Read)]), expected);
        let shorter = Reference {
            r#abstract: text("Short"),
            date: text("2018-05-17"),
            year: Some(2018),
            ..Reference::default()
        };
        assert_eq!(merged(kept(), vec![(other(), Origin::Read), (shorter, Origin::Read)]), expected);
        assert_eq!(merged(kept(), vec![(Reference::default(), Origin::Corrected)]), kept());
    }

    #[test]
    fn corrected_values_take_precedence() {
        let correction = Reference {
            title: "Sleep".to_owned(),
            year: Some(2020),
            doi: text("10.5555/c"),
            ..Reference::default()
        };
        for corrected_first in [false, true] {
            let mut others = vec![(other(), Origin::Read), (correction.clone(), Origin::Corrected)];
            if corrected_first {
                others.reverse();
            }
            let found = merged(kept(), others);
            assert_eq!((found.title.as_str(), found.year, found.date), ("Sleep", Some(2020), None));
            assert_eq!((found.doi, found.pmid), (text("10.5555/c"), text("30000001")));
        }
        let mut own = MergedRecord::new(correction.clone(), Origin::Corrected);
        own.add(other(), Origin::Read);
        let own = own.into_reference();
        assert_eq!((own.title.as_str(), own.year, own.doi), ("Sleep", Some(2020), text("10.5555/c")));
        assert_eq!(own.pmid, text("30000001"));
    }

    #[test]
    fn tags_of_many_duplicates_are_bounded() {
        let tagged = |tag: usize| Reference {
            extra: [(format!("T{tag}"), list(&["x".repeat(5_000).as_str()]))].into(),
            ..Reference::default()
        };
        let found = merged(tagged(0), (1..9).map(|tag| (tagged(tag), Origin::Read)).collect());
        assert_eq!(found.extra.len(), 3);
    }
}
