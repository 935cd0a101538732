//! Exports that are made as objects of their own.

use std::time::Duration;

use imports::messages::MakeExport;
use imports::{ExportId, ExportKey, ExportLink, ParseCommand, SearchId};
use messages::{SessionId, StoreError};

use super::{Caller, Error, StartUpload, Stored};

/// How an export is called where it is downloaded.
pub const EXPORT_FILE: &str = "studies.jsonl";
/// How many exports of one search there may be at a time. Those that are being made do not count yet.
const MOST_EXPORTS: usize = 20;
/// How long a link is good for. Credentials of a function's role that sign it may end sooner, but not within minutes.
const LINK_VALID_FOR: Duration = Duration::from_secs(15 * 60);

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
    pub async fn make_export(&self, stored: &Stored) -> Result<Option<ExportId>, Error> {
        let (project_id, search) = (stored.job.project_id, stored.job.search_id);
        if self.bucket.find(&ExportKey::folder(project_id, search)).await?.len() >= MOST_EXPORTS {
            return Ok(None);
        }
        let export_id = ExportId::from_uuid(self.host().fresh_id());
        let files = stored.files.iter().map(|file| file.file_id).collect();
        let mut session = self.entry.session(SessionId::from_uuid(self.host().fresh_id()), search);
        session.send(&ParseCommand::MakeExport(MakeExport { project_id, export_id, files }))?;
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
        let key = ExportKey { project: job.project_id, search, export };
        let link = self.exports.link(&key, EXPORT_FILE, LINK_VALID_FOR).await?;
        let otherwise =
            if export.is_awaited(self.host().now()) { Exported::Awaited } else { Exported::Unknown };
        Ok(Some(link.map_or(otherwise, Exported::Ready)))
    }
}
