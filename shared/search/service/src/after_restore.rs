//! Unfinished searches after the database or the ledger was restored to an earlier time.
//!
//! Work that was in progress at that time is lost: the messages of parse commands and timers were handled later, by a
//! deployment whose state was replaced. If database and ledger were restored to different times, the one lacks tokens
//! that the other expects. Therefore, a search may wait for messages that never arrive.

use std::collections::{BTreeMap, BTreeSet};

use imports::jobs::ByAge;
use imports::messages::{SearchUploadSaved, SearchUploadStarted, UploadTimeout};
use imports::saga::State;
use imports::{FileRef, Job, ProjectId, SearchEvent, SearchId, TimeoutId};
use jiff::Timestamp;
use messages::MessageId;
use outbox::{Entry, Kind, Owner, View};
use saga::operator::{AdmittedReplies, Readmission};
use saga::{Document, Operator};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::cancel::manifest;
use crate::decisions::bulk;
use crate::repair;
use crate::{Cancellation, Error, ProjectAccess, SearchService};

/// The number of jobs that are read at a time.
const JOBS: usize = 200;
/// The number of outboxes that are read at a time.
const OUTBOXES: usize = 200;
/// The maximum number of studies whose comparison one session requests. Its messages stay far below the limits of the
/// stores for a transaction.
const STUDIES_OF_SESSION: usize = 10_000;

/// Resumes or ends unfinished searches.
pub struct AfterRestore {
    start: SearchService,
    operator: Operator,
    reading: OpenReads,
    by: String,
}

/// The handling of searches whose files are being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenReads {
    /// The searches end. This is for a restored database: the reply to a command may report studies that the restore
    /// has removed, or may be lost itself.
    End,
    /// The searches continue. This is for a ledger that was restored alone: commands and replies are still in their
    /// queues.
    Continue,
}

impl OpenReads {
    fn why(self) -> &'static str {
        match self {
            Self::End => "the database was restored",
            Self::Continue => "the ledger was restored alone",
        }
    }
}

/// The outcome for one import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = Restored)]
#[serde(rename_all = "snake_case")]
pub enum RestoreOutcome {
    /// The import waits for files, and its timer is stored: it will scan the bucket, continue with the files that it
    /// finds, and end if there are none.
    Waiting,
    /// The import waits for files, but its timer was lost; the bucket is scanned now.
    Looking,
    /// Only the announcement is known, and it is sent again.
    Announced,
    /// The files are being read, and the replies are admitted.
    Reading,
    /// The files were being read: the import ends, and its studies are deleted. A repair reads the files again.
    Cancelled,
    /// The import has already ended.
    Ended,
    /// A worker holds the partition of the import; try again in a minute.
    Busy,
}

impl RestoreOutcome {
    /// Returns the outcome as a sentence for the operator.
    pub fn words(self) -> &'static str {
        match self {
            Self::Waiting => "scans the bucket for its files when its time limit has passed",
            Self::Looking => "scans the bucket for its files",
            Self::Announced => "is announced again",
            Self::Reading => "is being read and continues",
            Self::Cancelled => "is cancelled; `search-import repair` reads it again",
            Self::Ended => "has ended",
            Self::Busy => "is in use by a worker",
        }
    }
}

impl AfterRestore {
    /// Returns the operation over the restored stores, on behalf of an operator.
    pub fn new(start: SearchService, reading: OpenReads, by: String) -> Self {
        let operator = start.failures.operator.clone();
        Self { start, operator, reading, by }
    }

    /// Returns the searches that have not ended. The last view of a search, which lists it or ends it, may still be in
    /// its outbox.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the call has to be repeated.
    pub async fn unfinished(&self) -> Result<Vec<Job>, Error> {
        let (documents, now) = (&self.operator.stores.read_documents, self.start.host().now());
        documents.reach_latest_data(SearchId::from_uuid(Uuid::nil()), now).await?;
        let pending = self.pending_views().await?;
        // The document of a search that ended long ago has expired, and its stored view shows an earlier state.
        let has_ended =
            |search: &SearchId| pending.get(search).and_then(Option::as_ref).is_some_and(|view| view.ended);
        let mut found = self.start.jobs.unfinished().await?;
        found.retain(|job| !has_ended(&job.search_id));
        let listed: BTreeSet<SearchId> = found.iter().map(|job| job.search_id).collect();
        for search in pending.keys().filter(|search| !listed.contains(search) && !has_ended(search)) {
            let job = self.start.find(&ProjectAccess::All, *search).await?;
            found.extend(job.filter(|job| !job.state.has_ended()));
        }
        Ok(found)
    }

    /// Returns the searches with an outbox, each with the latest view in it.
    async fn pending_views(&self) -> Result<BTreeMap<SearchId, Option<View>>, Error> {
        let earlier_view = self.start.entry.sessions.dispatcher.earlier_view;
        let view = |entry: &Entry| View::from_payload(&entry.payload, earlier_view).ok();
        let (mut pending, mut after) = (BTreeMap::new(), None::<String>);
        loop {
            let records = self.operator.stores.saga_outbox.pending(after.as_deref(), OUTBOXES).await?;
            let Some(last) = records.last() else { return Ok(pending) };
            after = Some(last.id.clone());
            for record in &records {
                let Some(Owner::Saga(search)) = record.owner else { continue };
                let entries = record.entries.iter().flatten().filter(|entry| entry.kind == Kind::View);
                pending.insert(search, entries.filter_map(view).max_by_key(|view| view.revision));
            }
        }
    }

    /// Returns all projects with searches.
    pub async fn projects(&self) -> Result<BTreeSet<ProjectId>, Error> {
        let wanted = ByAge { project: None, states: Vec::new(), before: Timestamp::MAX };
        let (mut found, mut after) = (BTreeSet::new(), None);
        loop {
            let (jobs, next) = self.start.jobs.by_age(&wanted, after, JOBS).await?;
            found.extend(jobs.iter().map(|job| job.project_id));
            let Some(next) = next else { return Ok(found) };
            after = Some(next);
        }
    }

    /// Compares the studies of all decisions of a project again, records the operator in the audit log, and returns the
    /// number of studies. The restored database may have a decision without its marks, because the command to compare
    /// was handled later. The call is safe to repeat.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the call has to be repeated.
    pub async fn compare_decided(&self, project: ProjectId) -> Result<usize, Error> {
        let studies = bulk::ever_decided(self.start.entry.sessions.records.as_ref(), project).await?;
        if !studies.is_empty() {
            let why = format!("{} decided studies", studies.len());
            let action = "compared after a restore";
            self.start.failures.record_action(&self.by, action, project.to_string(), why).await?;
        }
        for studies in studies.chunks(STUDIES_OF_SESSION) {
            let Some(first) = studies.first() else { continue };
            let mut session = self.start.entry.session(first.search_id);
            bulk::send_comparisons(&mut session, project, studies)?;
            self.start.commit(session, "compare decided studies after a restore").await?;
        }
        Ok(studies.len())
    }

    /// Resumes or ends a search, and records the operator in the audit log. The call is safe to repeat.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the call has to be repeated.
    pub async fn settle(&self, search: SearchId) -> Result<RestoreOutcome, Error> {
        let why = self.reading.why().to_owned();
        self.start
            .failures
            .record_action(&self.by, "settled after a restore", search.to_string(), why)
            .await?;
        let ends = |document: &Document<State>| {
            self.reading == OpenReads::End && matches!(document.content.state, State::Parsing(_))
        };
        // A reply in a queue must not end the search before its cancellation is handled.
        let replies = match self.document(search).await? {
            Some(document) if ends(&document) => AdmittedReplies::None,
            _ => AdmittedReplies::Expected,
        };
        if self.operator.align(search, replies).await? == Readmission::Busy {
            return Ok(RestoreOutcome::Busy);
        }
        let Some(Document { content, outbox, .. }) = self.document(search).await? else {
            return self.announce(search).await;
        };
        match content.state {
            State::Completed(_) | State::Error(_) => Ok(RestoreOutcome::Ended),
            ref state @ (State::Uploading(ref import) | State::Uploaded(ref import)) => {
                if let Some(job) = state.job(search) {
                    let stored = self.files_of_repaired_search(&job).await?;
                    self.send(search, stored.into_iter().map(SearchEvent::SearchUploadSaved)).await?;
                }
                let is_stored = |timer: &MessageId| outbox.iter().any(|entry| entry.id == *timer);
                // The result of a pending scan may have been handled between the backup and the restore.
                let may_lack_scan = self.reading == OpenReads::End && import.look.is_some();
                match import.timeout {
                    Some(_) if !may_lack_scan && content.timers.values().any(is_stored) => {
                        Ok(RestoreOutcome::Waiting)
                    }
                    Some(timeout_id) => self.scan_bucket(search, timeout_id).await,
                    None => self.cancel(search).await,
                }
            }
            State::Parsing(_) if self.reading == OpenReads::Continue => Ok(RestoreOutcome::Reading),
            State::Initial | State::Parsing(_) => self.cancel(search).await,
        }
    }

    /// Ends the time for uploads now. The bucket is therefore scanned, even if another scan is pending.
    async fn scan_bucket(&self, search: SearchId, timeout_id: TimeoutId) -> Result<RestoreOutcome, Error> {
        let timeout = UploadTimeout { timeout_id, repeats_scan: true };
        self.send(search, [SearchEvent::UploadTimeout(timeout)]).await?;
        Ok(RestoreOutcome::Looking)
    }

    async fn cancel(&self, search: SearchId) -> Result<RestoreOutcome, Error> {
        Ok(match self.start.cancel(&ProjectAccess::All, search).await? {
            Cancellation::Accepted => RestoreOutcome::Cancelled,
            Cancellation::TooLate | Cancellation::Unknown => RestoreOutcome::Ended,
        })
    }

    async fn announce(&self, search: SearchId) -> Result<RestoreOutcome, Error> {
        let Some(job) =
            self.start.find(&ProjectAccess::All, search).await?.filter(|job| !job.state.has_ended())
        else {
            return Ok(RestoreOutcome::Ended);
        };
        let started = SearchUploadStarted { project_id: job.project_id, manifest: manifest(&job) };
        let stored = self.files_of_repaired_search(&job).await?;
        let stored = stored.into_iter().map(SearchEvent::SearchUploadSaved);
        self.send(search, [SearchEvent::SearchUploadStarted(started)].into_iter().chain(stored)).await?;
        Ok(RestoreOutcome::Announced)
    }

    /// Returns the latest document of a search.
    async fn document(&self, search: SearchId) -> Result<Option<Document<State>>, Error> {
        let documents = &self.operator.stores.read_documents;
        let latest = documents.load_latest(search, self.start.host().now()).await?;
        Ok(latest.map(|document| document.open(&self.start.jobs.views.saga)).transpose()?)
    }

    /// Returns the files of a repair that are stored for the search that it repairs. The announcement of the repair
    /// names these files, and a scan for the uploads of the repair does not find them.
    async fn files_of_repaired_search(&self, job: &Job) -> Result<Vec<SearchUploadSaved>, Error> {
        if job.repairs.is_none() {
            return Ok(Vec::new());
        }
        let known = self.start.repairs(job).await?;
        let started = SearchUploadStarted { project_id: job.project_id, manifest: manifest(job) };
        let mut stored = Vec::new();
        for file in &started.manifest.files {
            let by = FileRef::new(job.search_id, file.file_id);
            let is_stored = |name: &str, size_bytes| name == file.name && size_bytes == file.size_bytes;
            // The first is the file that was uploaded for the repair itself.
            for earlier in known.readable(by) {
                if let Some((name, object)) = self.start.stored_object(job, earlier).await? {
                    if earlier != by && is_stored(&name, object.size_bytes) {
                        stored.push(repair::saved(&started, file, &object));
                    }
                    break;
                }
            }
        }
        Ok(stored)
    }

    async fn send(
        &self,
        search: SearchId,
        events: impl IntoIterator<Item = SearchEvent>,
    ) -> Result<(), Error> {
        let mut events = events.into_iter().peekable();
        if events.peek().is_none() {
            return Ok(());
        }
        let mut session = self.start.entry.session(search);
        for event in events {
            session.send(&event)?;
        }
        self.start.commit(session, "repeat events after a restore").await
    }
}
