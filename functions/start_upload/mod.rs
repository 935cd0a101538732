//! The function in front: it announces a search and gives out one upload per file.
//!
//! There is no message whose redelivery would save a crashed request, so the job and the announcement are stored
//! in one transactional session. Tokens are granted before that: a message may arrive the moment it is sent.
//!
//! - [`StartUpload::create`] and [`StartUpload::status`] are the function; `create` is made of
//!   [`StartUpload::prepare`] and [`StartUpload::announce`], for whoever has to act in between;
//! - [`http`] is its face: a router, for Lambda and for a port of one's own.

pub mod http;
mod list;
mod withdraw;

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Missing, Service, Uses};
use contracts::manifest::ManifestFault;
use contracts::message::SearchUploadStarted;
use contracts::store::chain;
use contracts::{
    Body, FileId, Job, JobFile, JobState, Manifest, ManifestFile, Message, MessageId, ObjectKey, ProjectId,
    Reporter, SearchId, SessionId, StoreError, Token, Traceparent, UploadMetadata, Verdict,
};
use dedup::GrantTokens;
use imports::{PresignUpload, PresignedPost, ReadJobs, UploadGrant, Write};
use jiff::Timestamp;
use outbox::session::{CommitError, Options};
use outbox::{CommitSession, Owner, Queue, SendMessages, Session, StageError, SweepOutbox};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use worker::Dispatcher;

pub use self::withdraw::Withdrawal;

/// The function's name, in logs and in the messages it sends.
pub const FUNCTION: &str = "start-upload";

/// What the function works on.
pub const USES: Uses = Uses {
    function: FUNCTION,
    services: &[Service::Database, Service::Ledger, Service::Uploads],
    receives: None,
    sends: &[Queue::Control, Queue::Saga],
};

/// The ports of the function.
#[derive(Clone)]
pub struct Ports {
    /// Stores sessions.
    pub sessions: Arc<dyn CommitSession<Write>>,
    /// Finds their entries again.
    pub outbox: Arc<dyn SweepOutbox>,
    /// Takes control messages.
    pub queue: Arc<dyn SendMessages>,
    /// Puts tokens into partitions.
    pub tokens: Arc<dyn GrantTokens>,
    /// Makes upload forms.
    pub presign: Arc<dyn PresignUpload>,
    /// Reads jobs.
    pub jobs: Arc<dyn ReadJobs>,
    /// Sends what a session committed.
    pub dispatcher: Dispatcher,
    /// Time, ids, and who wants to know.
    pub reporter: Reporter,
}

/// The function's settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// What object keys begin with.
    pub key_prefix: String,
    /// The largest file accepted, in bytes.
    pub max_file_bytes: u64,
    /// How long an upload form is valid.
    pub upload_valid_for: Duration,
    /// The transactional session's settings.
    pub session: Options,
}

/// The function.
#[derive(Clone)]
pub struct StartUpload {
    /// Its ports.
    pub ports: Ports,
    /// Its settings.
    pub settings: Settings,
}

/// A search to be announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSearch {
    /// Its name.
    pub name: String,
    /// Its files.
    pub files: Vec<NewFile>,
}

/// A file to be announced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewFile {
    /// Its name, without a path.
    pub name: String,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// An announced search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Announced {
    /// The search.
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
    /// The file.
    pub file_id: FileId,
    /// Its name.
    pub name: String,
    /// The form that uploads it.
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
    /// What the caller will be told.
    pub announced: Announced,
    message: Message,
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
    /// The session was not committed, or nobody knows yet.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl StartUpload {
    /// The function on a backend.
    ///
    /// # Errors
    /// When a service that it uses is not configured.
    pub fn over(backend: &Backend) -> Result<Self, Missing> {
        let documents = backend.documents()?;
        Ok(Self {
            ports: Ports {
                sessions: Arc::clone(&documents.commit_sessions),
                outbox: documents.session_outbox.clone(),
                queue: Arc::clone(&backend.queue),
                tokens: Arc::clone(&backend.partitions()?.tokens),
                presign: backend.uploads.clone()?,
                jobs: Arc::clone(&documents.read_jobs),
                dispatcher: backend.dispatcher(FUNCTION)?,
                reporter: backend.reporter(FUNCTION),
            },
            settings: Settings {
                key_prefix: backend.config.key_prefix.clone(),
                max_file_bytes: backend.config.max_file_bytes,
                upload_valid_for: backend.config.upload_valid_for,
                session: Options {
                    max_commit: backend.config.session_max_commit,
                    increment: backend.config.session_increment,
                    ..Options::default()
                },
            },
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
        let search_id = SearchId::keyed(project_id, key);
        if let Some(job) = self.ports.jobs.job(search_id).await? {
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
        let now = self.ports.reporter.host.now();
        let keys = self.keys(job.project_id, job.search_id, &wanted);
        let tokens: Vec<Token> = keys.iter().filter_map(|key| key.token.clone()).collect();
        if !tokens.is_empty() {
            self.ports.tokens.grant(job.search_id, &tokens, now).await?;
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
        let search_id = SearchId::from_uuid(self.ports.reporter.host.fresh_id());
        self.prepare_as(search_id, project_id, request).await
    }

    async fn prepare_as(
        &self,
        search_id: SearchId,
        project_id: ProjectId,
        request: &NewSearch,
    ) -> Result<Prepared, Error> {
        let manifest = self.manifest(search_id, request)?;
        let now = self.ports.reporter.host.now();
        let wanted = |file: &ManifestFile| Wanted { file_id: file.file_id, name: file.name.clone() };
        let keys = self.keys(project_id, search_id, &manifest.files.iter().map(wanted).collect::<Vec<_>>());
        let started = Token::minted_at_entry(search_id, self.ports.reporter.host.fresh_id());
        let tokens: Vec<Token> =
            keys.iter().filter_map(|key| key.token.clone()).chain([started.clone()]).collect();
        self.ports.tokens.grant(search_id, &tokens, now).await?;
        let metadata = UploadMetadata { search_name: manifest.name.clone(), expected_files: keys.len() };
        let files = self.presign(&keys, &metadata, now).await?;
        let body = SearchUploadStarted { project_id, manifest: manifest.clone() };
        let message = self.message(search_id, started, Body::SearchUploadStarted(body));
        let job = new_job(project_id, search_id, &manifest, now);
        Ok(Prepared { announced: Announced { search_id, files }, message, job })
    }

    /// Announces a prepared search: job and announcement are stored together.
    ///
    /// # Errors
    /// When the session is not committed, or nobody knows yet.
    pub async fn announce(&self, prepared: &Prepared) -> Result<(), Error> {
        let (host, search_id) = (self.ports.reporter.host.as_ref(), prepared.job.search_id);
        let id = SessionId::announcing(search_id);
        let mut session = Session::open(host, id, search_id, self.settings.session.clone());
        session.send(&prepared.message)?;
        session.write(Write::CreateJob(Box::new(prepared.job.clone())));
        self.commit(session, &prepared.message, "announced the search, and gave out its uploads").await
    }

    /// Commits a session that sends one message.
    async fn commit(&self, session: Session<Write>, message: &Message, why: &str) -> Result<(), Error> {
        let owner = Owner::Session(session.id());
        let host = self.ports.reporter.host.as_ref();
        session.commit(host, self.ports.queue.as_ref(), self.ports.sessions.as_ref()).await?;
        self.ports.reporter.note(Some(message), Verdict::Handled, why);
        // The control message would do it too, only later; whatever goes wrong here is its business.
        if let Err(error) = self.ports.dispatcher.dispatch_record(self.ports.outbox.as_ref(), owner).await {
            let (function, correlation_id, message_id) = (FUNCTION, message.correlation_id, message.id);
            let error = chain(&error);
            tracing::warn!(function, %correlation_id, %message_id, error, "the message is left to the control message");
        }
        Ok(())
    }

    fn message(&self, search_id: SearchId, token: Token, body: Body) -> Message {
        let host = self.ports.reporter.host.as_ref();
        let id = MessageId::from_uuid(host.fresh_id());
        Message {
            id,
            source: FUNCTION.into(),
            time: host.now(),
            correlation_id: search_id,
            causation_id: None,
            token: Some(token),
            traceparent: Some(Traceparent::of(search_id, id.derive(0)).to_string()),
            body,
        }
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
            token: Some(Token::minted_at_entry(search, self.ports.reporter.host.fresh_id())),
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
            let upload = self.ports.presign.presign(&grant).await?;
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
