//! Transactional sessions: the record with its messages and the data are committed in one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{SessionId, StoreError};
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{ReadConcern, ReturnDocument};
use outbox::session::{SessionStatus, WorkVerdict};
use outbox::{CommitOutcome, CommitSession, Entry, SessionRecord, SettleSessions, View};

use crate::driver_error::{DUPLICATE_KEY, is_code};
use crate::error::CallError;
use crate::names::{collections, record};
use crate::records::{Plan, RecordsOutcome};
use crate::transaction::{self, Step, Work};
use crate::value::{Key, date, nanos};
use crate::work::SessionWork;
use crate::{Mongo, entry, views};

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

#[async_trait]
impl CommitSession for Mongo {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        self.call(doing, commit(self, session, None)).await
    }
}

/// Transaction that commits a session.
struct SessionTransaction<'a> {
    /// The work of the application.
    work: Option<&'a dyn SessionWork>,
    session: SessionId,
    record: Option<Document>,
    views: &'a [View],
    /// `None` if the session read different revisions of one record.
    records: Option<Plan>,
}

/// Outcome of a session's transaction.
enum SessionOutcome {
    Stored,
    /// The session already has a record.
    RecordExists,
    /// A record that the session read has changed.
    Changed,
    /// The work of the application refused the session.
    Refused,
    /// The session was abandoned.
    TooLate,
}

/// Commits a session, together with the optional work of the application.
pub(crate) async fn commit(
    mongo: &Mongo,
    session: &SessionRecord,
    work: Option<&dyn SessionWork>,
) -> Result<CommitOutcome, CallError> {
    let staging = SessionTransaction {
        work,
        session: session.id,
        record: committed(session, work.is_some())?,
        views: &session.views,
        records: Plan::of(&session.reads, &session.writes),
    };
    if staging.is_empty() {
        return Ok(CommitOutcome::Stored);
    }
    Ok(match transaction::run(mongo, &staging).await? {
        SessionOutcome::Stored | SessionOutcome::RecordExists => CommitOutcome::Stored,
        SessionOutcome::Changed => CommitOutcome::Changed,
        SessionOutcome::Refused => CommitOutcome::Refused,
        SessionOutcome::TooLate => CommitOutcome::TooLate,
    })
}

/// Returns the record to store, by which a repeated commit is recognized. A session that changes nothing has none.
fn committed(session: &SessionRecord, has_work: bool) -> Result<Option<Document>, CallError> {
    if !session.is_change() && !has_work {
        return Ok(None);
    }
    let entries = session.entries.iter().map(entry::encode).collect::<Result<Vec<_>, _>>()?;
    let mut stored = body(COMMITTED, session.committed_at, entries);
    stored.insert(record::ID, session.id.key());
    if let Some(ready_at) = session.entries.iter().filter_map(Entry::ready_at).min() {
        stored.insert(record::READY_AT, nanos(ready_at));
    }
    Ok(Some(stored))
}

fn body(state: &str, at: Timestamp, entries: Vec<Document>) -> Document {
    let pending = crate::value::int(entries.len());
    doc! { record::STATE: state, record::AT: date(at), record::OUTBOX: entries, record::PENDING: pending }
}

impl SessionTransaction<'_> {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.views.is_empty() && self.records.as_ref().is_some_and(Plan::is_empty)
    }
}

#[async_trait]
impl Work for SessionTransaction<'_> {
    type Answer = SessionOutcome;

    /// Inserts the session's record first. A session that is already committed is thereby detected before its reads are
    /// checked, which may be outdated by then.
    async fn stage(
        &self,
        mongo: &Mongo,
        client: &mut ClientSession,
    ) -> Result<Step<SessionOutcome>, CallError> {
        if let Some(record) = &self.record {
            let sessions = mongo.collection(collections::SESSION).await?;
            match sessions.insert_one(record).session(&mut *client).await {
                Err(error) if is_code(&error, DUPLICATE_KEY) => {
                    return Ok(Step::Abort(SessionOutcome::RecordExists));
                }
                inserted => inserted?,
            };
        }
        for view in self.views {
            let (filter, update) = views::create(view)?;
            let views = mongo.collection(collections::VIEW).await?;
            match views.update_one(filter, update).upsert(true).session(&mut *client).await {
                // The saga created the view after the snapshot of this transaction.
                Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Step::Retry(error.into())),
                created => created?,
            };
        }
        let Some(records) = &self.records else { return Ok(Step::Abort(SessionOutcome::Changed)) };
        Ok(match records.stage(mongo, client).await? {
            RecordsOutcome::Staged => match self.work {
                Some(work) if work.run(&mongo.database().await?, client).await? == WorkVerdict::Refuse => {
                    Step::Abort(SessionOutcome::Refused)
                }
                _ => Step::Commit(SessionOutcome::Stored),
            },
            RecordsOutcome::Changed => Step::Abort(SessionOutcome::Changed),
            RecordsOutcome::Conflict(error) => Step::Retry(error),
        })
    }

    /// Reads the outcome of the session from its existing record.
    async fn after_abort(
        &self,
        mongo: &Mongo,
        answer: SessionOutcome,
    ) -> Result<Step<SessionOutcome>, CallError> {
        if !matches!(answer, SessionOutcome::RecordExists) {
            return Ok(Step::Abort(answer));
        }
        Ok(match find(mongo, self.session).await? {
            SessionStatus::Committed => Step::Abort(SessionOutcome::Stored),
            SessionStatus::Tombstone => Step::Abort(SessionOutcome::TooLate),
            SessionStatus::Nothing => Step::Retry(CallError::InvalidReply(
                "the session's record exists but was not found".to_owned(),
            )),
        })
    }
}

#[async_trait]
impl SettleSessions for Mongo {
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError> {
        self.call(format!("looking for session {session}"), find(self, session)).await
    }

    async fn abandon(&self, session: SessionId, now: Timestamp) -> Result<SessionStatus, StoreError> {
        self.call(format!("abandoning session {session}"), abandon(self, session, now)).await
    }
}

/// Finds the record of a session. The read is linearizable: it must find a record that just caused a duplicate key, so
/// it waits until a majority has it.
async fn find(mongo: &Mongo, session: SessionId) -> Result<SessionStatus, CallError> {
    let stored = mongo
        .collection(collections::SESSION)
        .await?
        .find_one(doc! { record::ID: session.key() })
        .projection(doc! { record::STATE: 1 })
        .read_concern(ReadConcern::linearizable())
        .await?;
    stored.as_ref().map_or(Ok(SessionStatus::Nothing), found)
}

/// Writes a tombstone unless the session has a record, and returns the status. The first record of a session remains.
async fn abandon(mongo: &Mongo, session: SessionId, now: Timestamp) -> Result<SessionStatus, CallError> {
    let stored = mongo
        .collection(collections::SESSION)
        .await?
        .find_one_and_update(
            doc! { record::ID: session.key() },
            doc! { "$setOnInsert": body(TOMBSTONE, now, Vec::new()) },
        )
        .upsert(true)
        .projection(doc! { record::STATE: 1 })
        .return_document(ReturnDocument::After)
        .await?;
    stored.as_ref().map_or_else(|| Err(CallError::InvalidReply("it has no document".to_owned())), found)
}

fn found(stored: &Document) -> Result<SessionStatus, CallError> {
    match stored.get(record::STATE).and_then(Bson::as_str) {
        Some(COMMITTED) => Ok(SessionStatus::Committed),
        Some(TOMBSTONE) => Ok(SessionStatus::Tombstone),
        _ => Err(CallError::unreadable(
            collections::SESSION,
            stored.get(record::ID),
            "a session's record",
            "its State is neither committed nor tombstone",
        )),
    }
}
