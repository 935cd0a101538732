//! Searches that had not ended when the database or the ledger was restored to an earlier time.
//!
//! What was under way at that time is gone: the message of a parse command or of a timer was handled since, by a deployment
//! of which nothing is left. And when the two were restored to different times, one lacks tokens that the other waits for.
//! So no search can be left to what it waits for.

use imports::messages::{SearchUploadStarted, UploadTimeout};
use imports::saga::State;
use imports::{SearchEvent, SearchId};
use messages::MessageId;
use saga::operator::Access;
use saga::{Document, Operator};
use serde::Serialize;
use utoipa::ToSchema;

use crate::cancel::manifest;
use crate::{Error, ProjectAccess, SearchService, Withdrawal};

/// Lets searches go on, or end.
pub struct AfterRestore {
    start: SearchService,
    operator: Operator,
    reading: Reading,
    by: String,
}

/// What becomes of searches that are being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// They end. It is for a database that was restored: the reply to a command may tell of studies that went with it, or be
    /// gone itself.
    Ends,
    /// They go on. It is for a ledger that was restored alone: commands and replies are still in their queues.
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

/// What was done with a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Restored {
    /// It waits for files, and its timer is stored: then it looks for them in the bucket, goes on with what is there, and
    /// ends if nothing is.
    Waiting,
    /// The same, and its timer was not stored any more: it looks for its files now.
    Looking,
    /// Nothing but its announcement is known, which is sent again.
    Announced,
    /// It is being read, and the replies are admitted.
    Reading,
    /// It was being read: it ends, and what was read of it is taken back. A repair reads it again.
    Cancelled,
    /// It has ended.
    Ended,
    /// Somebody is inside its partition; to be tried again in a minute.
    Busy,
}

impl Restored {
    /// What an operator is told of it.
    pub fn words(self) -> &'static str {
        match self {
            Self::Waiting => "looks for its files when its time is up",
            Self::Looking => "looks for its files",
            Self::Announced => "is announced again",
            Self::Reading => "is being read, and goes on",
            Self::Cancelled => "is cancelled; `search-import repair` reads it again",
            Self::Ended => "has ended",
            Self::Busy => "is being worked on",
        }
    }
}

impl AfterRestore {
    /// Over the stores that were restored, on somebody's behalf.
    pub fn new(start: SearchService, reading: Reading, by: String) -> Self {
        let operator = start.failures.operator.clone();
        Self { start, operator, reading, by }
    }

    /// Lets a search go on, or end, and notes on whose behalf. Repeating it does no harm.
    ///
    /// # Errors
    /// When a store or queue did not answer; it is to be repeated.
    pub async fn settle(&self, search: SearchId) -> Result<Restored, Error> {
        let why = self.reading.why().to_owned();
        self.start.failures.act(&self.by, "settled after a restore", search.to_string(), why).await?;
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
        self.send(search, &SearchEvent::UploadTimeout(timeout), "had it look for its files").await?;
        Ok(Restored::Looking)
    }

    async fn cancel(&self, search: SearchId) -> Result<Restored, Error> {
        Ok(match self.start.withdraw(&ProjectAccess::All, search).await? {
            Withdrawal::Accepted => Restored::Cancelled,
            Withdrawal::TooLate | Withdrawal::Unknown => Restored::Ended,
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
