//! Exports that are created as objects.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use imports::messages::MakeExport;
use imports::{ExportId, ExportKey, ExportLink, FileId, Job, ParseCommand, ProjectId, SearchId};
use messages::StoreError;
use outbox::Key;
use outbox::session::CommitError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use writers::Format;

use crate::exported_studies::ExportOptions;
use crate::tries::MAX_TRIES;
use crate::{Error, ProjectAccess, SearchService, StoredSearch};

/// The maximum number of stored exports of one search. Exports in progress do not count.
const MAX_EXPORTS: usize = 20;
/// The maximum number of exports of one project in progress, waiting or running. Each may occupy a parser for 15
/// minutes, and all projects share the parsers.
pub const MAX_IN_PROGRESS: usize = 4;
/// The kind of the record that lists a project's exports in progress.
const IN_PROGRESS: &str = "exports-under-way";
/// The lifetime of a link. The credentials of the function's role that sign it may expire earlier, but not within
/// minutes.
const LINK_VALID_FOR: Duration = Duration::from_secs(15 * 60);

/// Returns the file name of a downloaded export.
pub fn export_file(format: Format) -> String {
    format!("studies.{}", format.ending())
}

/// The state of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportState {
    /// It can be downloaded.
    Ready(ExportLink),
    /// It was requested and is not ready.
    Awaited,
    /// It was never requested, could not be created, or has expired.
    Unknown,
}

/// Reasons to refuse an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ExportRefusal {
    /// The search has the maximum number of stored exports.
    #[error(
        "the search has {MAX_EXPORTS} exports, which is the maximum; download one of them, or try again when the oldest \
         of them is a day old"
    )]
    TooMany,
    /// The project has the maximum number of exports in progress.
    #[error(
        "{MAX_IN_PROGRESS} exports of this review are being created, which is the maximum; try again when one of them is \
         ready"
    )]
    TooManyUnderWay,
}

/// A requested export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct ExportInProgress {
    search_id: SearchId,
    export_id: ExportId,
}

fn in_progress(project: ProjectId) -> Key {
    Key::new(IN_PROGRESS, project.to_string())
}

fn read_in_progress(project: ProjectId, body: Option<Value>) -> Result<Vec<ExportInProgress>, StoreError> {
    let exports = body.map(|body| Vec::deserialize(&body)).transpose();
    let doing = || format!("reading the exports in progress of project {project}");
    Ok(exports.map_err(|error| StoreError::unusable(doing(), error))?.unwrap_or_default())
}

impl SearchService {
    /// Requests the creation of an export, unless there are too many. The session that sends the command also counts
    /// the export, so concurrent requests cannot exceed the limit.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the export may or may not be created.
    pub async fn make_export(
        &self,
        stored: &StoredSearch,
        wanted: &ExportOptions,
    ) -> Result<Result<ExportId, ExportRefusal>, Error> {
        let (project_id, search) = (stored.job.project_id, stored.job.search_id);
        if self.bucket.find(&ExportKey::folder(project_id, search)).await?.len() >= MAX_EXPORTS {
            return Ok(Err(ExportRefusal::TooMany));
        }
        let files: BTreeSet<FileId> = stored.files.iter().map(|file| file.file_id).collect();
        let sources = self.sources_for(&stored.job, wanted).await?;
        let ExportOptions { format, studies } = *wanted;
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(search);
            let body = session.read(in_progress(project_id)).await?.map(|record| record.body);
            let mut exports = self.still_in_progress(project_id, read_in_progress(project_id, body)?).await?;
            if exports.len() >= MAX_IN_PROGRESS {
                return Ok(Err(ExportRefusal::TooManyUnderWay));
            }
            let export_id = ExportId::from_uuid(self.host().fresh_id());
            exports.push(ExportInProgress { search_id: search, export_id });
            let failed = |error| StoreError::unusable("serializing the exports in progress", error);
            session.write(in_progress(project_id), serde_json::to_value(&exports).map_err(failed)?);
            let (files, sources) = (files.clone(), sources.clone());
            let command = MakeExport { project_id, export_id, files, format, studies, sources };
            session.send(&ParseCommand::MakeExport(command))?;
            match self.commit(session, "requested an export").await {
                // Another export of the project was requested concurrently.
                Err(Error::Commit(error)) if error.is_refused() => {}
                done => return done.map(|()| Ok(export_id)),
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns the exports that are neither ready nor expired.
    async fn still_in_progress(
        &self,
        project: ProjectId,
        exports: Vec<ExportInProgress>,
    ) -> Result<Vec<ExportInProgress>, StoreError> {
        let mut open = Vec::with_capacity(exports.len());
        for export in exports {
            let ExportInProgress { search_id, export_id } = export;
            let beginning = ExportKey::beginning(project, search_id, export_id);
            if export_id.is_awaited(self.host().now()) && self.bucket.find(&beginning).await?.is_empty() {
                open.push(export);
            }
        }
        Ok(open)
    }

    /// Returns the state of an export, or `None` if the search does not exist or the caller cannot access it.
    pub async fn export(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        export: ExportId,
    ) -> Result<Option<ExportState>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
        let project = job.project_id;
        // Only the key of an export contains its format.
        let found = self.bucket.find(&ExportKey::beginning(project, search, export)).await?;
        let keys = Format::ALL.map(|format| ExportKey { project, search, export, format });
        let is_found = |key: &ExportKey| found.iter().any(|object| object.key == key.to_string());
        let link = match keys.into_iter().find(is_found) {
            Some(key) => self.exports.link(&key, &export_file(key.format), LINK_VALID_FOR).await?,
            None => None,
        };
        let otherwise =
            if export.is_awaited(self.host().now()) { ExportState::Awaited } else { ExportState::Unknown };
        Ok(Some(link.map_or(otherwise, ExportState::Ready)))
    }

    /// Returns the database and platform of each file of a search, for the formats that state them.
    pub async fn sources_for(
        &self,
        job: &Job,
        wanted: &ExportOptions,
    ) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        // JSON Lines do not contain them.
        if wanted.format == Format::Jsonl { Ok(BTreeMap::new()) } else { self.labels(job).await }
    }

    /// Returns the source of each file of a search, as it is written with its studies.
    pub async fn labels(&self, job: &Job) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        let known = self.sources(job, &self.repairs(job).await?.repairs).await?;
        Ok(known.into_iter().map(|(file, known)| (file, known.source.into())).collect())
    }
}
