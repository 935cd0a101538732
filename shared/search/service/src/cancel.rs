//! Withdrawing a search that is under way, and deleting one that has ended.

use imports::messages::{SearchWithdrawn, TakeBackFiles};
use imports::saga::CANCELLED;
use imports::{Job, Manifest, ManifestFile, ParseCommand, SearchEvent, SearchId, ids};
use outbox::View;
use outbox::session::CommitError;
use serde_json::{Map, Value};

use crate::{Error, ProjectAccess, SearchService, repair, sources};

/// What became of a request to withdraw a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// It will end, and what was read of it is taken back, unless its last file is read just now; or it has ended like that.
    Accepted,
    /// It has ended.
    TooLate,
    /// There is no such search, or it is not the caller's.
    Unknown,
}

/// What became of a request to delete a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// It is seen no more, and what is stored of it goes.
    Accepted,
    /// It has not ended.
    Running,
    /// A search that repairs it reads one of its files.
    Needed(SearchId),
    /// There is no such search any more, or it is not the caller's.
    Unknown,
}

impl SearchService {
    /// Withdraws a search that has not ended. Repeating it changes nothing.
    ///
    /// # Errors
    /// When a store or queue did not answer; the search may be withdrawn or not.
    pub async fn withdraw(&self, caller: &ProjectAccess, search_id: SearchId) -> Result<Withdrawal, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Withdrawal::Unknown) };
        let was_withdrawn = !job.has_started() || job.reason.as_deref() == Some(CANCELLED);
        match job.state.has_ended() {
            true if was_withdrawn => Ok(Withdrawal::Accepted),
            true => Ok(Withdrawal::TooLate),
            false => {
                self.announce_withdrawal(&job).await?;
                Ok(Withdrawal::Accepted)
            }
        }
    }

    async fn announce_withdrawal(&self, job: &Job) -> Result<(), Error> {
        let withdrawn = SearchWithdrawn { project_id: job.project_id, manifest: manifest(job) };
        // One token for all requests, or each would leave another one while nothing works on them.
        let token = ids::withdrawal_token(job.search_id);
        self.entry.tokens.grant(job.search_id, std::slice::from_ref(&token), self.host().now()).await?;
        let mut session = self.entry.session(job.search_id);
        session.send_granted(&SearchEvent::SearchWithdrawn(withdrawn), token)?;
        self.commit(session, "withdrew the search").await
    }

    /// Deletes a search that has ended, with everything that it has stored. Repeating it changes nothing.
    ///
    /// # Errors
    /// When a store or queue did not answer; it may be deleted or not.
    pub async fn delete(&self, caller: &ProjectAccess, search_id: SearchId) -> Result<Deletion, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Deletion::Unknown) };
        if !job.state.has_ended() {
            return Ok(Deletion::Running);
        }
        for _ in 0..repair::TRIES {
            match self.try_to_delete(&job).await {
                // Somebody repairs or deletes one of these searches at the same time.
                Err(Error::Commit(error)) if error.is_refused() => {}
                answer => return answer,
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    async fn try_to_delete(&self, job: &Job) -> Result<Deletion, Error> {
        let (search_id, original) = (job.search_id, job.repairs.unwrap_or(job.search_id));
        let mut session = self.entry.session(search_id);
        let record = session.read(repair::key(original)).await?.map(|record| record.body);
        let known = self.known(original, record).await?;
        if let Some(by) = known.repairs.needs(search_id, |file| known.fate(file)) {
            return Ok(Deletion::Needed(by));
        }
        let mut repairs = known.repairs;
        repairs.deleted.insert(search_id);
        session.write(repair::key(original), repair::written(&repairs)?);
        // What was said of its files stands for those that repair them.
        for search_id in repairs.forgotten() {
            session.write(sources::key(search_id), Value::Object(Map::new()));
        }
        session.send(&ParseCommand::TakeBackFiles(TakeBackFiles {
            project_id: job.project_id,
            files: job.files.iter().map(|file| file.file_id).collect(),
            forget: true,
        }))?;
        self.commit(session, "deleted the search").await?;
        // Whoever takes its files back does this too, should it not come to it here.
        self.views.write(&[View::removed(search_id, job.project_id.as_uuid())]).await?;
        Ok(Deletion::Accepted)
    }
}

/// What was announced of it. It matters only while the announcement has not been handled, and then all of it is known.
pub(super) fn manifest(job: &Job) -> Manifest {
    let files = job.files.iter().map(|file| ManifestFile {
        file_id: file.file_id,
        name: file.name.clone().unwrap_or_default(),
        size_bytes: file.size_bytes.unwrap_or_default(),
    });
    Manifest { name: job.name.clone().unwrap_or_default(), files: files.collect(), repairs: job.repairs }
}
