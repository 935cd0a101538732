//! Creating an export of a search's studies that is too large for one response.

use std::sync::Arc;

use dedup::{HandlerError, HandlerResult};
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::exports::ExportContent;
use imports::messages::MakeExport;
use imports::{ExportFolder, ExportKey, ProjectId, SearchId, WordQuery};
use jiff::Timestamp;
use messages::StoreError;

use super::ParseReferences;
use super::attempt::Deadline;
use service::exported_studies::{DamagedStudy, Export, ExportOptions, FileToExport};
use service::selection::StudySelection;

/// The error of an export that takes too long.
#[derive(Debug, thiserror::Error)]
#[error("the deadline has passed")]
struct DeadlinePassed;

impl ParseReferences {
    /// Stores the studies of these files as one object, or an empty object that names a damaged study. It is idempotent:
    /// a repetition replaces the object.
    pub(super) async fn export(
        &self,
        search: SearchId,
        command: &MakeExport,
        deadline: &Deadline<'_>,
    ) -> Result<HandlerResult, HandlerError> {
        let MakeExport { project_id: project, export_id: export, format, studies: which, .. } = *command;
        let folder = ExportFolder::of(project, search, command.is_shared());
        let mut key = ExportKey { folder, export, content: ExportContent::Studies(format) };
        let now = || deadline.host.now();
        let Some(files) = self.files_of(search, command, now()).await? else {
            return self.remove_export(search, &key).await;
        };
        let over = || StoreError::unavailable(format!("exporting search {search}"), DeadlinePassed);
        let text = command.text.as_deref().map(WordQuery::new).transpose();
        let text = text.map_err(|error| StoreError::unusable(format!("exporting search {search}"), error))?;
        let studies = StudySelection { which, text };
        let (count, sources) = (files.len(), command.sources.clone());
        let wanted = ExportOptions { format, studies, merged: command.merged };
        let pieces = Export::of(Arc::clone(&self.stored), files, &wanted, sources, &self.jobs).pieces();
        let pieces =
            pieces.and_then(|piece| async { if deadline.has_passed() { Err(over()) } else { Ok(piece) } });
        let result = match self.exports.keep(&key, pieces.boxed()).await {
            Ok(bytes) => format!("exported {count} files into {bytes} bytes"),
            Err(error) => {
                // A repetition would fail again, so the client gets the reason.
                let Some(damaged) = DamagedStudy::of(&error) else { return Err(error.into()) };
                key.content = ExportContent::Damaged(damaged.study);
                self.exports.keep(&key, stream::empty().boxed()).await?;
                format!("nothing is exported: {damaged}")
            }
        };
        // A search may have been deleted concurrently, together with its exports.
        if self.files_of(search, command, now()).await?.is_none() {
            return self.remove_export(search, &key).await;
        }
        Ok(HandlerResult::completed(result))
    }

    /// Removes the object, which contains studies or names a damaged study. An earlier attempt may have stored the
    /// object before it could check the search again. Earlier versions stored each export below its first search.
    async fn remove_export(&self, search: SearchId, key: &ExportKey) -> Result<HandlerResult, HandlerError> {
        let (ExportFolder::Search(project, _) | ExportFolder::Review(project)) = key.folder;
        if key.folder == ExportFolder::Review(project) {
            self.mark_removed(key).await?;
        }
        for folder in [ExportFolder::Search(project, search), ExportFolder::Review(project)] {
            for (object, _) in self.exports_below(folder, &folder.beginning(key.export)).await? {
                self.bucket.remove(&object).await?;
            }
        }
        Ok(HandlerResult::completed("the search does not have the files of the export any more"))
    }

    /// Removes the exports with studies of several searches, because one of these searches is deleted.
    pub(super) async fn remove_shared_exports(&self, project: ProjectId) -> Result<(), StoreError> {
        let folder = ExportFolder::Review(project);
        for (object, key) in self.exports_below(folder, &folder.to_string()).await? {
            if let Some(key) = &key {
                self.mark_removed(key).await?;
            }
            self.bucket.remove(&object).await?;
        }
        Ok(())
    }

    /// Returns the keys of the objects in a folder with this prefix that do not record a removal, and their parts.
    async fn exports_below(
        &self,
        folder: ExportFolder,
        prefix: &str,
    ) -> Result<Vec<(String, Option<ExportKey>)>, StoreError> {
        let found = self.bucket.find(prefix).await?.into_iter().map(|object| {
            let key = ExportKey::read(folder, &object.key);
            (object.key, key)
        });
        let is_kept = |key: &Option<ExportKey>| key.is_none_or(|key| key.content != ExportContent::Removed);
        Ok(found.filter(|(_, key)| is_kept(key)).collect())
    }

    /// Records that an export is removed, before its object is. Otherwise clients would wait for it.
    async fn mark_removed(&self, key: &ExportKey) -> Result<(), StoreError> {
        let key = ExportKey { content: ExportContent::Removed, ..*key };
        self.exports.keep(&key, stream::empty().boxed()).await?;
        Ok(())
    }

    /// Returns the files of an export, or `None` if one of them was deleted.
    ///
    /// The latest list is needed. With an earlier list that lacks files, the export would not be made. With a list that
    /// still contains the files of a deleted search, the export would remain.
    async fn files_of(
        &self,
        search: SearchId,
        command: &MakeExport,
        now: Timestamp,
    ) -> Result<Option<Vec<FileToExport>>, StoreError> {
        self.documents().reach_latest_data(search, now).await?;
        let mut all = Vec::new();
        let others = command.others.iter().map(|other| (other.search_id, &other.files));
        for (search, wanted) in std::iter::once((search, &command.files)).chain(others) {
            let mut files = self.stored.parsed(search).await?;
            files.retain(|file| wanted.contains(&file.file_id));
            if files.len() != wanted.len() {
                return Ok(None);
            }
            all.extend(files.into_iter().map(|file| FileToExport { search, file }));
        }
        Ok(Some(all))
    }
}
