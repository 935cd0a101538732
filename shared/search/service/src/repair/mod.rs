//! Repairing a search that has ended: its failed files are read again by a separate search, which names the one it
//! repairs.
//!
//! A search's id is used once, so the original stays as it ended. All repairs of a search, and repairs of those, are
//! stored in one record under the original's id ([`Repairs`]). Each repair reads and changes the record in the
//! session that announces it, so one of two concurrent repairs succeeds and the other is refused. Files that are
//! still stored are not uploaded again: the new search receives their location.

mod record;

use std::collections::{BTreeMap, BTreeSet};

use imports::messages::{ObjectRef, SearchUploadSaved, SearchUploadStarted};
use imports::{
    FileId, FileRef, Job, JobFile, Jobs, Manifest, ManifestFile, ObjectFacts, ObjectKey, Outcome,
    SearchEvent, SearchId, UploadMetadata, ids,
};
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{ReadRecords, Record, View};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::announce::{Announcement, has_ended_incomplete};
use super::content;
use super::idempotent_create::first_request;
use super::tries::MAX_TRIES;
use super::{AnnouncedSearch, Error, NewFile, NewSearch, ProjectAccess, SearchService};

pub use self::record::{Fate, REPAIRS, RepairedFile, Repairs};
pub(super) use self::record::{fate, key};

/// The maximum number of records that one repair corrects.
pub(super) const MAX_CORRECTED: usize = 10_000;
/// The maximum number of searches that repair one search. Each repair is read before another repair is added.
pub(super) const MAX_REPAIRS: usize = 100;
/// The number of searches of a project that are read at a time.
const JOBS_PAGE: usize = 200;
/// The number of unreadable records that are read at a time.
const UNREAD_PAGE: usize = 1_000;

/// A request to repair an import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRepair {
    /// The name of the repairing import; the name of the repaired one if omitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The files to repair, up to 50. If it is empty, all failed files that are still stored are read again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRepair>,
}

/// A file to repair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRepair {
    /// The file of the import.
    #[schema(value_type = Uuid)]
    pub file_id: FileId,
    /// A file to be uploaded and read instead; if omitted, the stored file is read again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<NewFile>,
    /// The numbers of the records that the replacement contains in corrected form, up to 10,000 for all files
    /// together. The rest of the file stays as it was read. If empty, the replacement is for the whole file.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub records: BTreeSet<u64>,
}

/// The outcome of a request to repair a search.
#[derive(Debug)]
pub enum Repair {
    /// The repairing search is announced, by this request or by an earlier one with the same key.
    Announced(AnnouncedSearch),
    /// Nothing is changed.
    Refused(Refusal),
    /// The search does not exist, or the caller cannot access it.
    Unknown,
}

/// Reasons to refuse a repair.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The search may still succeed.
    #[error("the import has not ended")]
    Running,
    /// The data of the import is being deleted.
    #[error("the import was deleted")]
    Deleted,
    /// The search has the maximum number of repairs.
    #[error("the import was repaired {MAX_REPAIRS} times; import the files as a new import")]
    TooOften,
    /// All files were read, or none of the failed ones is stored.
    #[error("no failed file of the import is still stored")]
    NothingToRead,
    /// The request names too many records.
    #[error("one repair corrects up to {MAX_CORRECTED} records")]
    TooManyRecords,
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request before")]
    KeyUsed,
    /// An earlier request used the key, but its contents are not stored. See
    /// [`CreateOutcome::Unknown`](crate::CreateOutcome::Unknown).
    #[error(
        "an earlier request used the idempotency key, but its repair is not stored; try again in a few minutes, or use a \
         new key"
    )]
    KeyUnknown,
    /// The search of this key ended before all of its files arrived.
    #[error(
        "import {0} of this idempotency key ended before all files arrived; send the request with a new key"
    )]
    Ended(SearchId),
    /// Some of the files cannot be repaired. They are given by their index in the request.
    #[error("some of the files cannot be repaired as requested")]
    Files(Vec<(usize, FileRefusal)>),
}

impl Refusal {
    /// Returns `true` if the request would be refused in any state of the search.
    pub fn is_of_request(&self) -> bool {
        match self {
            Self::KeyUsed | Self::TooManyRecords => true,
            Self::Files(refused) => refused.iter().any(|(_, refusal)| refusal.is_of_request()),
            Self::Running
            | Self::Deleted
            | Self::TooOften
            | Self::NothingToRead
            | Self::KeyUnknown
            | Self::Ended(_) => false,
        }
    }
}

/// Reasons to refuse the repair of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileRefusal {
    /// The search has no such file.
    #[error("the import has no such file")]
    Unknown,
    /// It is ambiguous which entry counts.
    #[error("the file is named twice")]
    Twice,
    /// Corrected records need a file that contains them.
    #[error("corrected records need a replacement file; its name and size are missing")]
    NoReplacement,
    /// The file does not need a repair.
    #[error("the file was read completely")]
    WasRead,
    /// Nothing of the file is stored, so records cannot be added.
    #[error("the file was not read completely, so all of it has to be repaired")]
    NotRead,
    /// The file never arrived, or was deleted.
    #[error("the file is not stored; upload it again")]
    Gone,
    /// Another repair reads the file.
    #[error("import {0} reads the file again")]
    UnderRepair(SearchId),
    /// The record was read, is not stored, or does not exist.
    #[error("record {0} is not among the stored unreadable records")]
    NotUnread(u64),
    /// Another repair has corrected the record.
    #[error("record {0} is corrected by import {1}")]
    IsCorrected(u64, SearchId),
}

impl FileRefusal {
    fn is_of_request(self) -> bool {
        matches!(self, Self::Unknown | Self::Twice | Self::NoReplacement)
    }
}

/// A search's repairs and their state.
#[derive(Debug, Clone)]
pub struct SearchRepairs {
    /// The repaired search; the search itself, unless it is a repair.
    pub original: SearchId,
    /// The recorded repairs.
    pub repairs: Repairs,
    /// The repairing searches that exist.
    pub jobs: BTreeMap<SearchId, Job>,
}

impl SearchRepairs {
    /// Returns the repairs of a search and of the search that it repairs.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or the record is invalid.
    pub async fn of(jobs: &Jobs, records: &dyn ReadRecords, job: &Job) -> Result<Self, StoreError> {
        let original = job.repairs.unwrap_or(job.search_id);
        if job.repairs.is_none() && !job.state.has_ended() {
            // Only searches that have ended can be repaired. Event streams load many unfinished ones, so skip the
            // read.
            return Self::recorded(jobs, original, None).await;
        }
        Self::recorded(jobs, original, records.record(&key(original)).await?).await
    }

    /// Returns the repairs in the record of an original search.
    pub(super) async fn recorded(
        jobs: &Jobs,
        original: SearchId,
        record: Option<Record>,
    ) -> Result<Self, StoreError> {
        let repairs: Repairs =
            content::or_default(record, || format!("reading the repairs of search {original}"))?;
        let mut found = BTreeMap::new();
        for search in repairs.searches() {
            found.extend(jobs.job(search).await?.map(|job| (search, job)));
        }
        Ok(Self { original, repairs, jobs: found })
    }

    /// Returns a search, followed by the searches of its project that repair it, in the order of their age.
    pub fn with_repairs(&self, job: Job) -> Vec<Job> {
        let of_job = self
            .jobs
            .values()
            .filter(|repair| self.original == job.search_id && repair.project_id == job.project_id);
        let mut repairs: Vec<Job> = of_job.cloned().collect();
        repairs.sort_by_key(|repair| (repair.created_at, repair.search_id));
        repairs.insert(0, job);
        repairs
    }

    /// Returns the state of a repairing file.
    pub fn fate(&self, file: FileRef) -> Fate {
        fate(&self.jobs, file)
    }

    /// Returns the file, the file that it replaces, and so on, without files of deleted searches. The objects of a
    /// deleted search may still be stored but are about to be deleted.
    pub(super) fn readable(&self, file: FileRef) -> impl Iterator<Item = FileRef> {
        let is_deleted = |file: &FileRef| self.repairs.deleted.contains(&file.search_id);
        self.repairs.earlier(file).into_iter().filter(move |file| !is_deleted(file))
    }

    /// Returns the search that has corrected a record of a file, or is about to.
    pub fn corrected_by(&self, search_id: SearchId, file_id: FileId, record: u64) -> Option<SearchId> {
        self.repairs.corrected_by(FileRef { search_id, file_id }, record, |file| self.fate(file))
    }
}

/// A file of the repairing search.
struct Part {
    of: FileRef,
    records: BTreeSet<u64>,
    file: NewFile,
    /// The location of the stored file; `None` if the file has to be uploaded.
    stored: Option<ObjectRef>,
}

impl SearchService {
    /// Announces a search that repairs another one. With a key, repeated requests announce it once.
    ///
    /// # Errors
    /// Returns the errors of [`SearchService::create`]. No visible data is stored, unless a repeated request with the
    /// key finds it.
    pub async fn repair(
        &self,
        caller: &ProjectAccess,
        search_id: SearchId,
        request: &NewRepair,
        key: Option<&str>,
    ) -> Result<Repair, Error> {
        let Some(job) = self.find(caller, search_id).await? else { return Ok(Repair::Unknown) };
        let keyed = match key {
            // Keys are single lines, so this id cannot collide with the id of another request.
            Some(key) => Some(self.keyed_search(job.project_id, &format!("{search_id}\n{key}")).await?),
            None => None,
        };
        for _ in 0..MAX_TRIES {
            if let Some(keyed) = keyed
                && let Some(repeated) = self.repeated(keyed, request).await?
            {
                return Ok(repeated);
            }
            match self.try_to_repair(&job, request, keyed).await {
                // One of these searches was repaired or deleted concurrently; the outcome may differ now.
                Err(Error::Commit(error)) if error.is_refused() => {}
                // An earlier request may have announced it since the check above.
                Ok(unknown @ Repair::Refused(Refusal::KeyUnknown)) => {
                    return match keyed {
                        Some(keyed) => Ok(self.repeated(keyed, request).await?.unwrap_or(unknown)),
                        None => Ok(unknown),
                    };
                }
                answer => return answer,
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns the response to a repeated request.
    async fn repeated(&self, keyed: SearchId, request: &NewRepair) -> Result<Option<Repair>, Error> {
        let Some(job) = self.jobs.job(keyed).await? else { return Ok(None) };
        let Some(first) = self.entry.sessions.records.record(&first_request(keyed)).await? else {
            return Ok(Some(Repair::Refused(Refusal::KeyUnknown)));
        };
        let first = NewRepair::deserialize(&first.body).map_err(|error| {
            StoreError::unusable(format!("reading the first request of search {keyed}"), error)
        })?;
        if first != *request {
            return Ok(Some(Repair::Refused(Refusal::KeyUsed)));
        }
        if has_ended_incomplete(&job) {
            return Ok(Some(Repair::Refused(Refusal::Ended(keyed))));
        }
        Ok(Some(Repair::Announced(AnnouncedSearch { search_id: keyed, files: self.forms(&job).await? })))
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
        // A refused session is followed by another session for the same search.
        let mut session = self.entry.session(search_id);
        if keyed.is_some() && session.read(first_request(search_id)).await?.is_some() {
            // The repair of an earlier request was deleted. The id of the repair is not used again.
            return Ok(Repair::Refused(Refusal::KeyUnknown));
        }
        let original = job.repairs.unwrap_or(job.search_id);
        let known = SearchRepairs::recorded(&self.jobs, original, session.read(key(original)).await?).await?;
        let parts = match self.parts(job, request, &known).await? {
            Ok(parts) => parts,
            Err(refusal) => return Ok(Repair::Refused(refusal)),
        };
        if let Some(refusal) = self.refuse_files_of_unrecorded_repairs(job, request, &known, &parts).await? {
            return Ok(Repair::Refused(refusal));
        }
        let name = request.name.clone().or_else(|| job.name.clone());
        let files = parts.iter().map(|part| part.file.clone()).collect();
        let new = NewSearch { name: name.unwrap_or_else(|| job.search_id.to_string()), files };
        let repairs = Some(original);
        let (announcement, is_granted) = self.begin(search_id, job.project_id, &new, repairs).await?;
        if !is_granted {
            // An earlier request under this key has used the tokens, but its announcement is not stored, or it had
            // another number of files and was never announced.
            return Ok(Repair::Refused(Refusal::KeyUnknown));
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
            let by = FileRef::new(search_id, file.file_id);
            repairs.files.push(RepairedFile { of: part.of, records: part.records, by });
        }
        session.show(View::from(&job));
        session.write(key(original), written(&repairs)?);
        if keyed.is_some() {
            session.write(first_request(search_id), written(request)?);
        }
        self.commit(session, "announced a repair, and gave out its uploads").await?;
        Ok(Repair::Announced(AnnouncedSearch { search_id, files: self.forms(&job).await? }))
    }

    /// Refuses files that an unrecorded repair reads. This happens if the database was restored to a time before the
    /// repair and the announcement of the repair was in a queue. A file is identified by its name and size.
    async fn refuse_files_of_unrecorded_repairs(
        &self,
        job: &Job,
        request: &NewRepair,
        known: &SearchRepairs,
        parts: &[Part],
    ) -> Result<Option<Refusal>, StoreError> {
        let recorded = known.repairs.searches();
        let is_unrecorded =
            |other: &Job| other.repairs == Some(known.original) && !recorded.contains(&other.search_id);
        // The latest searches are listed first, and a repair is announced after the search that it repairs.
        let since = self.jobs.job(known.original).await?.map_or(job.created_at, |first| first.created_at);
        let mut place = None;
        loop {
            let page = self.jobs.of_project(job.project_id, place, JOBS_PAGE).await?;
            for other in page.items.iter().filter(|other| is_unrecorded(other)) {
                let reads = |part: &Part| {
                    other.files.iter().any(|file| {
                        file.name.as_ref() == Some(&part.file.name)
                            && file.size_bytes == Some(part.file.size_bytes)
                            && !has_failed(other, file)
                    })
                };
                if let Some(part) = parts.iter().find(|part| reads(part)) {
                    let file = part.of.file_id;
                    let place = match request.files.is_empty() {
                        true => job.files.iter().position(|known| known.file_id == file),
                        false => request.files.iter().position(|asked| asked.file_id == file),
                    };
                    let under = FileRefusal::UnderRepair(other.search_id);
                    return Ok(Some(Refusal::Files(vec![(place.unwrap_or_default(), under)])));
                }
            }
            let is_over = page.items.last().is_none_or(|last| last.created_at < since);
            match page.next {
                Some(next) if !is_over => place = Some(next),
                _ => return Ok(None),
            }
        }
    }

    /// Returns the repairs of a search and of the search that it repairs.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable or the record is invalid.
    pub async fn repairs(&self, job: &Job) -> Result<SearchRepairs, StoreError> {
        SearchRepairs::of(&self.jobs, self.entry.sessions.records.as_ref(), job).await
    }

    /// Resolves a request to the files of the repairing search.
    async fn parts(
        &self,
        job: &Job,
        request: &NewRepair,
        known: &SearchRepairs,
    ) -> Result<Result<Vec<Part>, Refusal>, StoreError> {
        if known.repairs.deleted.contains(&job.search_id) {
            return Ok(Err(Refusal::Deleted));
        }
        if known.repairs.searches().len() >= MAX_REPAIRS {
            return Ok(Err(Refusal::TooOften));
        }
        if request.files.iter().map(|file| file.records.len()).sum::<usize>() > MAX_CORRECTED {
            return Ok(Err(Refusal::TooManyRecords));
        }
        if request.files.is_empty() {
            return self.all_that_failed(job, known).await;
        }
        let (mut parts, mut refused, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
        // Requests with too many files are refused by the announcement.
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
        known: &SearchRepairs,
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
        known: &SearchRepairs,
    ) -> Result<Result<Part, FileRefusal>, StoreError> {
        let of = FileRef::new(job.search_id, asked.file_id);
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
        if let Some(search) = known.repairs.reread_by(of, |file| known.fate(file)) {
            return Ok(Err(FileRefusal::UnderRepair(search)));
        }
        if let Some(replacement) = &asked.replacement {
            return Ok(Ok(part(replacement.clone(), None)));
        }
        for earlier in known.readable(of) {
            if let Some((name, object)) = self.stored_object(job, earlier).await? {
                let file = NewFile { name, size_bytes: object.size_bytes };
                return Ok(Ok(part(file, Some(object))));
            }
        }
        Ok(Err(FileRefusal::Gone))
    }

    /// Returns the reason why records of a file cannot be corrected, if any.
    async fn mendable(
        &self,
        file: &JobFile,
        asked: &FileRepair,
        of: FileRef,
        known: &SearchRepairs,
    ) -> Result<Option<FileRefusal>, StoreError> {
        if !was_read(file) {
            return Ok(Some(FileRefusal::NotRead));
        }
        for record in &asked.records {
            if let Some(search) = known.corrected_by(of.search_id, of.file_id, *record) {
                return Ok(Some(FileRefusal::IsCorrected(*record, search)));
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

    /// Returns the location of a stored file, and its name.
    pub(super) async fn stored_object(
        &self,
        job: &Job,
        file: FileRef,
    ) -> Result<Option<(String, ObjectRef)>, StoreError> {
        let prefix = &self.settings.key_prefix;
        let folder = ObjectKey::folder(prefix, job.project_id, file.search_id);
        let found = self.bucket.find(&format!("{folder}{}/", file.file_id)).await?;
        let mut keys: Vec<(ObjectKey, ObjectRef)> = found
            .into_iter()
            .filter_map(|object| Some((ObjectKey::parse(prefix, &object.key).ok()?, object)))
            .collect();
        // Prefer files that were uploaded with a form to files that were placed in the bucket by other means.
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

fn has_failed(job: &Job, file: &JobFile) -> bool {
    match file.outcome {
        Some(Outcome::Completed(_)) => false,
        Some(Outcome::Failed { .. }) => true,
        None => job.state.has_ended(),
    }
}

fn was_read(file: &JobFile) -> bool {
    matches!(file.outcome, Some(Outcome::Completed(_)))
}

/// Returns the message that reports a file of the new search as already uploaded.
pub(super) fn saved(
    started: &SearchUploadStarted,
    file: &ManifestFile,
    object: &ObjectRef,
) -> SearchUploadSaved {
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
    content::of(value, "serializing a repair")
}
