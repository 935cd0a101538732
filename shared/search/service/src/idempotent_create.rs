//! Announcing a search under a key that the client has chosen, so that it may repeat its request.

use imports::ids::Secret;
use imports::{Job, JobFile, ProjectId, SearchId, ids};
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, Write};
use serde::Deserialize;
use uuid::Uuid;

use crate::announce::new_job;
use crate::repair::TRIES;
use crate::{Announced, Error, NewSearch, SearchService};

/// What became of a request that named a key of its own.
#[derive(Debug)]
pub enum Keyed {
    /// It is announced, now or by an earlier request with this key.
    Announced(Announced),
    /// Another request with this key asked for something else, and came first.
    Differs,
}

impl SearchService {
    /// Announces a search once, however often it is asked for under this key: then it answers with the same search,
    /// and with forms for those of its files that have not arrived.
    ///
    /// # Errors
    /// As [`SearchService::create`].
    pub async fn create_once(
        &self,
        project_id: ProjectId,
        request: &NewSearch,
        key: &str,
    ) -> Result<Keyed, Error> {
        let search_id = self.keyed_search(project_id, key).await?;
        let mut tries = 1..TRIES;
        loop {
            if let Some(job) = self.job_under(project_id, search_id, key).await? {
                return self.answer_again(job, request).await;
            }
            match self.announce_once(project_id, search_id, request).await {
                Ok(Some(job)) => {
                    let files = self.forms(&job).await?;
                    return Ok(Keyed::Announced(Announced { search_id, files }));
                }
                // A request that came first may have announced it since the look above.
                Ok(None) => {
                    return match self.jobs.job(search_id).await? {
                        Some(job) => self.answer_again(job, request).await,
                        None => Ok(Keyed::Differs),
                    };
                }
                // Another request came first, or the commit took too long. Nothing is stored.
                Err(Error::Commit(error)) if error.is_refused() && tries.next().is_some() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The search that was announced under a key.
    async fn job_under(
        &self,
        project_id: ProjectId,
        search_id: SearchId,
        key: &str,
    ) -> Result<Option<Job>, StoreError> {
        match self.jobs.job(search_id).await? {
            Some(job) => Ok(Some(job)),
            // A version before secrets may have announced it.
            None => self.jobs.job(ids::guessable_keyed_search(project_id, key)).await,
        }
    }

    /// The answer to a request under a key under which a search was announced before.
    async fn answer_again(&self, job: Job, request: &NewSearch) -> Result<Keyed, Error> {
        if !self.is_of(&job, request).await? {
            return Ok(Keyed::Differs);
        }
        let job = self.with_all_files(job, request)?;
        Ok(Keyed::Announced(Announced { search_id: job.search_id, files: self.forms(&job).await? }))
    }

    /// Announces a search in a session of its own, unless one was announced under its key: then the record of the first
    /// request exists, or tokens are missing. They were used, or an attempt with fewer files has granted the others.
    ///
    /// A crash before the commit leaves nothing but tokens, which the next attempt finds. A session that was abandoned
    /// does not stand in its way, since each attempt has another one.
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

    /// The id of the search that this key stands for, whether or not it was asked for.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not a secret.
    pub async fn keyed_search(&self, project_id: ProjectId, key: &str) -> Result<SearchId, Error> {
        Ok(ids::keyed_search(&self.secret().await?, project_id, key))
    }

    /// The deployment's secret. Whoever asks first makes it; of several at once, one does.
    async fn secret(&self) -> Result<Secret, Error> {
        let key = Key::new(SECRET, "keyed-searches");
        loop {
            // Of no search, and without messages: nothing is left of the session but its record.
            let nobody = SearchId::from_uuid(Uuid::nil());
            let mut session = self.entry.session(nobody);
            if let Some(record) = session.read(key.clone()).await? {
                let unusable = |error| StoreError::unusable("reading the secret of keyed searches", error);
                return Ok(Secret::deserialize(&record.body).map_err(unusable)?);
            }
            let failed = |error| StoreError::unusable("writing the secret of keyed searches down", error);
            let secret = serde_json::to_value(Secret::random(self.host())).map_err(failed)?;
            session.write(key.clone(), secret);
            match session.commit().await {
                // What is stored is read, whoever wrote it. It is never removed, so this ends.
                Ok(_) | Err(CommitError::Changed) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether a search that was asked for under a key is what a request asks for. Its job does not always say that: a
    /// search that has begun with its files knows no others, and not how large they were said to be.
    async fn is_of(&self, job: &Job, request: &NewSearch) -> Result<bool, StoreError> {
        let first = self.entry.sessions.records.record(&first_request(job.search_id)).await?;
        let Some(first) = first else { return Ok(announces(job, request)) };
        let first = NewSearch::deserialize(&first.body).map_err(|error| {
            StoreError::unusable(format!("reading what search {} was asked for", job.search_id), error)
        })?;
        Ok(first == *request)
    }

    /// The job with all files of the request that it is of.
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

/// The kind of the records that nobody outside may know.
const SECRET: &str = "secret";

/// The kind of the record that says what the first request under a key has asked for.
pub const FIRST_REQUEST: &str = "keyed-search";

pub(super) fn first_request(search: SearchId) -> Key {
    Key::new(FIRST_REQUEST, search.to_string())
}

/// Whether a search is what a request asks for, as far as its job says; for those that an earlier release announced.
fn announces(job: &Job, request: &NewSearch) -> bool {
    let known = job.files.iter().map(|file| (file.name.as_deref(), file.announced_bytes.or(file.size_bytes)));
    let wanted = request.files.iter().map(|file| (Some(file.name.as_str()), Some(file.size_bytes)));
    job.name.as_deref() == Some(request.name.as_str()) && known.eq(wanted)
}

/// What the first request under a key has asked for, to be stored with its announcement.
fn written(search: SearchId, request: &NewSearch) -> Result<Write, StoreError> {
    let failed = |error| StoreError::unusable("writing a request under a key down", error);
    Ok(Write { key: first_request(search), body: serde_json::to_value(request).map_err(failed)? })
}
