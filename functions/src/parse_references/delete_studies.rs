//! Deleting the stored records of files whose search was cancelled while they were being read, ended without them, or
//! is deleted.

use dedup::{HandlerError, HandlerResult};
use imports::messages::TakeBackFiles;
use imports::{ExportKey, FileRef, ObjectKey, ProjectId, ReadingStatus, SearchId};
use messages::StoreError;
use outbox::View;

use super::ParseReferences;
use super::attempt::Deadline;

/// The index and the reason of the reply of an attempt that finds its file deleted. The search no longer waits for it.
const REPLY: usize = 3;
const REASON: &str = "its stored records were deleted";

impl ParseReferences {
    /// Deletes the stored records of these files, as far as the stored search requires it. It is idempotent.
    pub(super) async fn delete_files(
        &self,
        search: SearchId,
        command: &TakeBackFiles,
        deadline: &Deadline<'_>,
    ) -> Result<HandlerResult, HandlerError> {
        let now = deadline.host.now();
        let files = match command.forget {
            true if self.is_deleted(search, now).await? => command.files.clone(),
            true => return Ok(HandlerResult::dropped("the search was not deleted")),
            false => self.abandoned_files(search, &command.files, now).await?,
        };
        if files.is_empty() && !command.forget {
            return Ok(HandlerResult::dropped("none of these files has failed in its search"));
        }
        for file in &files {
            let has_passed = || deadline.has_passed();
            let of = FileRef::new(search, *file);
            if has_passed() || !self.delete_file(command.project_id, of, has_passed).await? {
                return Ok(HandlerResult::continue_later("the deadline is near; not all files are deleted"));
            }
        }
        if !command.forget {
            return Ok(HandlerResult::completed(format!("deleted the records of {} files", files.len())));
        }
        let uploads = ObjectKey::folder(&self.key_prefix, command.project_id, search);
        for folder in [uploads, ExportKey::folder(command.project_id, search)] {
            for object in self.bucket.find(&folder).await? {
                self.bucket.remove(&object.key).await?;
            }
        }
        if let Some(history) = &self.history {
            history.remove(search).await?;
        }
        // Remove the view last: while it exists, a client can repeat the deletion.
        self.views.write(&[View::removed(search, command.project_id.as_uuid())]).await?;
        Ok(HandlerResult::completed(format!("deleted the search and its {} files", files.len())))
    }

    /// Deletes the stored records of a file permanently and updates the marks of the studies that were compared with
    /// it. Returns `false` if the deadline passed before the end. It is idempotent.
    pub(super) async fn delete_file(
        &self,
        project: ProjectId,
        of: FileRef,
        has_passed: impl Fn() -> bool + Sync,
    ) -> Result<bool, StoreError> {
        let FileRef { search_id: search, file_id: file } = of;
        let deleted = |compared| ReadingStatus::Refused { reason: REASON.to_owned(), reply: REPLY, compared };
        let after = match self.attempts.place(search, file).await? {
            Some(ReadingStatus::Refused { compared, .. }) => compared,
            Some(ReadingStatus::End { .. } | ReadingStatus::Within(_)) | None => 0,
        };
        // Unlist the file first, so that no new mark names its studies. Then remove the marks that do, and then the
        // studies.
        self.studies.withdraw(search, file, &deleted(after)).await?;
        if let Some(after) = self.duplicates.file_removed(project, of, after, has_passed).await? {
            self.studies.withdraw(search, file, &deleted(after)).await?;
            return Ok(false);
        }
        self.studies.remove(search, file, &deleted(0)).await?;
        Ok(true)
    }
}
