//! Changing the sources of all files of a review.

use imports::{Job, ProjectId};
use jiff::civil::Date;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{NewSource, NewSources, Source, SourceFault, SourcesOutcome};
use crate::{Error, ProjectAccess, SearchService};

/// A change of the sources of all files of a review.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReviewSources {
    /// Replaces one source by another in all files.
    #[serde(default)]
    pub replace: Option<SourceReplacement>,
    /// Sets the date of the search of all files.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Date)]
    pub searched_on: Option<Date>,
}

/// The replacement of a source by another one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SourceReplacement {
    /// The source to replace, as the PRISMA report names it.
    pub from: Source,
    /// The new source. If all its fields are missing, the sources of the files are guessed again.
    pub to: Source,
}

impl ReviewSources {
    fn fault(&self) -> Option<SourceFault> {
        self.replace.as_ref().and_then(|replace| replace.to.fault())
    }

    /// Returns the new source of a file, or `None` if it does not change.
    fn applied(&self, current: &Source, is_guessed: bool) -> Option<Option<Source>> {
        let replaced =
            self.replace.as_ref().filter(|replace| replace.from == *current).map(|replace| &replace.to);
        let to = match (replaced, self.searched_on) {
            (None, None) => return None,
            (Some(to), None) => to.clone(),
            (Some(to), Some(date)) => Source { searched_on: Some(date), ..to.clone() },
            (None, date) if current.searched_on == date => return None,
            // A date alone keeps the guessed database and platform.
            (None, date) if is_guessed => Source { searched_on: date, ..Source::default() },
            (None, date) => Source { searched_on: date, ..current.clone() },
        };
        Some(Some(to).filter(|to| *to != Source::default()))
    }
}

impl SearchService {
    /// Changes the sources of all files of a review, and returns the number of changed files.
    ///
    /// Each import changes on its own; a request that was interrupted can be repeated. Nothing changes if the review
    /// has too many imports.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; some imports may be changed.
    pub async fn change_sources(
        &self,
        project: ProjectId,
        new: &ReviewSources,
        by: &str,
    ) -> Result<Result<usize, SourceFault>, Error> {
        if let Some(fault) = new.fault() {
            return Ok(Err(fault));
        }
        let replace = new.replace.clone().map(|SourceReplacement { from, to }| SourceReplacement {
            from: from.with_usual_names(),
            to: to.with_usual_names(),
        });
        let new = ReviewSources { replace, ..new.clone() };
        let caller = ProjectAccess::to(project);
        let jobs = match self.jobs_of_review(project).await? {
            Ok(jobs) => jobs,
            Err(too_many) => return Ok(Err(too_many.into())),
        };
        let mut changed = 0;
        for job in &jobs {
            let files = self.changed_sources(job, &new).await?;
            let count = files.len();
            if count == 0 {
                continue;
            }
            match self.set_sources(&caller, job.search_id, &NewSources { files }, by).await? {
                SourcesOutcome::Accepted => changed += count,
                SourcesOutcome::Refused(fault) => return Ok(Err(fault)),
                // The import was deleted concurrently.
                SourcesOutcome::Unknown => {}
            }
        }
        Ok(Ok(changed))
    }

    async fn changed_sources(&self, job: &Job, new: &ReviewSources) -> Result<Vec<NewSource>, Error> {
        let known = self.sources(job, &self.repairs(job).await?.repairs).await?;
        let files = job.files.iter().filter_map(|file| {
            let known = known.get(&file.file_id).cloned().unwrap_or_default();
            let source = new.applied(&known.source, !known.is_given)?;
            Some(NewSource { file_id: file.file_id, source })
        });
        Ok(files.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(database: &str, date: Option<&str>) -> Source {
        let searched_on = date.and_then(|date| date.parse().ok());
        Source { database: Some(database.to_owned()), platform: None, searched_on }
    }

    #[test]
    fn date_alone_keeps_the_guessed_source() {
        let new = ReviewSources { searched_on: "2026-05-17".parse().ok(), ..ReviewSources::default() };
        let date = Source { searched_on: new.searched_on, ..Source::default() };
        assert_eq!(new.applied(&source("Embase", None), true), Some(Some(date)));
        let dated = source("Embase", Some("2026-05-17"));
        assert_eq!(new.applied(&source("Embase", None), false), Some(Some(dated.clone())));
        assert_eq!(new.applied(&dated, false), None);
    }

    #[test]
    fn replacement_applies_to_equal_sources_only() {
        let (from, to) = (source("A", None), source("B", None));
        let new = ReviewSources {
            replace: Some(SourceReplacement { from: from.clone(), to: to.clone() }),
            searched_on: None,
        };
        assert_eq!(new.applied(&from, true), Some(Some(to)));
        assert_eq!(new.applied(&source("A", Some("2026-05-17")), false), None);
        let forget = ReviewSources {
            replace: Some(SourceReplacement { from: from.clone(), to: Source::default() }),
            searched_on: None,
        };
        assert_eq!(forget.applied(&from, false), Some(None));
    }
}
