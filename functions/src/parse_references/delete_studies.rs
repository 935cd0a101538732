//! Taking back what is stored of files: their search was cancelled while they were being read, or ended without them, or is to be
//! forgotten.

use dedup::{Done, HandlerError};
use imports::messages::TakeBackFiles;
use imports::{ExportKey, ObjectKey, Place, SearchId};
use outbox::View;

use super::ParseReferences;
use super::file::Time;

/// The reply of an attempt that finds its file taken back, and what it says. Its search goes on without it, so nobody listens.
const TAKEN_BACK: (usize, &str) = (3, "what was stored of it was taken back");

impl ParseReferences {
    /// Takes back everything that is stored of these files. It may be done any number of times.
    pub(super) async fn take_back(
        &self,
        search: SearchId,
        command: &TakeBackFiles,
        time: &Time<'_>,
    ) -> Result<Done, HandlerError> {
        let (reply, reason) = TAKEN_BACK;
        let taken_back = |compared| Place::Refused { reason: reason.to_owned(), reply, compared };
        for file in &command.files {
            if time.is_over() {
                return Ok(Done::again("the time is nearly over; not all files are taken back"));
            }
            let after = match self.reading.place(search, *file).await? {
                Some(Place::Refused { compared, .. }) => compared,
                Some(Place::End { .. } | Place::Within(_)) | None => 0,
            };
            // First nobody finds its studies any more, then nothing names them, and then they go.
            self.studies.withdraw(search, *file, &taken_back(after)).await?;
            let is_over = || time.is_over();
            let of = (search, *file);
            if let Some(after) = self.duplicates.shrunk(command.project_id, of, after, is_over).await? {
                self.studies.withdraw(search, *file, &taken_back(after)).await?;
                return Ok(Done::again("the time is nearly over; not all files are taken back"));
            }
            self.studies.remove(search, *file, &taken_back(0)).await?;
        }
        if !command.forget {
            return Ok(Done::because(format!("took back {} files", command.files.len())));
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
        // Last: as long as it can be seen, somebody may ask for its deletion again.
        self.views.write(&[View::removed(search, command.project_id.as_uuid())]).await?;
        Ok(Done::because(format!("forgot the search and its {} files", command.files.len())))
    }
}
