//! Announcing a search under a key that the client has chosen, so that it may repeat its request.

use imports::ids::Secret;
use imports::{Job, JobFile, ProjectId, SearchId, ids};
use messages::{SessionId, StoreError};
use outbox::session::CommitError;
use outbox::{Key, Write};
use serde::Deserialize;
use uuid::Uuid;

use super::{Announced, Error, NewSearch, StartUpload, new_job};

/// What became of a request that named a key of its own.
#[derive(Debug)]
pub enum Keyed {
    /// It is announced, now or by an earlier request with this key.
    Announced(Announced),
    /// Another request with this key asked for something else, and came first.
    Differs,
}

impl StartUpload {
    /// Announces a search once, however often it is asked for under this key: then it answers with the same search,
    /// and with forms for those of its files that have not arrived.
    ///
    /// # Errors
    /// As [`StartUpload::create`].
    pub async fn create_once(
        &self,
        project_id: ProjectId,
        request: &NewSearch,
        key: &str,
    ) -> Result<Keyed, Error> {
        let mut search_id = self.keyed_search(project_id, key).await?;
        let (mut job, mut is_ours) = (self.jobs.job(search_id).await?, true);
        if job.is_none() {
            // A release before secrets may have announced it.
            let guessable = ids::guessable_keyed_search(project_id, key);
            job = self.jobs.job(guessable).await?;
            if job.is_some() {
                search_id = guessable;
            }
        }
        if job.is_none() {
            let (announcement, is_granted) = self.begin(search_id, project_id, request, None).await?;
            // Tokens that are missing were used, and then it is announced, or are those of a request for fewer files.
            is_ours = is_granted;
            if is_ours {
                // Two requests at once announce the same session; the second commit changes nothing.
                self.send(&announcement, Some(written(search_id, request)?)).await?;
            }
            // Also for whoever has just announced it: what is stored may be another's.
            job = self.jobs.job(search_id).await?;
        }
        match job {
            Some(job) if self.is_of(&job, request).await? => {
                let job = self.with_all_files(job, request)?;
                Ok(Keyed::Announced(Announced { search_id, files: self.forms(&job).await? }))
            }
            None if is_ours => {
                let why = "it is announced, and cannot be read yet";
                Err(StoreError::unavailable(format!("reading search {search_id}"), why).into())
            }
            Some(_) | None => Ok(Keyed::Differs),
        }
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
            let mut session = self.entry.session(SessionId::from_uuid(self.host().fresh_id()), nobody);
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
