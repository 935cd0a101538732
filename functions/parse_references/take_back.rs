//! Taking back what is stored of a search: it was cancelled while its files were being read, or is to be forgotten.

use dedup::{Done, HandlerError};
use imports::messages::TakeBackFiles;
use imports::saga::CANCELLED;
use imports::{ExportKey, ObjectKey, Place, SearchId};
use outbox::View;

use super::ParseReferences;
use super::file::Time;

/// The reply of an attempt that finds its file taken back. Its search has ended, so nobody listens.
const TAKEN_BACK: usize = 3;

impl ParseReferences {
    /// Takes back everything that is stored of these files. It may be done any number of times.
    pub(super) async fn take_back(
        &self,
        search: SearchId,
        command: &TakeBackFiles,
        time: &Time<'_>,
    ) -> Result<Done, HandlerError> {
        let refused = Place::Refused { reason: CANCELLED.to_owned(), reply: TAKEN_BACK };
        for file in &command.files {
            if time.is_over() {
                return Ok(Done::again("the time is nearly over; not all files are taken back"));
            }
            // First nobody finds its studies any more, then nothing names them, and then they go.
            self.studies.withdraw(search, *file, &refused).await?;
            let is_over = || time.is_over();
            if !self.duplicates.shrunk(command.project_id, (search, *file), is_over).await? {
                return Ok(Done::again("the time is nearly over; not all files are taken back"));
            }
            self.studies.remove(search, *file, &refused).await?;
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
