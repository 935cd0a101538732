//! Unfinished searches after the database or the ledger was restored to an earlier time.
//!
//! Work that was in progress at that time is lost: the messages of parse commands and timers were handled later, by a
//! deployment whose state was replaced. If database and ledger were restored to different times, one lacks tokens
//! that the other expects. So no search can rely on what it waits for.

use imports::messages::{SearchUploadStarted, UploadTimeout};
use imports::saga::State;
use imports::{SearchEvent, SearchId};
use messages::MessageId;
use saga::operator::Access;
use saga::{Document, Operator};
use serde::Serialize;
use utoipa::ToSchema;

use crate::cancel::manifest;
use crate::{Cancellation, Error, ProjectAccess, SearchService};

/// Resumes or ends unfinished searches.
pub struct AfterRestore {
    start: SearchService,
    operator: Operator,
    reading: Reading,
    by: String,
}

/// The handling of searches whose files are being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// They end. This is for a restored database: the reply to a command may report studies that the restore has
    /// removed, or may be lost itself.
    Ends,
    /// They continue. This is for a ledger that was restored alone: commands and replies are still in their queues.
    GoesOn,
}

impl Reading {
    fn why(self) -> &'static str {
        match self {
            Self::Ends => "the database was restored",
            Self::GoesOn => "the ledger was restored alone",
        }
    }
}

/// The outcome for one import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
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

impl Restored {
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
    pub fn new(start: SearchService, reading: Reading, by: String) -> Self {
        let operator = start.failures.operator.clone();
        Self { start, operator, reading, by }
    }

    /// Resumes or ends a search, and records the operator in the audit log. It is safe to repeat.
    ///
    /// # Errors
    /// Returns an error if a store or queue is unavailable; the call has to be repeated.
    pub async fn settle(&self, search: SearchId) -> Result<Restored, Error> {
        let why = self.reading.why().to_owned();
        self.start
            .failures
            .record_action(&self.by, "settled after a restore", search.to_string(), why)
            .await?;
        if self.operator.admit_awaited(search).await? == Access::Busy {
            return Ok(Restored::Busy);
        }
        let documents = &self.operator.stores.read_documents;
        let Some(document) = documents.load_latest(search, self.start.host().now()).await? else {
            return self.announce(search).await;
        };
        let Document { content, outbox, .. } = document.open(&self.start.jobs.views.saga)?;
        match content.state {
            State::Completed(_) | State::Error(_) => Ok(Restored::Ended),
            State::Uploading(import) | State::Uploaded(import) => {
                let is_stored = |timer: &MessageId| outbox.iter().any(|entry| entry.id == *timer);
                match import.timeout {
                    Some(_) if content.timers.values().any(is_stored) => Ok(Restored::Waiting),
                    Some(timeout_id) => self.fire(search, UploadTimeout { timeout_id }).await,
                    None => self.cancel(search).await,
                }
            }
            State::Parsing(_) if self.reading == Reading::GoesOn => Ok(Restored::Reading),
            State::Initial | State::Parsing(_) => self.cancel(search).await,
        }
    }

    async fn fire(&self, search: SearchId, timeout: UploadTimeout) -> Result<Restored, Error> {
        self.send(search, &SearchEvent::UploadTimeout(timeout), "scan the bucket for files").await?;
        Ok(Restored::Looking)
    }

    async fn cancel(&self, search: SearchId) -> Result<Restored, Error> {
        Ok(match self.start.cancel(&ProjectAccess::All, search).await? {
            Cancellation::Accepted => Restored::Cancelled,
            Cancellation::TooLate | Cancellation::Unknown => Restored::Ended,
        })
    }

    async fn announce(&self, search: SearchId) -> Result<Restored, Error> {
        let Some(job) =
            self.start.find(&ProjectAccess::All, search).await?.filter(|job| !job.state.has_ended())
        else {
            return Ok(Restored::Ended);
        };
        let started = SearchUploadStarted { project_id: job.project_id, manifest: manifest(&job) };
        self.send(search, &SearchEvent::SearchUploadStarted(started), "announced it again").await?;
        Ok(Restored::Announced)
    }

    async fn send(&self, search: SearchId, event: &SearchEvent, why: &str) -> Result<(), Error> {
        let mut session = self.start.entry.session(search);
        session.send(event)?;
        self.start.commit(session, why).await
    }
}
