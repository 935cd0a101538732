//! Announcing a search: grants tokens, signs upload forms and stores job and announcement in one session.

use imports::manifest::ManifestFault;
use imports::messages::SearchUploadStarted;
use imports::ports::Quota;
use imports::{
    FileId, Job, JobFile, JobState, Manifest, ManifestFile, ObjectKey, PresignedPost, ProjectId, SearchEvent,
    SearchId, UploadGrant, UploadMetadata, ids,
};
use jiff::Timestamp;
use messages::{StoreError, Token};
use outbox::session::CommitError;
use outbox::{Key, StageError, View};
use saga::engine::OpenSession;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::SearchService;
use crate::tries::MAX_TRIES;

/// An import to announce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewSearch {
    /// The name, up to 255 characters, and up to 1,999 bytes when everything except ASCII letters and digits is
    /// percent-encoded.
    pub name: String,
    /// The files to upload, 1 to 50.
    pub files: Vec<NewFile>,
}

/// A file to announce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewFile {
    /// The file name without a path, up to 255 characters and up to about 868 bytes of UTF-8, depending on the
    /// configured key prefix.
    pub name: String,
    /// The size in bytes, at least 1.
    pub size_bytes: u64,
}

/// An announced search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnnouncedSearch {
    /// The id of the search.
    pub search_id: SearchId,
    /// The files of the search, in the order of the request.
    pub files: Vec<Upload>,
}

/// An announced file and its upload form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Upload {
    /// The file's id within the search.
    pub file_id: FileId,
    /// The name as announced.
    pub name: String,
    /// The form that uploads it, valid for [`upload_valid_for`](imports::Settings::upload_valid_for).
    pub upload: PresignedPost,
}

/// A search that is prepared but not yet announced.
#[derive(Debug, Clone)]
pub struct PreparedSearch {
    /// The response to the client once the search is announced.
    pub announced: AnnouncedSearch,
    announcement: Announcement,
}

/// The data of an announcement.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    pub(crate) started: SearchUploadStarted,
    pub(crate) token: Token,
    pub(crate) job: Job,
}

/// Errors of announcing a search.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The request is invalid; nothing is stored.
    #[error("the manifest is not valid")]
    Invalid(Vec<ManifestFault>),
    /// The project has the maximum number of unfinished searches; nothing is stored.
    #[error("the review has {searches} unfinished imports, which is the maximum")]
    TooMany {
        /// The maximum number.
        searches: usize,
    },
    /// The files of the project's unfinished searches would exceed the limit; nothing is stored.
    #[error("the unfinished imports of the review would have {wanted} bytes in total, more than {bytes}")]
    TooMuch {
        /// The total size including this search.
        wanted: u64,
        /// The maximum total size.
        bytes: u64,
    },
    /// A store is unavailable; no visible data is stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The announcement could not be serialized.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The session was not committed, or its outcome is unknown.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl SearchService {
    /// Announces a search.
    ///
    /// # Errors
    /// Returns an error if the manifest is invalid or a store is unavailable.
    pub async fn create(&self, project_id: ProjectId, request: &NewSearch) -> Result<AnnouncedSearch, Error> {
        let prepared = self.prepare(project_id, request).await?;
        self.announce(&prepared).await?;
        Ok(prepared.announced)
    }

    /// Prepares a search so that its files can be uploaded, without announcing it. A client that records the uploads
    /// does so before [`SearchService::announce`]. If the announcement never follows, the uploads themselves start
    /// the search.
    ///
    /// # Errors
    /// Returns an error if the manifest is invalid or a store is unavailable. No visible data is stored then.
    pub async fn prepare(&self, project_id: ProjectId, request: &NewSearch) -> Result<PreparedSearch, Error> {
        let search_id = SearchId::from_uuid(self.host().fresh_id());
        let (announcement, _) = self.begin(search_id, project_id, request, None).await?;
        let files = self.forms(&announcement.job).await?;
        Ok(PreparedSearch { announced: AnnouncedSearch { search_id, files }, announcement })
    }

    /// Announces a prepared search: job and announcement are stored together.
    ///
    /// # Errors
    /// Returns an error if the session is not committed, or its outcome is unknown.
    pub async fn announce(&self, prepared: &PreparedSearch) -> Result<(), Error> {
        let Announcement { job, .. } = &prepared.announcement;
        let mut tries = 1..MAX_TRIES;
        loop {
            let session = self.entry.session(job.search_id);
            match self.send(session, &prepared.announcement, None).await {
                // The commit took too long; another session may be faster.
                Err(Error::Commit(error)) if error.is_refused() && tries.next().is_some() => {}
                done => return done,
            }
        }
    }

    /// Grants, once, all tokens that a search needs from outside. Returns `true` if they exist.
    pub(crate) async fn begin(
        &self,
        search_id: SearchId,
        project_id: ProjectId,
        request: &NewSearch,
        repairs: Option<SearchId>,
    ) -> Result<(Announcement, bool), Error> {
        let manifest = Manifest { repairs, ..self.manifest(search_id, request)? };
        self.allow(project_id, &manifest).await?;
        let now = self.host().now();
        let token = self.entry.named_token(ids::announcement(search_id), search_id);
        let uploads = manifest.files.iter().map(|file| ids::upload_token(search_id, file.file_id));
        let tokens: Vec<Token> = uploads.chain([token.clone()]).collect();
        let is_granted = self.entry.tokens.begin(search_id, &tokens, now).await?;
        let job = new_job(project_id, search_id, &manifest, now);
        let started = SearchUploadStarted { project_id, manifest };
        Ok((Announcement { started, token, job }, is_granted))
    }

    /// Rejects a search that would exceed the project's quota.
    async fn allow(&self, project_id: ProjectId, manifest: &Manifest) -> Result<(), Error> {
        let quota = self.settings.quota;
        // Searches within their share of the size limit reach the maximum number first, so counting them is enough.
        if announced_bytes(manifest) <= quota.share()
            && self.jobs.count_written_open(project_id, quota.searches).await? < quota.searches
        {
            return Ok(());
        }
        // Before rejecting, load the jobs: the count may include searches that ended within the last minute.
        let open = self.jobs.open(project_id, quota.searches).await?;
        exceeds(quota, &open, manifest).map_or(Ok(()), Err)
    }

    /// Stores job and announcement, and the request if it had a key.
    pub(crate) async fn send(
        &self,
        mut session: OpenSession<'_>,
        announcement: &Announcement,
        asked: Option<(Key, Value)>,
    ) -> Result<(), Error> {
        let Announcement { started, token, job } = announcement;
        session.send_granted(&SearchEvent::SearchUploadStarted(started.clone()), token.clone())?;
        session.show(View::from(job));
        if let Some((key, body)) = asked {
            session.write(key, body);
        }
        self.commit(session, "announced the import, and gave out its uploads").await
    }

    pub(crate) fn manifest(&self, search: SearchId, request: &NewSearch) -> Result<Manifest, Error> {
        // A manifest with more files than a `u8` can number is rejected below anyway.
        let files = (0..=u8::MAX).cycle().zip(&request.files).map(|(index, file)| ManifestFile {
            file_id: FileId::announced(search, index),
            name: file.name.clone(),
            size_bytes: file.size_bytes,
        });
        let manifest = Manifest { name: request.name.clone(), files: files.collect(), repairs: None };
        let faults = manifest.faults(&self.settings.manifest_limits());
        if faults.is_empty() { Ok(manifest) } else { Err(Error::Invalid(faults)) }
    }

    /// Signs forms for the files of a search that have not arrived.
    pub(crate) async fn forms(&self, job: &Job) -> Result<Vec<Upload>, StoreError> {
        let open = !job.state.has_ended();
        let name = job.name.clone().unwrap_or_default();
        let metadata = UploadMetadata { search_name: name, expected_files: job.files.len() };
        let now = self.host().now();
        let expires_at = now.checked_add(self.settings.upload_valid_for).unwrap_or(Timestamp::MAX);
        let mut uploads = Vec::with_capacity(job.files.len());
        for file in job.files.iter().filter(|file| open && !file.received) {
            let key = ObjectKey {
                prefix: self.settings.key_prefix.clone(),
                project: job.project_id,
                search: job.search_id,
                file: file.file_id,
                token: Some(ids::upload_token(job.search_id, file.file_id)),
                name: file.name.clone().unwrap_or_default(),
            };
            let grant = UploadGrant {
                key: key.to_string(),
                // Files that have not arrived were announced with their size.
                size_bytes: file.announced_bytes.or(file.size_bytes).unwrap_or_default(),
                metadata: metadata.to_map(),
                expires_at,
            };
            let upload = self.presign.presign(&grant).await?;
            uploads.push(Upload { file_id: key.file, name: key.name, upload });
        }
        Ok(uploads)
    }
}

/// Returns `true` if the search has ended before all of its files arrived. The forms of such a search are not signed
/// again.
pub(crate) fn has_ended_incomplete(job: &Job) -> bool {
    job.state.has_ended() && job.files.iter().any(|file| !file.received)
}

fn announced_bytes(manifest: &Manifest) -> u64 {
    manifest.files.iter().map(|file| file.size_bytes).fold(0, u64::saturating_add)
}

/// Returns the error if the open searches and the new one together exceed the project's quota.
fn exceeds(quota: Quota, open: &[Job], manifest: &Manifest) -> Option<Error> {
    let Quota { searches, bytes } = quota;
    if open.len() >= searches {
        return Some(Error::TooMany { searches });
    }
    let sizes = open.iter().flat_map(|job| &job.files).map(|file| file.announced_bytes.or(file.size_bytes));
    let wanted = sizes.flatten().fold(announced_bytes(manifest), u64::saturating_add);
    (wanted > bytes).then_some(Error::TooMuch { wanted, bytes })
}

pub(crate) fn new_job(
    project_id: ProjectId,
    search_id: SearchId,
    manifest: &Manifest,
    now: Timestamp,
) -> Job {
    let files = manifest.files.iter().map(|file| JobFile {
        file_id: file.file_id,
        name: Some(file.name.clone()),
        size_bytes: Some(file.size_bytes),
        announced_bytes: None,
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
        repairs: manifest.repairs,
        created_at: now,
        completed_at: None,
        revision: 0,
    }
}
