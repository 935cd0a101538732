//! Deleting the stored records of files whose search was cancelled while they were being read, ended without them, or
//! is deleted.

use dedup::{HandlerError, HandlerResult};
use imports::messages::TakeBackFiles;
use imports::{ExportFolder, FileRef, ObjectKey, ProjectId, SearchId};
use messages::StoreError;
use outbox::View;
use service::file_deletion;

use super::ParseReferences;
use super::attempt::Deadline;

impl ParseReferences {
    /// Deletes the stored records of a command's files. If the search was deleted (`forget`), all files are deleted,
    /// and otherwise only those that the search has abandoned. The deletion is idempotent.
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
        let mut is_any_deleted = false;
        for file in &files {
            let has_passed = || deadline.has_passed();
            let file = FileRef::new(search, *file);
            if file_deletion::is_file_deleted(&*self.attempts, file).await? {
                continue;
            }
            // Each turn deletes a part of a file at least, so that the deletion ends.
            let is_late = is_any_deleted && has_passed();
            if is_late || !self.delete_file(command.project_id, file, has_passed).await? {
                return Ok(HandlerResult::continue_later("the deadline is near; not all files are deleted"));
            }
            is_any_deleted = true;
        }
        if !command.forget {
            return Ok(HandlerResult::completed(format!("deleted the records of {} files", files.len())));
        }
        let project = command.project_id;
        let uploads = ObjectKey::folder(&self.key_prefix, project, search);
        for folder in [uploads, ExportFolder::Search(project, search).to_string()] {
            for object in self.bucket.find(&folder).await? {
                self.bucket.remove(&object.key).await?;
            }
        }
        self.remove_shared_exports(project).await?;
        if let Some(history) = &self.history {
            history.remove(search).await?;
        }
        // Remove the view last: while it exists, a client can repeat the deletion.
        self.views.write(&[View::removed(search, project.as_uuid())]).await?;
        Ok(HandlerResult::completed(format!("deleted the search and its {} files", files.len())))
    }

    async fn delete_file(
        &self,
        project: ProjectId,
        file: FileRef,
        has_passed: impl Fn() -> bool + Sync,
    ) -> Result<bool, StoreError> {
        let (studies, attempts) = (&*self.studies, &*self.attempts);
        file_deletion::delete_file(studies, attempts, &self.duplicates, project, file, has_passed).await
    }
}
