//! Sources of files (database, platform and date of search), set by a reviewer or guessed from the file, and the
//! PRISMA report.
//!
//! The sources that reviewers set are one record for each search ([`SOURCES`]), separate from the saga: no message
//! depends on them, and they may be set long after the search has ended. Other sources are guessed from the first
//! studies of the file, on each request.

mod guess;
mod methods_statement;
mod prisma;
mod review;
mod vocabulary;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use futures::future::try_join_all;
use imports::manifest::MAX_NAME_CHARS;
use imports::{FileId, FileRef, Job, Outcome, SearchId, Study, readable};
use jiff::civil::Date;
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, Record};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Error, ProjectAccess, Repairs, SearchService, TooManyImports};
use crate::activity::{self, Action, Activity};
use crate::content;
use crate::tries::MAX_TRIES;
use guess::{PLACES, SAMPLE, guess};

pub use methods_statement::Drawing;
pub use prisma::{Flow, FlowError, Line, Sums};
pub use review::{ReviewSources, SourceReplacement};
pub(crate) use vocabulary::usual_database;
pub use vocabulary::{KNOWN, Method, VocabularyEntry, platforms};

/// The kind of the records. A record of sources has the id of its search.
pub const SOURCES: &str = "sources";

/// The source of a file's records.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The database or register that was searched, such as `MEDLINE`, up to 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The platform through which it was searched, such as `Ovid`, up to 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub searched_on: Option<Date>,
}

/// The source of a file and whether it was set by a reviewer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownSource {
    /// The source.
    pub source: Source,
    /// `true` if the source was set by a reviewer, `false` if it was guessed.
    pub is_given: bool,
}

/// The sources of some files of an import.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSources {
    /// The files; if a file is named twice, the last entry counts.
    pub files: Vec<NewSource>,
}

/// The source of a file, as set by a reviewer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// The file of the import.
    #[schema(value_type = Uuid)]
    pub file_id: FileId,
    /// The source; null removes the one that was set.
    pub source: Option<Source>,
}

/// The outcome of a request to set sources.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcesOutcome {
    /// The sources are stored.
    Accepted,
    /// Nothing is changed.
    Refused(SourceFault),
    /// The search does not exist, or the caller cannot access it.
    Unknown,
}

/// Reasons to refuse a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// The search has no such file.
    #[error("the import has no file {0}")]
    NoSuchFile(FileId),
    /// A name is empty, too long or invalid.
    #[error("the {0} is 1 to {MAX_NAME_CHARS} characters, without control characters")]
    Text(&'static str),
    /// The review has more imports than one request changes.
    #[error(transparent)]
    TooManyImports(#[from] TooManyImports),
}

impl Source {
    /// Returns the source with the parts of another one that it lacks.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            database: self.database.or_else(|| other.database.clone()),
            platform: self.platform.or_else(|| other.platform.clone()),
            searched_on: self.searched_on.or(other.searched_on),
        }
    }

    /// Returns the first problem of the source, if any.
    pub fn fault(&self) -> Option<SourceFault> {
        let texts = [("database", &self.database), ("platform", &self.platform)];
        let wrong = texts.into_iter().find(|(_, text)| text.as_ref().is_some_and(|text| !is_name(text)));
        wrong.map(|(what, _)| SourceFault::Text(what))
    }

    /// Returns the source with the usual spelling of its names.
    #[must_use]
    pub fn with_usual_names(self) -> Self {
        let database = self.database.as_deref().map(vocabulary::usual_database);
        let platform = self.platform.as_deref().map(vocabulary::usual_platform);
        Self { database, platform, ..self }
    }

    /// Returns how its records were identified. Unknown sources count as databases.
    pub fn method(&self) -> Method {
        let known = self.database.as_deref().and_then(vocabulary::find);
        known.map_or(Method::Database, |known| known.method)
    }
}

/// Returns `true` for a name of a database or platform that is not too long and has no control characters. Every record
/// of an export repeats such names.
fn is_name(text: &str) -> bool {
    !text.trim().is_empty() && text.chars().count() <= MAX_NAME_CHARS && !text.chars().any(char::is_control)
}

impl From<Source> for writers::Source {
    fn from(Source { database, platform, searched_on }: Source) -> Self {
        Self { database, platform, searched_on: searched_on.map(|date| date.to_string()) }
    }
}

/// The sources that reviewers have set for the files of a search.
type GivenSources = BTreeMap<FileId, Source>;

/// Returns the key of the record of a search.
pub(super) fn key(search: SearchId) -> Key {
    Key::new(SOURCES, search.to_string())
}

fn read(search: SearchId, record: Option<Record>) -> Result<GivenSources, StoreError> {
    let given: GivenSources =
        content::or_default(record, || format!("reading the sources of search {search}"))?;
    // Earlier versions stored names as they were entered.
    Ok(given.into_iter().map(|(file, source)| (file, source.with_usual_names())).collect())
}

impl SearchService {
    /// Sets the sources of some files; other files are not changed. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the sources may or may not be stored.
    pub async fn set_sources(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        new: &NewSources,
        by: &str,
    ) -> Result<SourcesOutcome, Error> {
        let Some(job) = self.find(caller, search).await? else { return Ok(SourcesOutcome::Unknown) };
        let is_there = |id| job.files.iter().any(|file| file.file_id == id);
        let stranger = new.files.iter().find(|file| !is_there(file.file_id));
        let fault = stranger.map(|file| SourceFault::NoSuchFile(file.file_id));
        let mut sources = new.files.iter().filter_map(|file| file.source.as_ref());
        if let Some(fault) = fault.or_else(|| sources.find_map(Source::fault)) {
            return Ok(SourcesOutcome::Refused(fault));
        }
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(search);
            let mut given = read(search, session.read(key(search)).await?)?;
            for NewSource { file_id, source } in &new.files {
                match source {
                    Some(source) => given.insert(*file_id, source.clone().with_usual_names()),
                    None => given.remove(file_id),
                };
            }
            session.write(key(search), content::of(&given, "serializing sources")?);
            let action = Action::SetSources { search_id: search, files: new.files.len() as u64 };
            let entry = Activity { at: self.host().now(), by: by.to_owned(), action };
            activity::append(&mut session, job.project_id, entry).await?;
            if self.committed(session, "stored the sources of files").await? {
                return Ok(SourcesOutcome::Accepted);
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns the sources of the files of a search that were read or whose source was set. A file's source also
    /// applies to the files that repair it.
    pub async fn sources(
        &self,
        job: &Job,
        repairs: &Repairs,
    ) -> Result<BTreeMap<FileId, KnownSource>, StoreError> {
        let mut given = BTreeMap::from([(job.search_id, self.given(job.search_id).await?)]);
        let mut sources = BTreeMap::new();
        for file in &job.files {
            let this = FileRef::new(job.search_id, file.file_id);
            let mut given_source = None;
            for FileRef { search_id, file_id } in repairs.origins(this) {
                if let Entry::Vacant(vacant) = given.entry(search_id) {
                    vacant.insert(self.given(search_id).await?);
                }
                given_source = given_source.or_else(|| given.get(&search_id)?.get(&file_id).cloned());
            }
            let is_given = given_source.as_ref().is_some_and(|given_source| {
                given_source.database.is_some() || given_source.platform.is_some()
            });
            // Setting only the date keeps the guessed database and platform.
            if let (false, Some(Outcome::Completed(counts))) = (is_given, &file.outcome) {
                let read = |after, limit| self.studies.studies(job.search_id, file.file_id, after, limit);
                // A damaged first record must not hide the sources of all other files.
                let number = |study: &Study| study.record;
                let first = readable(0, 1, number, read).await?.items.pop();
                let found = guess(&counts.format, first.as_ref().map(|study| &study.reference));
                let shows = match first.filter(|_| found.needs_others) {
                    None => found.source,
                    Some(first) => {
                        let places =
                            (0..PLACES).map(|place| first.record.max(counts.records * place / PLACES));
                        let pages = places.map(|after| readable(after, SAMPLE, number, read));
                        let pages = try_join_all(pages).await?.into_iter().flat_map(|page| page.items);
                        // The places of a small file overlap.
                        let others: BTreeMap<u64, Study> = pages.map(|study| (study.record, study)).collect();
                        found.confirmed(&counts.format, others.values().map(|study| &study.reference))
                    }
                };
                let searched_on =
                    given_source.and_then(|given_source| given_source.searched_on).or(shows.searched_on);
                let source = Source { searched_on, ..shows };
                sources.insert(file.file_id, KnownSource { source, is_given: false });
            } else if let Some(source) = given_source {
                sources.insert(file.file_id, KnownSource { source, is_given: true });
            }
        }
        Ok(sources)
    }

    async fn given(&self, search: SearchId) -> Result<GivenSources, StoreError> {
        let record = self.entry.sessions.records.record(&key(search)).await?;
        read(search, record)
    }

    /// Returns the PRISMA 2020 counts of a project.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or the project has too many searches.
    pub async fn flow(&self, project: imports::ProjectId) -> Result<Flow, FlowError> {
        prisma::flow(self, project).await
    }
}
