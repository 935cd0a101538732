//! Detects commands that the stored search does not require.
//!
//! A queue may hold commands of changes that a restore of the database has undone. Such a command may belong to a
//! search that no longer exists or has not started to read its files, or it may be a deletion that the restore was
//! meant to undo. Commands without a reply have no token, and neither do commands of earlier versions. Therefore the
//! state of the search decides.
//!
//! A store may return an earlier version of a document. Before a command is dropped, the latest version is read
//! ([`ReadDocuments::load_latest`]). Every later read returns data that is at least as new.

use std::collections::BTreeSet;

use imports::messages::{LookForUploads, StartParsing};
use imports::saga::State;
use imports::{FileId, FileRef, Job, ObjectKey, SearchId};
use jiff::Timestamp;
use messages::{Message, StoreError, Token};
use saga::{Document, ReadDocuments};
use service::{Repairs, file_deletion};

use super::ParseReferences;

impl ParseReferences {
    /// Returns whether the search may expect the reply to a parse command.
    ///
    /// If a newer version wrote the document and this version cannot read it, the expected replies are unknown. The
    /// file is then read, and the newer version handles the reply. A retry would end in the dead-letter queue, and a
    /// readable file would be reported as failed.
    pub(super) async fn is_reply_expected(
        &self,
        message: &Message,
        command: &StartParsing,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.is_required(message.partition, now, |document| self.expects_reply(document, message, command))
            .await
    }

    /// Returns whether the search may wait for this bucket scan.
    ///
    /// After a restore, a queued scan may be executed before the restored search requests it again. Without a ledger,
    /// both commands have the same id. The second command would therefore count as a duplicate, and the search would
    /// wait for its result.
    pub(super) async fn is_scan_pending(
        &self,
        search: SearchId,
        command: &LookForUploads,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.is_required(search, now, |document| self.awaits_scan(document, command)).await
    }

    /// Returns whether a document requires a command. Before the command is dropped, the latest document is read.
    async fn is_required(
        &self,
        search: SearchId,
        now: Timestamp,
        requires: impl Fn(Option<Document>) -> bool + Sync,
    ) -> Result<bool, StoreError> {
        for document in self.documents().load(&[search], now).await? {
            if document.is_ok_and(&requires) {
                return Ok(true);
            }
        }
        match self.documents().load_latest(search, now).await {
            Ok(document) => Ok(requires(document)),
            Err(error) if error.is_retryable() => Err(error),
            Err(_) => Ok(true),
        }
    }

    fn awaits_scan(&self, document: Option<Document>, command: &LookForUploads) -> bool {
        let Some(document) = document else { return false };
        let Ok(document) = document.open(&self.jobs.views.saga) else { return true };
        let (State::Uploading(import) | State::Uploaded(import)) = &document.content.state else {
            return false;
        };
        import.look.is_some_and(|scan| scan.id == command.look_id)
    }

    fn expects_reply(&self, document: Option<Document>, message: &Message, command: &StartParsing) -> bool {
        let Some(document) = document else { return false };
        let Ok(document) = document.open(&self.jobs.views.saga) else { return true };
        let State::Parsing(import) = &document.content.state else { return false };
        let is_unread = import.files.get(&command.file_id).is_some_and(|file| file.outcome.is_none());
        let token = message.reply_token.as_ref().or(command.reply_token.as_ref());
        let expected = &document.content.expected;
        let is_expected = |token: &Token| expected.iter().any(|expected| expected.token == *token);
        is_unread && token.is_none_or(is_expected)
    }

    /// Returns the files that failed in their search, and the files without which the search ended.
    pub(super) async fn abandoned_files(
        &self,
        search: SearchId,
        files: &BTreeSet<FileId>,
        now: Timestamp,
    ) -> Result<BTreeSet<FileId>, StoreError> {
        let Some(job) = self.jobs.latest(search, now).await? else { return Ok(BTreeSet::new()) };
        let abandoned = job.files.iter().filter(|file| job.has_abandoned(file)).map(|file| file.file_id);
        Ok(abandoned.filter(|file| files.contains(file)).collect())
    }

    /// Returns whether the deletion of a search is recorded.
    pub(super) async fn is_deleted(&self, search: SearchId, now: Timestamp) -> Result<bool, StoreError> {
        file_deletion::is_deleted(&self.jobs, &*self.duplicates.records, search, now).await
    }

    /// Returns the other search that reads the file of an unrecorded repair, if any.
    ///
    /// The queue may hold the messages of a repair that a restore of the database has undone. If the restore has also
    /// undone the end of the repaired search, that search reads its file itself. A search whose document was written by
    /// a newer version counts as ended, because a retry would end in the dead-letter queue.
    pub(super) async fn other_reader(
        &self,
        search: SearchId,
        command: &StartParsing,
        now: Timestamp,
    ) -> Result<Option<SearchId>, StoreError> {
        let key = ObjectKey::parse(&self.key_prefix, &command.object.key).ok();
        let Some(key) = key.filter(|key| key.search != search) else { return Ok(None) };
        let repaired = self.readable_job(key.search, now).await?.and_then(|job| job.repairs);
        let repairs = self.repairs_of(repaired.unwrap_or(key.search)).await?;
        if repairs.searches().contains(&search) {
            return Ok(None);
        }
        let uploaded = FileRef::new(key.search, key.file);
        let repairing = repairs.files.iter().map(|file| file.by);
        let repairing = repairing.filter(|by| repairs.earlier(*by).contains(&uploaded));
        for FileRef { search_id, file_id } in [uploaded].into_iter().chain(repairing) {
            if repairs.deleted.contains(&search_id) {
                continue;
            }
            let Some(job) = self.readable_job(search_id, now).await? else { continue };
            if job.files.iter().any(|file| file.file_id == file_id && !job.has_abandoned(file)) {
                return Ok(Some(search_id));
            }
        }
        Ok(None)
    }

    /// Returns the latest job of a search, unless a newer version wrote its document.
    async fn readable_job(&self, search: SearchId, now: Timestamp) -> Result<Option<Job>, StoreError> {
        match self.jobs.latest(search, now).await {
            Err(error) if !error.is_retryable() => Ok(None),
            job => job,
        }
    }

    async fn repairs_of(&self, original: SearchId) -> Result<Repairs, StoreError> {
        Repairs::read(&*self.duplicates.records, original).await
    }

    pub(super) fn documents(&self) -> &dyn ReadDocuments {
        self.jobs.views.documents.as_ref()
    }
}
