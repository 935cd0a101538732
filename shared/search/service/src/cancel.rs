//! Cancelling an unfinished search, and deleting one that has ended.

use imports::messages::{SearchWithdrawn, TakeBackFiles};
use imports::saga::{CANCELLED, WITHDRAWN};
use imports::{Job, Manifest, ManifestFile, ParseCommand, SearchEvent, SearchId, ids};
use outbox::View;
use outbox::session::CommitError;
use serde_json::{Map, Value};

use crate::tries::MAX_TRIES;
use crate::{Error, ProjectAccess, SearchRepairs, SearchService, repair, sources};

/// The outcome of a request to cancel a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancellation {
    /// The search will end and its studies will be deleted, unless its last file has just been read; or it was
    /// already cancelled.
    Accepted,
    /// The search has already ended.
    TooLate,
    /// The search does not exist, or the caller cannot access it.
    Unknown,
}

/// The outcome of a request to delete a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The search is no longer visible, and its data will be deleted.
    Accepted,
    /// The search has not ended.
    Running,
    /// A search that repairs it reads one of its files.
    Needed(SearchId),
    /// The search no longer exists, or the caller cannot access it.
    Unknown,
}

impl SearchService {
    /// Cancels a search that has not ended. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the search may or may not be cancelled.
    pub async fn cancel(&self, caller: &ProjectAccess, search_id: SearchId) -> Result<Cancellation, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Cancellation::Unknown) };
        let was_cancelled =
            job.reason.as_deref().is_some_and(|reason| [CANCELLED, WITHDRAWN].contains(&reason));
        match job.state.has_ended() {
            true if was_cancelled => Ok(Cancellation::Accepted),
            true => Ok(Cancellation::TooLate),
            false => {
                self.send_cancellation(&job).await?;
                Ok(Cancellation::Accepted)
            }
        }
    }

    async fn send_cancellation(&self, job: &Job) -> Result<(), Error> {
        let withdrawn = SearchWithdrawn { project_id: job.project_id, manifest: manifest(job) };
        // All requests share one token. Otherwise each request would leave another token in the ledger until a worker
        // uses it.
        let token = ids::withdrawal_token(job.search_id);
        self.entry.tokens.grant(job.search_id, std::slice::from_ref(&token), self.host().now()).await?;
        let mut session = self.entry.session(job.search_id);
        session.send_granted(&SearchEvent::SearchWithdrawn(withdrawn), token)?;
        self.commit(session, "cancelled the import").await
    }

    /// Deletes a search that has ended, with all of its data. The call is idempotent.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the search may or may not be deleted.
    pub async fn delete(&self, caller: &ProjectAccess, search_id: SearchId) -> Result<Deletion, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Deletion::Unknown) };
        if !job.state.has_ended() {
            return Ok(Deletion::Running);
        }
        for _ in 0..MAX_TRIES {
            match self.try_to_delete(&job).await {
                // One of these searches was repaired or deleted concurrently.
                Err(Error::Commit(error)) if error.is_refused() => {}
                answer => return answer,
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    async fn try_to_delete(&self, job: &Job) -> Result<Deletion, Error> {
        let (search_id, original) = (job.search_id, job.repairs.unwrap_or(job.search_id));
        let mut session = self.entry.session(search_id);
        let known =
            SearchRepairs::recorded(&self.jobs, original, session.read(repair::key(original)).await?).await?;
        if let Some(by) = known.repairs.needs(search_id, |file| known.fate(file)) {
            return Ok(Deletion::Needed(by));
        }
        let mut repairs = known.repairs;
        repairs.deleted.insert(search_id);
        session.write(repair::key(original), repair::written(&repairs)?);
        // Keep the sources of its files while other files that repair them exist.
        for search_id in repairs.forgotten() {
            session.write(sources::key(search_id), Value::Object(Map::new()));
        }
        session.send(&ParseCommand::TakeBackFiles(TakeBackFiles {
            project_id: job.project_id,
            files: job.files.iter().map(|file| file.file_id).collect(),
            forget: true,
        }))?;
        self.commit(session, "deleted the search").await?;
        // The worker that deletes the files removes the view too, in case this write fails.
        self.views.write(&[View::removed(search_id, job.project_id.as_uuid())]).await?;
        Ok(Deletion::Accepted)
    }
}

/// Rebuilds the manifest from the job. The function is only used before the announcement is handled, when the job is
/// still complete.
pub(super) fn manifest(job: &Job) -> Manifest {
    let files = job.files.iter().map(|file| ManifestFile {
        file_id: file.file_id,
        name: file.name.clone().unwrap_or_default(),
        size_bytes: file.size_bytes.unwrap_or_default(),
    });
    Manifest { name: job.name.clone().unwrap_or_default(), files: files.collect(), repairs: job.repairs }
}
