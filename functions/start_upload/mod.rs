//! The function in front: it announces a search and gives out one upload per file.
//!
//! There is no message whose redelivery would save a crashed request, so the job and the announcement are stored
//! in one transactional session. Tokens are granted before that: a message may arrive the moment it is sent.
//!
//! - [`StartUpload::create`] and [`StartUpload::status`] are the function; `create` is made of
//!   [`StartUpload::prepare`] and [`StartUpload::announce`], for whoever has to act in between;
//! - [`http`] is its HTTP API: a router, for Lambda and for the local server.

pub mod http;
mod list;
mod withdraw;

use std::sync::Arc;

use imports::manifest::ManifestFault;
use imports::messages::SearchUploadStarted;
use imports::ports::UPLOADS;
use imports::queues::{CONTROL, SAGA};
use imports::{
    FileId, Job, JobFile, JobState, Jobs, Manifest, ManifestFile, ObjectKey, Ports, PresignUpload,
    PresignedPost, ProjectId, SearchEvent, SearchId, Settings, UploadGrant, UploadMetadata, ids,
};
use jiff::Timestamp;
use messages::{Host, Reporter, StoreError, Token, Verdict};
use outbox::session::CommitError;
use outbox::{StageError, View};
use saga::engine::Opened;
use saga::{EntryPoint, Function, Missing, Service, Source};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use self::withdraw::Withdrawal;

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "start-upload";

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE, Service::LEDGER, UPLOADS],
    source: Source::Requests,
    sends: &[CONTROL, SAGA],
    build: None,
};

/// Announces searches and withdraws them, over the ports that this takes.
#[derive(Clone)]
pub struct StartUpload {
    /// Opens sessions.
    pub entry: EntryPoint,
    /// Makes upload forms.
    pub presign: Arc<dyn PresignUpload>,
    /// Reads how far searches are.
    pub jobs: Jobs,
    /// The key prefix and the limits of uploads.
    pub settings: Settings,
}

/// A search to be announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSearch {
    /// The name that the reviewer gives it, up to 255 characters.
    pub name: String,
    /// The files to upload, 1 to 50.
    pub files: Vec<NewFile>,
}

/// A file to be announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewFile {
    /// Its name without a path, up to 255 characters.
    pub name: String,
    /// Its size in bytes, at least 1.
    pub size_bytes: u64,
}

/// An announced search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// The id under which its state can be read.
    pub search_id: SearchId,
    /// Its files, in the order of the request.
    pub files: Vec<Upload>,
}

/// What became of a request that named a key of its own.
#[derive(Debug)]
pub enum Keyed {
    /// It is announced, now or by an earlier request with this key.
    Announced(Announced),
    /// An earlier request with this key asked for something else.
    Differs,
}

/// An announced file, and how to upload it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The file's id in the search's state.
    pub file_id: FileId,
    /// Its name as announced.
    pub name: String,
    /// The form that uploads it, valid for [`Settings::upload_valid_for`].
    pub upload: PresignedPost,
}

/// A file whose upload is to be granted.
struct Wanted {
    file_id: FileId,
    name: String,
}

/// A search that is ready to be announced.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The answer to the caller, once the search is announced.
    pub announced: Announced,
    started: SearchUploadStarted,
    token: Token,
    job: Job,
}

/// Why a search was not announced.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is at fault; nothing is stored.
    #[error("the manifest is not valid")]
    Invalid(Vec<ManifestFault>),
    /// A store did not answer; nothing that anybody could see is stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The announcement could not be written.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The session was not committed, or its outcome is unknown.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl StartUpload {
    /// The function over these ports.
    ///
    /// # Errors
    /// When a service that it uses is not configured.
    pub fn over(ports: &Ports) -> Result<Self, Missing> {
        Ok(Self {
            entry: ports.engine.entry_point(NAME)?,
            presign: ports.uploads.clone()?,
            jobs: ports.jobs()?,
            settings: ports.settings.clone(),
        })
    }

    /// Announces a search.
    ///
    /// # Errors
    /// When the manifest is not valid, or something did not answer.
    pub async fn create(&self, project_id: ProjectId, request: &NewSearch) -> Result<Announced, Error> {
        let prepared = self.prepare(project_id, request).await?;
        self.announce(&prepared).await?;
        Ok(prepared.announced)
    }

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
        let search_id = ids::keyed_search(project_id, key);
        if let Some(job) = self.jobs.job(search_id).await? {
            return self.repeat(request, &job).await;
        }
        // Two requests at once announce the same session; the second commit changes nothing.
        let prepared = self.prepare_as(search_id, project_id, request).await?;
        self.announce(&prepared).await?;
        Ok(Keyed::Announced(prepared.announced))
    }

    async fn repeat(&self, request: &NewSearch, job: &Job) -> Result<Keyed, Error> {
        let names = job.files.iter().map(|file| file.name.as_deref());
        let is_same = job.name.as_deref() == Some(request.name.as_str())
            && names.eq(request.files.iter().map(|file| Some(file.name.as_str())));
        if !is_same {
            return Ok(Keyed::Differs);
        }
        let open = !job.state.has_ended();
        let missing = job.files.iter().filter(|file| open && !file.received);
        let wanted: Vec<Wanted> = missing
            .map(|file| Wanted { file_id: file.file_id, name: file.name.clone().unwrap_or_default() })
            .collect();
        let metadata =
            UploadMetadata { search_name: request.name.clone(), expected_files: request.files.len() };
        let now = self.host().now();
        let keys = self.keys(job.project_id, job.search_id, &wanted);
        let tokens: Vec<Token> = keys.iter().filter_map(|key| key.token.clone()).collect();
        if !tokens.is_empty() {
            self.entry.tokens.grant(job.search_id, &tokens, now).await?;
        }
        let files = self.presign(&keys, &metadata, now).await?;
        Ok(Keyed::Announced(Announced { search_id: job.search_id, files }))
    }

    /// Prepares a search so far that its files can be uploaded, without announcing it. Whoever has to remember
    /// the uploads does it before [`StartUpload::announce`]; should that never happen, the uploads themselves
    /// bring the search about.
    ///
    /// # Errors
    /// When the manifest is not valid, or something did not answer. Then nothing that anybody could see is stored.
    pub async fn prepare(&self, project_id: ProjectId, request: &NewSearch) -> Result<Prepared, Error> {
        let search_id = SearchId::from_uuid(self.host().fresh_id());
        self.prepare_as(search_id, project_id, request).await
    }

    async fn prepare_as(
        &self,
        search_id: SearchId,
        project_id: ProjectId,
        request: &NewSearch,
    ) -> Result<Prepared, Error> {
        let manifest = self.manifest(search_id, request)?;
        let now = self.host().now();
        let wanted = |file: &ManifestFile| Wanted { file_id: file.file_id, name: file.name.clone() };
        let keys = self.keys(project_id, search_id, &manifest.files.iter().map(wanted).collect::<Vec<_>>());
        let token = self.entry.first_token(ids::announcement(search_id), search_id);
        let tokens: Vec<Token> =
            keys.iter().filter_map(|key| key.token.clone()).chain([token.clone()]).collect();
        self.entry.tokens.grant(search_id, &tokens, now).await?;
        let metadata = UploadMetadata { search_name: manifest.name.clone(), expected_files: keys.len() };
        let files = self.presign(&keys, &metadata, now).await?;
        let job = new_job(project_id, search_id, &manifest, now);
        let started = SearchUploadStarted { project_id, manifest };
        Ok(Prepared { announced: Announced { search_id, files }, started, token, job })
    }

    /// Announces a prepared search: job and announcement are stored together.
    ///
    /// # Errors
    /// When the session is not committed, or its outcome is unknown.
    pub async fn announce(&self, prepared: &Prepared) -> Result<(), Error> {
        let search_id = prepared.job.search_id;
        let mut session = self.entry.session(ids::announcement(search_id), search_id);
        session.send_granted(
            &SearchEvent::SearchUploadStarted(prepared.started.clone()),
            prepared.token.clone(),
        )?;
        session.show(View::from(&prepared.job));
        self.commit(session, "announced the search, and gave out its uploads").await
    }

    async fn commit(&self, session: Opened<'_>, why: &str) -> Result<(), Error> {
        for message in session.commit().await? {
            self.reporter().note(Some(&message), Verdict::Handled, why);
        }
        Ok(())
    }

    fn reporter(&self) -> &Reporter {
        &self.entry.sessions.dispatcher.reporter
    }

    fn host(&self) -> &dyn Host {
        self.reporter().host.as_ref()
    }

    fn manifest(&self, search: SearchId, request: &NewSearch) -> Result<Manifest, Error> {
        // A manifest with more files than numbers has too many anyway, and is refused below.
        let files = (0..=u8::MAX).cycle().zip(&request.files).map(|(index, file)| ManifestFile {
            file_id: FileId::announced(search, index),
            name: file.name.clone(),
            size_bytes: file.size_bytes,
        });
        let manifest = Manifest { name: request.name.clone(), files: files.collect() };
        let faults = manifest.faults(self.settings.max_file_bytes);
        if faults.is_empty() { Ok(manifest) } else { Err(Error::Invalid(faults)) }
    }

    fn keys(&self, project: ProjectId, search: SearchId, files: &[Wanted]) -> Vec<ObjectKey> {
        let key = |file: &Wanted| ObjectKey {
            prefix: self.settings.key_prefix.clone(),
            project,
            search,
            file: file.file_id,
            token: Some(Token::minted_at_entry(search, self.host().fresh_id())),
            name: file.name.clone(),
        };
        files.iter().map(key).collect()
    }

    async fn presign(
        &self,
        keys: &[ObjectKey],
        metadata: &UploadMetadata,
        now: Timestamp,
    ) -> Result<Vec<Upload>, StoreError> {
        let expires_at = now.checked_add(self.settings.upload_valid_for).unwrap_or(Timestamp::MAX);
        let mut uploads = Vec::with_capacity(keys.len());
        for key in keys {
            let grant = UploadGrant {
                key: key.to_string(),
                max_bytes: self.settings.max_file_bytes,
                metadata: metadata.to_map(),
                expires_at,
            };
            let upload = self.presign.presign(&grant).await?;
            uploads.push(Upload { file_id: key.file, name: key.name.clone(), upload });
        }
        Ok(uploads)
    }
}

fn new_job(project_id: ProjectId, search_id: SearchId, manifest: &Manifest, now: Timestamp) -> Job {
    let files = manifest.files.iter().map(|file| JobFile {
        file_id: file.file_id,
        name: Some(file.name.clone()),
        size_bytes: Some(file.size_bytes),
        received: false,
        outcome: None,
    });
    Job {
        search_id,
        project_id,
        name: Some(manifest.name.clone()),
        state: JobState::Uploading,
        reason: None,
        files: files.collect(),
        created_at: now,
        completed_at: None,
        revision: 0,
    }
}
