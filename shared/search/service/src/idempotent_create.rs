//! Announcing a search idempotently, under a key that the client has chosen.

use imports::ids::Secret;
use imports::{Job, JobFile, ProjectId, SearchId, ids};
use messages::StoreError;
use outbox::Key;
use outbox::session::CommitError;
use serde::Deserialize;
use serde_json::Value;
use uuid::Uuid;

use crate::announce::{has_ended_incomplete, new_job};
use crate::content;
use crate::tries::MAX_TRIES;
use crate::{AnnouncedSearch, Error, NewSearch, SearchService};

/// The outcome of a request with a key.
#[derive(Debug)]
pub enum CreateOutcome {
    /// The search is announced, by this request or by an earlier one with the same key.
    Announced(AnnouncedSearch),
    /// This search was announced by an earlier request with the same key, and ended before all of its files arrived.
    Ended(SearchId),
    /// An earlier request with this key had other contents.
    Differs,
    /// An earlier request used this key, but its contents are not stored, so the requests cannot be compared. They are
    /// not committed yet, they have expired, or a restore of the database has removed them.
    Unknown,
}

impl SearchService {
    /// Announces a search once for all requests with this key. Repeated requests return the same search, with forms
    /// for the files that have not arrived, unless it has ended without them.
    ///
    /// # Errors
    /// Returns the errors of [`SearchService::create`].
    pub async fn create_once(
        &self,
        project_id: ProjectId,
        request: &NewSearch,
        key: &str,
    ) -> Result<CreateOutcome, Error> {
        let search_id = self.keyed_search(project_id, key).await?;
        let mut tries = 1..MAX_TRIES;
        loop {
            if let Some(job) = self.job_under(project_id, search_id, key).await? {
                return self.answer_again(job, request).await;
            }
            match self.announce_once(project_id, search_id, request).await {
                Ok(Some(job)) => {
                    let files = self.forms(&job).await?;
                    return Ok(CreateOutcome::Announced(AnnouncedSearch { search_id, files }));
                }
                // An earlier request may have announced it since the check above.
                Ok(None) => {
                    return match self.jobs.job(search_id).await? {
                        Some(job) => self.answer_again(job, request).await,
                        None => Ok(CreateOutcome::Unknown),
                    };
                }
                // Another request was first, or the commit took too long. Nothing is stored.
                Err(Error::Commit(error)) if error.is_refused() && tries.next().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the search that was announced under a key.
    async fn job_under(
        &self,
        project_id: ProjectId,
        search_id: SearchId,
        key: &str,
    ) -> Result<Option<Job>, StoreError> {
        match self.jobs.job(search_id).await? {
            Some(job) => Ok(Some(job)),
            // An earlier version, without secrets, may have announced it.
            None => self.jobs.job(ids::guessable_keyed_search(project_id, key)).await,
        }
    }

    /// Returns the response to a repeated request under a key.
    async fn answer_again(&self, job: Job, request: &NewSearch) -> Result<CreateOutcome, Error> {
        match self.is_of(&job, request).await? {
            Some(true) => {}
            Some(false) => return Ok(CreateOutcome::Differs),
            None => return Ok(CreateOutcome::Unknown),
        }
        let job = self.with_all_files(job, request)?;
        if has_ended_incomplete(&job) {
            return Ok(CreateOutcome::Ended(job.search_id));
        }
        Ok(CreateOutcome::Announced(AnnouncedSearch {
            search_id: job.search_id,
            files: self.forms(&job).await?,
        }))
    }

    /// Announces a search in a new session, unless one was announced under its key. In that case the record of the
    /// first request exists, or tokens are missing: they were used, or an attempt with fewer files has granted the
    /// others.
    ///
    /// A crash before the commit leaves only tokens, which the next attempt finds. An abandoned session does not
    /// block it, because each attempt opens a new one.
    async fn announce_once(
        &self,
        project_id: ProjectId,
        search_id: SearchId,
        request: &NewSearch,
    ) -> Result<Option<Job>, Error> {
        let mut session = self.entry.session(search_id);
        if session.read(first_request(search_id)).await?.is_some() {
            return Ok(None);
        }
        let (announcement, is_granted) = self.begin(search_id, project_id, request, None).await?;
        if !is_granted {
            return Ok(None);
        }
        self.send(session, &announcement, Some(written(search_id, request)?)).await?;
        Ok(Some(announcement.job))
    }

    /// Returns the id of the search for this key, whether or not it was requested.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable or the stored secret is invalid.
    pub async fn keyed_search(&self, project_id: ProjectId, key: &str) -> Result<SearchId, Error> {
        Ok(ids::keyed_search(&self.secret().await?, project_id, key))
    }

    /// Returns the deployment's secret. The first request creates it; of concurrent requests, one succeeds.
    async fn secret(&self) -> Result<Secret, Error> {
        let key = Key::new(SECRET, "keyed-searches");
        loop {
            // The session belongs to no search and sends no messages; only its record remains.
            let no_search = SearchId::from_uuid(Uuid::nil());
            let mut session = self.entry.session(no_search);
            if let Some(record) = session.read(key.clone()).await? {
                let unusable = |error| StoreError::unusable("reading the secret of keyed searches", error);
                return Ok(Secret::deserialize(&record.body).map_err(unusable)?);
            }
            let secret = Secret::random(self.host());
            session.write(key.clone(), content::of(&secret, "serializing the secret of keyed searches")?);
            match session.commit().await {
                // Read the stored secret, which another request may have written. It is never removed, so the loop
                // ends.
                Ok(_) | Err(CommitError::Changed) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Returns whether a request describes the same search as the stored one under its key. The job alone may not be
    /// enough: a search that was started by its files knows neither the other files nor the announced sizes. Without
    /// the first request, which a restore may have removed, the answer is unknown.
    async fn is_of(&self, job: &Job, request: &NewSearch) -> Result<Option<bool>, StoreError> {
        let first = self.entry.sessions.records.record(&first_request(job.search_id)).await?;
        let Some(first) = first else { return Ok(job.name.is_some().then(|| announces(job, request))) };
        let first = NewSearch::deserialize(&first.body).map_err(|error| {
            StoreError::unusable(format!("reading the first request of search {}", job.search_id), error)
        })?;
        Ok(Some(first == *request))
    }

    /// Returns the job with all files of its request.
    fn with_all_files(&self, job: Job, request: &NewSearch) -> Result<Job, Error> {
        let manifest = self.manifest(job.search_id, request)?;
        let announced = new_job(job.project_id, job.search_id, &manifest, job.created_at).files;
        let known = |file: JobFile| {
            job.files.iter().find(|known| known.file_id == file.file_id).cloned().unwrap_or(file)
        };
        let files = announced.into_iter().map(known).collect();
        Ok(Job { name: Some(manifest.name), files, ..job })
    }
}

/// The kind of the records that must stay secret.
const SECRET: &str = "secret";

/// The kind of the record that contains the first request under a key.
pub const FIRST_REQUEST: &str = "keyed-search";

pub(super) fn first_request(search: SearchId) -> Key {
    Key::new(FIRST_REQUEST, search.to_string())
}

/// Returns `true` if the job matches the request; for searches that an earlier version announced.
fn announces(job: &Job, request: &NewSearch) -> bool {
    let known = job.files.iter().map(|file| (file.name.as_deref(), file.announced_bytes.or(file.size_bytes)));
    let wanted = request.files.iter().map(|file| (Some(file.name.as_str()), Some(file.size_bytes)));
    job.name.as_deref() == Some(request.name.as_str()) && known.eq(wanted)
}

/// Serializes the first request under a key, to be stored with its announcement.
fn written(search: SearchId, request: &NewSearch) -> Result<(Key, Value), StoreError> {
    let body = content::of(request, "serializing the first request under a key")?;
    Ok((first_request(search), body))
}
