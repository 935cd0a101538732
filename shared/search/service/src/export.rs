//! Exports that are made as objects of their own.

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

use crate::exported_studies::Wanted;
use crate::{Error, ProjectAccess, SearchService, Stored, repair};

/// The maximum number of exports of one search that are kept at a time. Those that are under way do not count yet.
const MOST_EXPORTS: usize = 20;
/// The maximum number of exports of one project that are under way at a time, waiting or being made. Each may occupy a
/// parser for 15 minutes, and parsers are shared by all projects.
pub const MAX_UNDER_WAY: usize = 4;
/// The kind of the record that has the exports under way of a project.
const UNDER_WAY: &str = "exports-under-way";
/// How long a link is good for. Credentials of a function's role that sign it may end sooner, but not within minutes.
const LINK_VALID_FOR: Duration = Duration::from_secs(15 * 60);

/// How an export is called where it is downloaded.
pub fn export_file(format: Format) -> String {
    format!("studies.{}", format.ending())
}

/// What there is of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exported {
    /// It can be had.
    Ready(ExportLink),
    /// It was asked for, and is not there yet.
    Awaited,
    /// Nobody has asked for it, it could not be made, or it is gone.
    Unknown,
}

/// Why an export is not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotMade {
    /// The search has as many as it may.
    #[error(
        "the search has {MOST_EXPORTS} exports, as many as are kept at a time; download one of them, or ask again when the \
         first of them is a day old"
    )]
    TooMany,
    /// The project has as many under way as it may.
    #[error(
        "{MAX_UNDER_WAY} exports of this review are being made, as many as are made at a time; ask again when one of them is \
         ready"
    )]
    TooManyUnderWay,
}

/// An export that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWay {
    search_id: SearchId,
    export_id: ExportId,
}

fn under_way(project: ProjectId) -> Key {
    Key::new(UNDER_WAY, project.to_string())
}

fn read_under_way(project: ProjectId, body: Option<Value>) -> Result<Vec<UnderWay>, StoreError> {
    let exports = body.map(|body| Vec::deserialize(&body)).transpose();
    let doing = || format!("reading the exports under way of project {project}");
    Ok(exports.map_err(|error| StoreError::unusable(doing(), error))?.unwrap_or_default())
}

impl SearchService {
    /// Has an export made of what is stored of a search, unless there are too many. It is counted in the session that has
    /// it made, so of two requests at once neither is left out.
    ///
    /// # Errors
    /// When a store or queue did not answer; it may be made or not.
    pub async fn make_export(
        &self,
        stored: &Stored,
        wanted: &Wanted,
    ) -> Result<Result<ExportId, NotMade>, Error> {
        let (project_id, search) = (stored.job.project_id, stored.job.search_id);
        if self.bucket.find(&ExportKey::folder(project_id, search)).await?.len() >= MOST_EXPORTS {
            return Ok(Err(NotMade::TooMany));
        }
        let files: BTreeSet<FileId> = stored.files.iter().map(|file| file.file_id).collect();
        let sources = self.sources_for(&stored.job, wanted).await?;
        let Wanted { format, studies } = *wanted;
        for _ in 0..repair::TRIES {
            let mut session = self.entry.session(search);
            let body = session.read(under_way(project_id)).await?.map(|record| record.body);
            let mut exports = self.still_under_way(project_id, read_under_way(project_id, body)?).await?;
            if exports.len() >= MAX_UNDER_WAY {
                return Ok(Err(NotMade::TooManyUnderWay));
            }
            let export_id = ExportId::from_uuid(self.host().fresh_id());
            exports.push(UnderWay { search_id: search, export_id });
            let failed = |error| StoreError::unusable("writing down that an export is under way", error);
            session.write(under_way(project_id), serde_json::to_value(&exports).map_err(failed)?);
            let (files, sources) = (files.clone(), sources.clone());
            let command = MakeExport { project_id, export_id, files, format, studies, sources };
            session.send(&ParseCommand::MakeExport(command))?;
            match self.commit(session, "has an export made").await {
                // Another export of the project was asked for at the same time.
                Err(Error::Commit(error)) if error.is_refused() => {}
                done => return done.map(|()| Ok(export_id)),
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Those that are neither ready nor so old that nothing waits for them.
    async fn still_under_way(
        &self,
        project: ProjectId,
        exports: Vec<UnderWay>,
    ) -> Result<Vec<UnderWay>, StoreError> {
        let mut open = Vec::with_capacity(exports.len());
        for export in exports {
            let UnderWay { search_id, export_id } = export;
            let beginning = ExportKey::beginning(project, search_id, export_id);
            if export_id.is_awaited(self.host().now()) && self.bucket.find(&beginning).await?.is_empty() {
                open.push(export);
            }
        }
        Ok(open)
    }

    /// What there is of an export; none when there is no such search, or it is not the caller's.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn export(
        &self,
        caller: &ProjectAccess,
        search: SearchId,
        export: ExportId,
    ) -> Result<Option<Exported>, StoreError> {
        let Some(job) = self.find(caller, search).await? else { return Ok(None) };
        let project = job.project_id;
        // Its key alone says what it is written in.
        let found = self.bucket.find(&ExportKey::beginning(project, search, export)).await?;
        let keys = Format::ALL.map(|format| ExportKey { project, search, export, format });
        let is_found = |key: &ExportKey| found.iter().any(|object| object.key == key.to_string());
        let link = match keys.into_iter().find(is_found) {
            Some(key) => self.exports.link(&key, &export_file(key.format), LINK_VALID_FOR).await?,
            None => None,
        };
        let otherwise =
            if export.is_awaited(self.host().now()) { Exported::Awaited } else { Exported::Unknown };
        Ok(Some(link.map_or(otherwise, Exported::Ready)))
    }

    /// Returns the database and platform of each file of a search, for the formats that state them.
    ///
    /// # Errors
    /// If a store is unavailable.
    pub async fn sources_for(
        &self,
        job: &Job,
        wanted: &Wanted,
    ) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        // The lines of this API do not.
        if wanted.format == Format::Jsonl { Ok(BTreeMap::new()) } else { self.labels(job).await }
    }

    /// Where the files of a search come from, as it is written beside their studies.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn labels(&self, job: &Job) -> Result<BTreeMap<FileId, writers::Source>, StoreError> {
        let known = self.sources(job, &self.repairs(job).await?.repairs).await?;
        Ok(known.into_iter().map(|(file, known)| (file, known.source.into())).collect())
    }
}
