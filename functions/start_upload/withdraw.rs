//! Withdrawing a search.

use imports::messages::SearchWithdrawn;
use imports::{Job, Manifest, ManifestFile, SearchEvent, SearchId, ids};
use messages::SessionId;

use super::{Caller, Error, StartUpload};

/// What became of a request to withdraw a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// It will end without having been read, unless its last file is stored just now; or it has ended like that.
    Accepted,
    /// Its files are being read, or were.
    TooLate,
    /// There is no such search, or it is not the caller's.
    Unknown,
}

impl StartUpload {
    /// Withdraws a search of which nothing has been read. Repeating it changes nothing.
    ///
    /// # Errors
    /// When a store or queue did not answer; the search may be withdrawn or not.
    pub async fn withdraw(&self, caller: &Caller, search_id: SearchId) -> Result<Withdrawal, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Withdrawal::Unknown) };
        if job.has_started() {
            return Ok(Withdrawal::TooLate);
        }
        if !job.state.has_ended() {
            self.announce_withdrawal(&job).await?;
        }
        Ok(Withdrawal::Accepted)
    }

    async fn announce_withdrawal(&self, job: &Job) -> Result<(), Error> {
        let withdrawn = SearchWithdrawn { project_id: job.project_id, manifest: manifest(job) };
        // One token for all requests, or each would leave another one while nothing works on them.
        let token = ids::withdrawal_token(job.search_id);
        self.entry.tokens.grant(job.search_id, std::slice::from_ref(&token), self.host().now()).await?;
        let mut session = self.entry.session(SessionId::from_uuid(self.host().fresh_id()), job.search_id);
        session.send_granted(&SearchEvent::SearchWithdrawn(withdrawn), token)?;
        self.commit(session, "withdrew the search").await
    }
}

/// What was announced of it. It matters only while the announcement has not been handled, and then all of it is known.
fn manifest(job: &Job) -> Manifest {
    let files = job.files.iter().map(|file| ManifestFile {
        file_id: file.file_id,
        name: file.name.clone().unwrap_or_default(),
        size_bytes: file.size_bytes.unwrap_or_default(),
    });
    Manifest { name: job.name.clone().unwrap_or_default(), files: files.collect() }
}
