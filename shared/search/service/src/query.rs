//! Queries of searches and their results.

use imports::{
    DuplicateCounts, FileId, Job, JobState, Outcome, ParsedFile, Progress, ProjectId, SearchId, Study,
};
use jiff::{SignedDuration, Span, SpanRelativeTo};
use messages::{DecisionRecord, RecordedVerdict, StoreError};
use outbox::{Cursor, Page};
use saga::history::Place;

use crate::{ProjectAccess, SearchService};

/// A text to search for, ignoring case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text(String);

impl Text {
    /// The maximum length, in characters.
    pub const MAX_CHARS: usize = 255;

    /// Returns `None` if the text is empty or too long.
    pub fn new(text: &str) -> Option<Self> {
        (1..=Self::MAX_CHARS).contains(&text.chars().count()).then(|| Self(text.to_lowercase()))
    }

    /// Returns the text in lower case.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns `true` if `text` contains the query.
    pub fn is_in(&self, text: &str) -> bool {
        text.to_lowercase().contains(&self.0)
    }
}

/// Parses a duration such as `2h`, `90 min` or `1d 12h`; a plain number means seconds.
pub fn age(text: &str) -> Option<SignedDuration> {
    let seconds = text.parse::<u32>().ok().map(|seconds| SignedDuration::from_secs(seconds.into()));
    let length = || {
        let span: Span = text.parse().ok()?;
        span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()
    };
    seconds.or_else(length).filter(|age| !age.is_negative())
}

/// A filter of searches.
#[derive(Debug, Clone, Default)]
pub struct SearchFilter {
    /// Selects searches in one of these states; all if it is empty.
    pub states: Vec<JobState>,
    /// Selects searches whose name contains this text.
    pub text: Option<Text>,
}

impl SearchFilter {
    fn has(&self, job: &Job) -> bool {
        let name = job.name.as_deref().unwrap_or_default();
        (self.states.is_empty() || self.states.contains(&job.state))
            && self.text.as_ref().is_none_or(|text| text.is_in(name))
    }
}

/// A search and its completed files.
#[derive(Debug, Clone)]
pub struct StoredSearch {
    /// The search.
    pub job: Job,
    /// The files that were read completely, in their order. The records of other files may still be deleted.
    pub files: Vec<ParsedFile>,
}

impl StoredSearch {
    /// Returns the file at a position, and its encoding.
    pub fn file(&self, position: u32) -> Option<(&ParsedFile, &str)> {
        let file = self.files.iter().find(|file| file.position == position)?;
        let job_file = self.job.files.iter().find(|known| known.file_id == file.file_id)?;
        match job_file.outcome.as_ref()? {
            Outcome::Completed(counts) => Some((file, &counts.encoding)),
            Outcome::Failed { .. } => None,
        }
    }
}

impl SearchService {
    /// Returns a search if it belongs to a project that the caller can access. Every request about one search begins
    /// here.
    pub async fn find(&self, caller: &ProjectAccess, search: SearchId) -> Result<Option<Job>, StoreError> {
        Ok(self.jobs.job(search).await?.filter(|job| caller.can_access(job.project_id)))
    }

    /// Returns a search and the progress of its files, or `None` if it does not exist or the caller cannot access it.
    pub async fn status(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
    ) -> Result<Option<(Job, Vec<(FileId, Progress)>)>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
        Ok(Some((job, self.jobs.progress(search).await?)))
    }

    /// Lists the matching searches of a project, newest first. A page may be short or empty even if more pages
    /// follow: see [`imports::Jobs::matching`].
    pub async fn list(
        &self,
        project: ProjectId,
        wanted: &SearchFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<Job>, StoreError> {
        self.jobs.matching(project, after, limit, |job| wanted.has(job)).await
    }

    /// Returns a search and its completed files, or `None` if it does not exist or the caller cannot access it.
    pub async fn stored(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
    ) -> Result<Option<StoredSearch>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
        let is_read = |file: &ParsedFile| {
            let file = job.files.iter().find(|known| known.file_id == file.file_id);
            file.is_some_and(|file| matches!(file.outcome, Some(Outcome::Completed(_))))
        };
        let mut files = self.studies.parsed(search).await?;
        files.retain(is_read);
        Ok(Some(StoredSearch { job, files }))
    }

    /// Returns up to `limit` decisions about the messages of a search after a cursor, in order. Returns `None` if the
    /// search does not exist or the caller cannot access it.
    pub async fn history(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Option<Vec<(Place, DecisionRecord<RecordedVerdict>)>>, StoreError> {
        if self.find(caller, search).await?.is_none() {
            return Ok(None);
        }
        let Some(history) = &self.history else { return Ok(Some(Vec::new())) };
        Ok(Some(history.history(Some(search), after, limit).await?))
    }

    /// Returns one study of a file, or `None` if the record does not exist or could not be read.
    pub async fn study(
        &self,
        search: SearchId,
        file: FileId,
        record: u64,
    ) -> Result<Option<Study>, StoreError> {
        let Some(before) = record.checked_sub(1) else { return Ok(None) };
        let found = self.studies.studies(search, file, before, 1).await?.pop();
        Ok(found.filter(|study| study.record == record))
    }

    /// Counts the marked studies of each completed file.
    pub async fn marked(&self, job: &Job) -> Result<Vec<(FileId, DuplicateCounts)>, StoreError> {
        let mut marked = Vec::new();
        for file in &job.files {
            if matches!(file.outcome, Some(Outcome::Completed(_))) {
                marked.push((file.file_id, self.studies.marked(job.search_id, file.file_id).await?));
            }
        }
        Ok(marked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_parses_seconds_and_units() {
        let hours = |hours| Some(SignedDuration::from_hours(hours));
        assert_eq!(["7200", "2h", "2 hours", "120 min", "PT2H"].map(age), [hours(2); 5]);
        assert_eq!(["1d 12h", "1w"].map(age), [hours(36), hours(7 * 24)]);
        for wrong in ["", "2x", "-1h", "-5", "1 month", "99999999999", "999999999999h"] {
            assert_eq!(age(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn text_search_ignores_case() {
        let text = Text::new("ÄRZTE").unwrap();
        assert!(text.is_in("Junge Ärzte") && !text.is_in("Arzte"));
        assert!(Text::new("").is_none());
        assert!(Text::new(&"ä".repeat(255)).is_some() && Text::new(&"a".repeat(256)).is_none());
    }
}
