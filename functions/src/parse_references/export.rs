//! Making an export of a search's studies, for whoever cannot be sent all of them in one answer.

use std::sync::Arc;

use dedup::{Done, HandlerError};
use futures::stream::{StreamExt, TryStreamExt};
use imports::messages::MakeExport;
use imports::{ExportKey, ParsedFile, SearchId};
use messages::StoreError;

use super::ParseReferences;
use super::file::Time;
use service::exported_studies::{Export, Wanted};

/// Why an export broke off.
#[derive(Debug, thiserror::Error)]
#[error("the time is over")]
struct TimeIsOver;

impl ParseReferences {
    /// Stores the studies of these files as one object. It may be done any number of times: another one takes its place.
    pub(super) async fn export(
        &self,
        search: SearchId,
        command: &MakeExport,
        time: &Time<'_>,
    ) -> Result<Done, HandlerError> {
        let MakeExport { project_id: project, export_id: export, format, studies, .. } = *command;
        let key = ExportKey { project, search, export, format };
        let Some(files) = self.files_of(search, command).await? else {
            return self.remove_export(&key).await;
        };
        let over = || StoreError::unavailable(format!("exporting search {search}"), TimeIsOver);
        let (wanted, sources) = (Wanted { format, studies }, command.sources.clone());
        let pieces = Export::of(Arc::clone(&self.stored), search, files, &wanted, sources).pieces();
        let pieces = pieces.and_then(|piece| async { if time.is_over() { Err(over()) } else { Ok(piece) } });
        let bytes = self.exports.keep(&key, pieces.boxed()).await?;
        // The search may have been deleted meanwhile, with what was exported of it before.
        if self.files_of(search, command).await?.is_none() {
            return self.remove_export(&key).await;
        }
        Ok(Done::because(format!("exported {} files into {bytes} bytes", command.files.len())))
    }

    /// An attempt before this one may have stored it, and not have looked again.
    async fn remove_export(&self, key: &ExportKey) -> Result<Done, HandlerError> {
        self.bucket.remove(&key.to_string()).await?;
        Ok(Done::because("the search does not have the files of the export any more"))
    }

    /// The files of an export, as long as all of them are there.
    async fn files_of(
        &self,
        search: SearchId,
        command: &MakeExport,
    ) -> Result<Option<Vec<ParsedFile>>, StoreError> {
        let mut files = self.stored.parsed(search).await?;
        files.retain(|file| command.files.contains(&file.file_id));
        Ok((files.len() == command.files.len()).then_some(files))
    }
}
