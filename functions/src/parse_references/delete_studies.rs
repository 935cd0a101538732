//! Deleting the stored records of files whose search was cancelled while they were being read, ended without them, or is
//! deleted.

use dedup::{Done, HandlerError};
use imports::messages::TakeBackFiles;
use imports::{ExportKey, ObjectKey, ReadingStatus, SearchId};
use outbox::View;
use service::FileOf;

use super::ParseReferences;
use super::attempt::Deadline;

/// The index and the reason of the reply of an attempt that finds its file deleted. The search no longer waits for it.
const REPLY: usize = 3;
const REASON: &str = "its stored records were deleted";

impl ParseReferences {
    /// Deletes the stored records of these files. It is idempotent.
    pub(super) async fn delete_files(
        &self,
        search: SearchId,
        command: &TakeBackFiles,
        deadline: &Deadline<'_>,
    ) -> Result<Done, HandlerError> {
        let deleted = |compared| ReadingStatus::Refused { reason: REASON.to_owned(), reply: REPLY, compared };
        for file in &command.files {
            if deadline.has_passed() {
                return Ok(Done::again("the deadline is near; not all files are deleted"));
            }
            let after = match self.attempts.place(search, *file).await? {
                Some(ReadingStatus::Refused { compared, .. }) => compared,
                Some(ReadingStatus::End { .. } | ReadingStatus::Within(_)) | None => 0,
            };
            // Unlist the file first, so that no new mark names its studies. Then remove the marks that do, and then the studies.
            self.studies.withdraw(search, *file, &deleted(after)).await?;
            let has_passed = || deadline.has_passed();
            let of = FileOf { search_id: search, file_id: *file };
            if let Some(after) =
                self.duplicates.file_removed(command.project_id, of, after, has_passed).await?
            {
                self.studies.withdraw(search, *file, &deleted(after)).await?;
                return Ok(Done::again("the deadline is near; not all files are deleted"));
            }
            self.studies.remove(search, *file, &deleted(0)).await?;
        }
        if !command.forget {
            return Ok(Done::because(format!("deleted the records of {} files", command.files.len())));
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
        Ok(Done::because(format!("deleted the search and its {} files", command.files.len())))
    }
}
