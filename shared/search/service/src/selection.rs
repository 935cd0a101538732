//! The studies that a list or an export selects.

use imports::words::{DamagedPart, END};
use imports::{DamagedRecord, FileRef, ReadStudies, Selection, Study, StudyFilter, Tier, WordQuery};
use messages::StoreError;

/// The minimum number of studies that are read at a time if most of them may be filtered out.
const READ_STUDIES: usize = 500;

/// Selects studies. Lists and exports use the same selection, so that an export contains what a list shows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StudySelection {
    /// Selects by duplicate mark.
    pub which: StudyFilter,
    /// Selects studies that contain words.
    pub text: Option<WordQuery>,
}

impl StudySelection {
    /// Returns `true` if a study is selected.
    pub fn includes(&self, study: &Study) -> bool {
        self.which.marked().is_none_or(|marked| marked == study.is_duplicate())
            && self.text.as_ref().is_none_or(|text| text.matches(&study.reference))
    }
}

/// The start and the maximum size of one read.
#[derive(Debug, Clone, Copy)]
pub struct ReadLimit {
    /// The record after which the read starts.
    pub after: u64,
    /// The number of selected studies that are needed.
    pub limit: usize,
    /// The maximum stored size in bytes: the study that reaches it is the last one.
    pub bytes: usize,
}

/// Reads some of a file's studies that may be selected, in order of their records; an empty list at the end. The caller
/// has to check each with [`StudySelection::includes`].
///
/// If the file is indexed, the read takes about the same time for any number of studies that do not match.
///
/// # Errors
/// Returns an error if the store is unavailable, or one of the first `limit` studies cannot be read.
pub async fn select(
    stored: &dyn ReadStudies,
    file: FileRef,
    selection: &StudySelection,
    limit: ReadLimit,
) -> Result<Vec<Study>, StoreError> {
    match read(stored, file, selection, limit, READ_STUDIES).await {
        Err(error) if DamagedRecord::of(&error).is_some_and(|damaged| damaged.before >= limit.limit) => {
            read(stored, file, selection, limit, 0).await
        }
        read => read,
    }
}

/// Reads at least `least` studies if most of them may be filtered out.
async fn read(
    stored: &dyn ReadStudies,
    file: FileRef,
    selection: &StudySelection,
    ReadLimit { mut after, limit, bytes }: ReadLimit,
    least: usize,
) -> Result<Vec<Study>, StoreError> {
    let FileRef { search_id: search, file_id } = file;
    let is_filtered = selection.text.is_some() || selection.which == StudyFilter::Unique;
    let marked = (selection.which == StudyFilter::Duplicates).then_some(Tier::Likely);
    if let Some(query) = &selection.text {
        let is_exact = query.is_exact() && selection.which == StudyFilter::All;
        let limit = if is_exact { limit } else { limit.max(least) };
        let buckets = query.buckets();
        while let Some(part) = stored.words(search, file_id, after, &buckets).await? {
            let mut records = match query.candidates(&part) {
                Ok(records) => records,
                Err(DamagedPart) => {
                    tracing::error!(%search, file = %file_id, after, "an index of words is damaged and is not used");
                    break;
                }
            };
            records.retain(|record| *record > after);
            records.truncate(limit);
            let studies = match records.is_empty() {
                true => Vec::new(),
                false => stored.studies_at(search, file_id, &records, bytes).await?,
            };
            if !studies.is_empty() || part.last == END {
                return Ok(studies);
            }
            after = part.last;
        }
    }
    // If most studies are filtered out, more have to be read than are requested.
    let limit = if is_filtered { limit.max(least) } else { limit };
    stored.select(search, file_id, Selection { marked, after, limit, bytes }).await
}
