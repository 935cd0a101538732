//! Where the records of files come from: database, platform and date of search, as somebody has said it or as the file shows
//! it; and what a review reports of them.
//!
//! What somebody has said is one record for each search ([`SOURCES`]), apart from the saga: no message depends on it, and it may
//! be said long after the search has ended. What nobody has said is guessed from the first study of the file, each time.

mod guess;
mod methods_statement;
mod prisma;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use imports::manifest::MAX_NAME_CHARS;
use imports::{FileId, Job, Outcome, SearchId, Study, readable};
use jiff::civil::Date;
use messages::StoreError;
use outbox::Key;
use outbox::session::CommitError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Error, FileOf, ProjectAccess, Repairs, SearchService, repair};
use guess::guess;

pub use methods_statement::Drawing;
pub use prisma::{Flow, FlowError, Line, Sums};

/// The kind of the records. Their ids are those of searches.
pub const SOURCES: &str = "sources";

/// Where the records of a file come from.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The database or register that was searched, such as `MEDLINE`, up to 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// What it was searched through, such as `Ovid`, up to 255 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub searched_on: Option<Date>,
}

/// The source of a file, and whether somebody has said it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// What is known of it.
    pub source: Source,
    /// Whether that was said, and not guessed.
    pub is_given: bool,
}

/// The sources of some files of a search.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSources {
    /// The files; of one that is named twice the last counts.
    pub files: Vec<NewSource>,
}

/// The source of a file, as somebody says it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewSource {
    /// The file of the search.
    #[schema(value_type = Uuid)]
    pub file_id: FileId,
    /// Where its records come from; null takes back what was said.
    pub source: Option<Source>,
}

/// What became of a request to say where files come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is written down.
    Accepted,
    /// Nothing is changed.
    Refused(SourceFault),
    /// There is no such search, or it is not the caller's.
    Unknown,
}

/// Why a source is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SourceFault {
    /// No such file.
    #[error("the search has no file {0}")]
    NoSuchFile(FileId),
    /// Nothing in it, or too much.
    #[error("the {0} is 1 to {MAX_NAME_CHARS} characters, without control characters")]
    Text(&'static str),
}

impl Source {
    /// What is wrong with it.
    pub fn fault(&self) -> Option<SourceFault> {
        let is_name = |text: &String| {
            !text.trim().is_empty()
                && text.chars().count() <= MAX_NAME_CHARS
                && !text.chars().any(char::is_control)
        };
        let texts = [("database", &self.database), ("platform", &self.platform)];
        let wrong = texts.into_iter().find(|(_, text)| text.as_ref().is_some_and(|text| !is_name(text)));
        wrong.map(|(what, _)| SourceFault::Text(what))
    }
}

impl From<Source> for writers::Source {
    fn from(Source { database, platform, searched_on }: Source) -> Self {
        Self { database, platform, searched_on: searched_on.map(|date| date.to_string()) }
    }
}

/// What was said about the files of a search.
type Given = BTreeMap<FileId, Source>;

/// The record of a search.
pub(super) fn key(search: SearchId) -> Key {
    Key::new(SOURCES, search.to_string())
}

fn read(search: SearchId, body: Option<Value>) -> Result<Given, StoreError> {
    let given = body.map(|body| Given::deserialize(&body)).transpose();
    let unusable = |error| StoreError::unusable(format!("reading the sources of search {search}"), error);
    Ok(given.map_err(unusable)?.unwrap_or_default())
}

impl SearchService {
    /// Writes down where the records of some files come from; of others nothing changes. Repeating it changes nothing.
    ///
    /// # Errors
    /// When a store did not answer; it may be written down or not.
    pub async fn say_sources(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        new: &NewSources,
    ) -> Result<Said, Error> {
        let Some(job) = self.find(caller, search).await? else { return Ok(Said::Unknown) };
        let is_there = |id| job.files.iter().any(|file| file.file_id == id);
        let stranger = new.files.iter().find(|file| !is_there(file.file_id));
        let fault = stranger.map(|file| SourceFault::NoSuchFile(file.file_id));
        let mut said = new.files.iter().filter_map(|file| file.source.as_ref());
        if let Some(fault) = fault.or_else(|| said.find_map(Source::fault)) {
            return Ok(Said::Refused(fault));
        }
        for _ in 0..repair::TRIES {
            let mut session = self.entry.session(search);
            let body = session.read(key(search)).await?.map(|record| record.body);
            let mut given = read(search, body)?;
            for NewSource { file_id, source } in &new.files {
                match source {
                    Some(source) => given.insert(*file_id, source.clone()),
                    None => given.remove(file_id),
                };
            }
            let failed = |error| StoreError::unusable("writing sources down", error);
            session.write(key(search), serde_json::to_value(&given).map_err(failed)?);
            match self.commit(session, "noted where files come from").await {
                // Somebody says something of the same search at the same time.
                Err(Error::Commit(error)) if error.is_refused() => {}
                done => return done.map(|()| Said::Accepted),
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Where the files of a search come from, those that were read or of which somebody has said it. What is said of a file
    /// is said of those that repair it, too.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn sources(&self, job: &Job, repairs: &Repairs) -> Result<BTreeMap<FileId, Known>, StoreError> {
        let mut given = BTreeMap::from([(job.search_id, self.given(job.search_id).await?)]);
        let mut sources = BTreeMap::new();
        for file in &job.files {
            let this = FileOf { search_id: job.search_id, file_id: file.file_id };
            let mut said = None;
            for FileOf { search_id, file_id } in repairs.origins(this) {
                if let Entry::Vacant(vacant) = given.entry(search_id) {
                    vacant.insert(self.given(search_id).await?);
                }
                said = said.or_else(|| given.get(&search_id)?.get(&file_id).cloned());
            }
            let is_given =
                said.as_ref().is_some_and(|said| said.database.is_some() || said.platform.is_some());
            // Who says the date alone does not deny what the file shows of the rest.
            if let (false, Some(Outcome::Completed(counts))) = (is_given, &file.outcome) {
                let read = |after, limit| self.studies.studies(job.search_id, file.file_id, after, limit);
                // A damaged first record must not hide the sources of all other files.
                let first = readable(0, 1, |study: &Study| study.record, read).await?.items.pop();
                let shows = guess(&counts.format, first.as_ref().map(|study| &study.reference));
                let searched_on = said.and_then(|said| said.searched_on).or(shows.searched_on);
                let source = Source { searched_on, ..shows };
                sources.insert(file.file_id, Known { source, is_given: false });
            } else if let Some(source) = said {
                sources.insert(file.file_id, Known { source, is_given: true });
            }
        }
        Ok(sources)
    }

    async fn given(&self, search: SearchId) -> Result<Given, StoreError> {
        let record = self.entry.sessions.records.record(&key(search)).await?;
        read(search, record.map(|record| record.body))
    }

    /// What a review reports of the searches of a project: what was found where, and what is left of it.
    ///
    /// # Errors
    /// When a store does not answer, or the project has more searches than are added up.
    pub async fn flow(&self, project: imports::ProjectId) -> Result<Flow, FlowError> {
        prisma::flow(self, project).await
    }
}
