//! Exports that are made as objects of their own.

use std::collections::BTreeMap;
use std::time::Duration;

use imports::messages::MakeExport;
use imports::{ExportId, ExportKey, ExportLink, FileId, Job, ParseCommand, SearchId};
use messages::{SessionId, StoreError};
use writers::Format;

use super::{Caller, Error, StartUpload, Stored};
use crate::exports::Wanted;

/// How many exports of one search there may be at a time. Those that are being made do not count yet.
const MOST_EXPORTS: usize = 20;
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

impl StartUpload {
    /// Has an export made of what is stored of a search; none if there are too many.
    ///
    /// # Errors
    /// When a store or queue did not answer; it may be made or not.
    pub async fn make_export(&self, stored: &Stored, wanted: &Wanted) -> Result<Option<ExportId>, Error> {
        let (project_id, search) = (stored.job.project_id, stored.job.search_id);
        if self.bucket.find(&ExportKey::folder(project_id, search)).await?.len() >= MOST_EXPORTS {
            return Ok(None);
        }
        let export_id = ExportId::from_uuid(self.host().fresh_id());
        let files = stored.files.iter().map(|file| file.file_id).collect();
        let sources = self.sources_for(&stored.job, wanted).await?;
        let Wanted { format, studies } = *wanted;
        let command = MakeExport { project_id, export_id, files, format, studies, sources };
        let mut session = self.entry.session(SessionId::from_uuid(self.host().fresh_id()), search);
        session.send(&ParseCommand::MakeExport(command))?;
        self.commit(session, "has an export made").await?;
        Ok(Some(export_id))
    }

    /// What there is of an export; none when there is no such search, or it is not the caller's.
    ///
    /// # Errors
    /// When a store does not answer.
    pub async fn export(
        &self,
        caller: &Caller,
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

    /// Where the files of a search come from, for formats that say it.
    pub(super) async fn sources_for(
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
