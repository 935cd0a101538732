//! Repairing a search that has ended: what of it has failed is read anew, by a search of its own that names the one it
//! repairs.
//!
//! A search's id is used once, so the original stays as it ended. All repairs of a search, and repairs of those, are written
//! down in one record under the original's id ([`Repairs`]), which each repair reads and changes in the session that
//! announces it: so of two at once one wins, and the other is told. Files that are still stored are not uploaded again: the
//! new search is told where they are.

mod record;

use std::collections::{BTreeMap, BTreeSet};

use imports::messages::{ObjectRef, SearchUploadSaved, SearchUploadStarted};
use imports::{
    FileId, Job, JobFile, Manifest, ManifestFile, ObjectFacts, ObjectKey, Outcome, SearchEvent, SearchId,
    UploadMetadata, ids,
};
use messages::StoreError;
use outbox::View;
use outbox::session::CommitError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::announce::Announcement;
use super::idempotent_create::first_request;
use super::{Announced, Error, NewFile, NewSearch, ProjectAccess, SearchService};

pub use self::record::{Fate, FileOf, REPAIRS, Repaired, Repairs};
pub(super) use self::record::{fate, key};

/// The most records that one repair mends.
pub(super) const MAX_MENDED: usize = 10_000;
/// The most searches that repair one search: each of them is read before there is another one.
pub(super) const MAX_REPAIRS: usize = 100;
/// How often somebody else may come first before a request is given up.
pub(super) const TRIES: usize = 5;
/// How many unreadable records are looked at together.
const UNREAD_PAGE: usize = 1_000;

/// What of a search is to be repaired.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRepair {
    /// The name of the search that repairs it; its own if none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The files, 50 at most. If none is named, all that were not read to their end and are still stored are read again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRepair>,
}

/// A file to be repaired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRepair {
    /// The file of the search.
    #[schema(value_type = Uuid)]
    pub file_id: FileId,
    /// A file that is to be uploaded and read instead; without it, what is stored is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<NewFile>,
    /// The unreadable records of the file that the replacement has in a form that can be read, by their places in the file,
    /// 10,000 at most for all files together. The rest of the file stays as it was read. Without them the replacement is for the whole file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub records: BTreeSet<u64>,
}

/// What became of a request to repair a search.
#[derive(Debug)]
pub enum Repair {
    /// It is repaired by the search that is announced with this, now or by an earlier request with this key.
    Announced(Announced),
    /// Nothing is changed.
    Refused(Refusal),
    /// There is no such search, or it is not the caller's.
    Unknown,
}

/// Why a search is not repaired as a request asks for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It may come right by itself.
    #[error("the search has not ended")]
    Running,
    /// What is stored of it goes.
    #[error("the search was deleted")]
    Deleted,
    /// It was repaired as often as a search may be.
    #[error("the search was repaired {MAX_REPAIRS} times; import the files as a new search")]
    TooOften,
    /// All files were read, or none that was not is stored.
    #[error("no file of the search has failed and is still stored")]
    NothingToRead,
    /// More than one repair mends.
    #[error("one repair mends at most {MAX_MENDED} records")]
    TooManyRecords,
    /// The key.
    #[error("the idempotency key was used for something else before")]
    KeyUsed,
    /// Some of the files, by their places in the request.
    #[error("some of the files cannot be repaired like that")]
    Files(Vec<(usize, FileRefusal)>),
}

impl Refusal {
    /// Whether the same request would be refused in any state of the search.
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::KeyUsed | Self::TooManyRecords => true,
            Self::Files(refused) => refused.iter().any(|(_, refusal)| refusal.is_of_request()),
            Self::Running | Self::Deleted | Self::TooOften | Self::NothingToRead => false,
        }
    }
}

/// Why a file is not repaired as a request asks for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// No such file.
    #[error("the search has no such file")]
    Unknown,
    /// Which of the two should count?
    #[error("the file is named twice")]
    Twice,
    /// Records without a file that has them.
    #[error("mended records come in a file: its name and size are missing")]
    NoReplacement,
    /// It need not be read anew.
    #[error("the file was read to its end")]
    WasRead,
    /// None of it is stored, so nothing can be added to it.
    #[error("the file was not read to its end, so all of it has to be repaired")]
    NotRead,
    /// It never arrived, or was removed.
    #[error("the file is not stored; upload it again")]
    Gone,
    /// Somebody came first.
    #[error("search {0} reads the file anew")]
    UnderRepair(SearchId),
    /// A record that was read, or is not kept, or is not there.
    #[error("record {0} is not among the unreadable records that are kept")]
    NotUnread(u64),
    /// Somebody came first.
    #[error("record {0} is mended by search {1}")]
    IsMended(u64, SearchId),
}

impl FileRefusal {
    fn is_of_request(self) -> bool {
        matches!(self, Self::Unknown | Self::Twice | Self::NoReplacement)
    }
}

/// What is known of a search's repairs.
#[derive(Debug, Clone)]
pub struct Known {
    /// The search that is repaired; the search itself, unless it is a repair.
    pub original: SearchId,
    /// What was done.
    pub repairs: Repairs,
    /// The searches that repair it, as far as they are there.
    pub jobs: BTreeMap<SearchId, Job>,
}

impl Known {
    /// What has become of a file that stands for another one.
    pub fn fate(&self, file: FileOf) -> Fate {
        fate(&self.jobs, file)
    }

    /// The search that has a record of a file mended, or is about to.
    pub fn is_mended(&self, search_id: SearchId, file_id: FileId, record: u64) -> Option<SearchId> {
        self.repairs.mends(FileOf { search_id, file_id }, record, |file| self.fate(file))
    }
}

/// A file of the search that is to be announced.
struct Part {
    of: FileOf,
    records: BTreeSet<u64>,
    file: NewFile,
    /// Where it is, if it need not be uploaded.
    stored: Option<ObjectRef>,
}

impl SearchService {
    /// Announces a search that repairs another one. With a key it is announced once, however often it is asked for.
    ///
    /// # Errors
    /// As [`SearchService::create`]. Then nothing that anybody could see is stored, or the key says what is.
    pub async fn repair(
        &self,
        caller: &ProjectAccess,
        search_id: SearchId,
        request: &NewRepair,
        key: Option<&str>,
    ) -> Result<Repair, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Repair::Unknown) };
        let keyed = match key {
            // A key is one line, so no other request is of this one.
            Some(key) => Some(self.keyed_search(job.project_id, &format!("{search_id}\n{key}")).await?),
            None => None,
        };
        for _ in 0..TRIES {
            if let Some(keyed) = keyed
                && let Some(repeated) = self.repeated(keyed, request).await?
            {
                return Ok(repeated);
            }
            match self.try_to_repair(&job, request, keyed).await {
                // Somebody else repairs or deletes one of these searches: it may be another answer now.
                Err(Error::Commit(error)) if error.is_refused() => {}
                answer => return answer,
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// The answer to a request that was made before.
    async fn repeated(&self, keyed: SearchId, request: &NewRepair) -> Result<Option<Repair>, Error> {
        let Some(job) = self.jobs.job(keyed).await? else { return Ok(None) };
        let first = self.entry.sessions.records.record(&first_request(keyed)).await?;
        let is_it =
            first.and_then(|first| NewRepair::deserialize(&first.body).ok()).as_ref() == Some(request);
        if !is_it {
            return Ok(Some(Repair::Refused(Refusal::KeyUsed)));
        }
        Ok(Some(Repair::Announced(Announced { search_id: keyed, files: self.forms(&job).await? })))
    }

    async fn try_to_repair(
        &self,
        job: &Job,
        request: &NewRepair,
        keyed: Option<SearchId>,
    ) -> Result<Repair, Error> {
        if !job.state.has_ended() {
            return Ok(Repair::Refused(Refusal::Running));
        }
        let search_id = keyed.unwrap_or_else(|| SearchId::from_uuid(self.host().fresh_id()));
        // After a refusal the same search is announced by another session.
        let mut session = self.entry.session(search_id);
        let original = job.repairs.unwrap_or(job.search_id);
        let record = session.read(key(original)).await?.map(|record| record.body);
        let known = self.known(original, record).await?;
        let parts = match self.parts(job, request, &known).await? {
            Ok(parts) => parts,
            Err(refusal) => return Ok(Repair::Refused(refusal)),
        };
        let name = request.name.clone().or_else(|| job.name.clone());
        let files = parts.iter().map(|part| part.file.clone()).collect();
        let new = NewSearch { name: name.unwrap_or_else(|| job.search_id.to_string()), files };
        let repairs = Some(original);
        let (announcement, is_granted) = self.begin(search_id, job.project_id, &new, repairs).await?;
        if !is_granted {
            // Under this key another number of files was asked for, and never announced.
            return Ok(Repair::Refused(Refusal::KeyUsed));
        }
        let Announcement { started, token, mut job } = announcement;
        session.send_granted(&SearchEvent::SearchUploadStarted(started.clone()), token)?;
        let mut repairs = known.repairs;
        for ((part, file), shown) in parts.into_iter().zip(&started.manifest.files).zip(&mut job.files) {
            if let Some(object) = &part.stored {
                let saved = saved(&started, file, object);
                let token = ids::upload_token(search_id, file.file_id);
                session.send_granted(&SearchEvent::SearchUploadSaved(saved), token)?;
                shown.received = true;
            }
            let by = FileOf { search_id, file_id: file.file_id };
            repairs.files.push(Repaired { of: part.of, records: part.records, by });
        }
        session.show(View::from(&job));
        session.write(key(original), written(&repairs)?);
        if keyed.is_some() {
            session.write(first_request(search_id), written(request)?);
        }
        self.commit(session, "announced a repair, and gave out its uploads").await?;
        Ok(Repair::Announced(Announced { search_id, files: self.forms(&job).await? }))
    }

    /// What is known of the repairs of a search, and of those that it belongs to.
    ///
    /// # Errors
    /// When a store does not answer, or holds something else.
    pub async fn repairs(&self, job: &Job) -> Result<Known, StoreError> {
        let original = job.repairs.unwrap_or(job.search_id);
        if job.repairs.is_none() && !job.state.has_ended() {
            // Only what has ended is repaired; streams look at many that have not.
            return self.known(original, None).await;
        }
        let record = self.entry.sessions.records.record(&key(original)).await?;
        self.known(original, record.map(|record| record.body)).await
    }

    pub(super) async fn known(
        &self,
        original: SearchId,
        record: Option<serde_json::Value>,
    ) -> Result<Known, StoreError> {
        let repairs = record.map(|body| Repairs::deserialize(&body)).transpose().map_err(|error| {
            StoreError::unusable(format!("reading the repairs of search {original}"), error)
        })?;
        let repairs = repairs.unwrap_or_default();
        let mut jobs = BTreeMap::new();
        for search in repairs.searches() {
            jobs.extend(self.jobs.job(search).await?.map(|job| (search, job)));
        }
        Ok(Known { original, repairs, jobs })
    }

    /// What a request comes to.
    async fn parts(
        &self,
        job: &Job,
        request: &NewRepair,
        known: &Known,
    ) -> Result<Result<Vec<Part>, Refusal>, StoreError> {
        if known.repairs.deleted.contains(&job.search_id) {
            return Ok(Err(Refusal::Deleted));
        }
        if known.repairs.searches().len() >= MAX_REPAIRS {
            return Ok(Err(Refusal::TooOften));
        }
        if request.files.iter().map(|file| file.records.len()).sum::<usize>() > MAX_MENDED {
            return Ok(Err(Refusal::TooManyRecords));
        }
        if request.files.is_empty() {
            return self.all_that_failed(job, known).await;
        }
        let (mut parts, mut refused, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        // More than a search may have are refused with the announcement.
        for (place, asked) in request.files.iter().enumerate().take(imports::manifest::MAX_FILES + 1) {
            let part = if seen.insert(asked.file_id) {
                self.part(job, asked, known).await?
            } else {
                Err(FileRefusal::Twice)
            };
            match part {
                Ok(part) => parts.push(part),
                Err(refusal) => refused.push((place, refusal)),
            }
        }
        Ok(if refused.is_empty() { Ok(parts) } else { Err(Refusal::Files(refused)) })
    }

    async fn all_that_failed(
        &self,
        job: &Job,
        known: &Known,
    ) -> Result<Result<Vec<Part>, Refusal>, StoreError> {
        let (mut parts, mut refused) = (Vec::new(), Vec::new());
        for (place, file) in job.files.iter().enumerate().filter(|(_, file)| !was_read(file)) {
            let asked = FileRepair { file_id: file.file_id, replacement: None, records: BTreeSet::new() };
            match self.part(job, &asked, known).await? {
                Ok(part) => parts.push(part),
                Err(FileRefusal::Gone) => {}
                Err(refusal) => refused.push((place, refusal)),
            }
        }
        Ok(match (parts.is_empty(), refused.is_empty()) {
            (false, _) => Ok(parts),
            (true, false) => Err(Refusal::Files(refused)),
            (true, true) => Err(Refusal::NothingToRead),
        })
    }

    async fn part(
        &self,
        job: &Job,
        asked: &FileRepair,
        known: &Known,
    ) -> Result<Result<Part, FileRefusal>, StoreError> {
        let of = FileOf { search_id: job.search_id, file_id: asked.file_id };
        let Some(file) = job.files.iter().find(|file| file.file_id == asked.file_id) else {
            return Ok(Err(FileRefusal::Unknown));
        };
        let part = |file, stored| Part { of, records: asked.records.clone(), file, stored };
        if !asked.records.is_empty() {
            let refusal = self.mendable(file, asked, of, known).await?;
            return Ok(match (&asked.replacement, refusal) {
                (None, _) => Err(FileRefusal::NoReplacement),
                (Some(_), Some(refusal)) => Err(refusal),
                (Some(replacement), None) => Ok(part(replacement.clone(), None)),
            });
        }
        if was_read(file) {
            return Ok(Err(FileRefusal::WasRead));
        }
        if let Some(search) = known.repairs.reads_anew(of, |file| known.fate(file)) {
            return Ok(Err(FileRefusal::UnderRepair(search)));
        }
        if let Some(replacement) = &asked.replacement {
            return Ok(Ok(part(replacement.clone(), None)));
        }
        for earlier in known.repairs.earlier(of) {
            if let Some((name, object)) = self.stored_object(job, earlier).await? {
                let file = NewFile { name, size_bytes: object.size_bytes };
                return Ok(Ok(part(file, Some(object))));
            }
        }
        Ok(Err(FileRefusal::Gone))
    }

    /// What speaks against mending records of a file.
    async fn mendable(
        &self,
        file: &JobFile,
        asked: &FileRepair,
        of: FileOf,
        known: &Known,
    ) -> Result<Option<FileRefusal>, StoreError> {
        if !was_read(file) {
            return Ok(Some(FileRefusal::NotRead));
        }
        for record in &asked.records {
            if let Some(search) = known.is_mended(of.search_id, of.file_id, *record) {
                return Ok(Some(FileRefusal::IsMended(*record, search)));
            }
        }
        let mut wanted = asked.records.clone();
        while let Some(first) = wanted.first().copied() {
            let Some(before) = first.checked_sub(1) else { return Ok(Some(FileRefusal::NotUnread(first))) };
            let found = self.studies.quarantined(of.search_id, of.file_id, before, UNREAD_PAGE).await?;
            let known = found.len();
            found.iter().for_each(|unread| {
                wanted.remove(&unread.record.number);
            });
            if known == 0 || wanted.first() == Some(&first) {
                return Ok(Some(FileRefusal::NotUnread(first)));
            }
        }
        Ok(None)
    }

    /// Where a file is stored, and its name.
    async fn stored_object(
        &self,
        job: &Job,
        file: FileOf,
    ) -> Result<Option<(String, ObjectRef)>, StoreError> {
        let prefix = &self.settings.key_prefix;
        let folder = ObjectKey::folder(prefix, job.project_id, file.search_id);
        let found = self.bucket.find(&format!("{folder}{}/", file.file_id)).await?;
        let mut keys: Vec<(ObjectKey, ObjectRef)> = found
            .into_iter()
            .filter_map(|object| Some((ObjectKey::parse(prefix, &object.key).ok()?, object)))
            .collect();
        // What was uploaded by a form goes before what somebody has put there by hand.
        keys.sort_by_key(|(key, _)| key.token.is_none());
        for (key, object) in keys {
            if let Some(facts) = self.objects.head(&object.bucket, &object.key, None).await? {
                let ObjectFacts { size_bytes, version, metadata: _ } = facts;
                return Ok(Some((key.name, ObjectRef { size_bytes, version, ..object })));
            }
        }
        Ok(None)
    }
}

fn was_read(file: &JobFile) -> bool {
    matches!(file.outcome, Some(Outcome::Completed(_)))
}

/// What tells that a file of an announced search is stored already.
fn saved(started: &SearchUploadStarted, file: &ManifestFile, object: &ObjectRef) -> SearchUploadSaved {
    let Manifest { name, files, .. } = &started.manifest;
    let metadata = UploadMetadata { search_name: name.clone(), expected_files: files.len() };
    SearchUploadSaved {
        project_id: started.project_id,
        file_id: file.file_id,
        file_name: file.name.clone(),
        object: object.clone(),
        metadata: metadata.to_map(),
    }
}

pub(super) fn written(value: &impl Serialize) -> Result<serde_json::Value, StoreError> {
    serde_json::to_value(value).map_err(|error| StoreError::unusable("writing a repair down", error))
}
