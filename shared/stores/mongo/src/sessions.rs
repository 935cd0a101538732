//! Transactional sessions: the record with its messages, and the data, in one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{SessionId, StoreError};
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{ReadConcern, ReturnDocument};
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, Entry, SessionRecord, SettleSessions, View};

use crate::fault::{DUPLICATE_KEY, Fault, is_code};
use crate::names::{collections, record};
use crate::records::{Plan, Staged};
use crate::transaction::{self, Step, Work};
use crate::value::{Key, date, nanos};
use crate::{Mongo, entry, views};

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

#[async_trait]
impl CommitSession for Mongo {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        self.call(doing, commit(self, session)).await
    }
}

/// What a transaction stores.
struct Staging<'a> {
    session: SessionId,
    record: Option<Document>,
    views: &'a [View],
    /// None when what the session has read contradicts itself.
    records: Option<Plan>,
}

/// What a session's transaction is answered.
enum Ended {
    Stored,
    /// The session has a record already.
    RecordExists,
    /// What the session has read does not hold any more.
    Changed,
    /// The session was given up.
    TooLate,
}

async fn commit(mongo: &Mongo, session: &SessionRecord) -> Result<CommitOutcome, Fault> {
    let staging = Staging {
        session: session.id,
        record: committed(session)?,
        views: &session.views,
        records: Plan::of(&session.reads, &session.writes),
    };
    if staging.is_empty() {
        return Ok(CommitOutcome::Stored);
    }
    Ok(match transaction::run(mongo, &staging).await? {
        Ended::Stored | Ended::RecordExists => CommitOutcome::Stored,
        Ended::Changed => CommitOutcome::Changed,
        Ended::TooLate => CommitOutcome::TooLate,
    })
}

/// The record to be stored; none for a session without messages, for which nobody will look.
fn committed(session: &SessionRecord) -> Result<Option<Document>, Fault> {
    if session.entries.is_empty() {
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

impl Staging<'_> {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.views.is_empty() && self.records.as_ref().is_some_and(Plan::is_empty)
    }
}

#[async_trait]
impl Work for Staging<'_> {
    type Answer = Ended;

    /// The session's record first: a session that is stored is found so before what it has read is looked at, which
    /// need not hold any more.
    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<Ended>, Fault> {
        if let Some(record) = &self.record {
            let sessions = mongo.collection(collections::SESSION).await?;
            match sessions.insert_one(record).session(&mut *client).await {
                Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Step::Leave(Ended::RecordExists)),
                inserted => inserted?,
            };
        }
        for view in self.views {
            let (filter, update) = views::create(view)?;
            let views = mongo.collection(collections::VIEW).await?;
            match views.update_one(filter, update).upsert(true).session(&mut *client).await {
                // Between this transaction's snapshot and its write the saga was faster.
                Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Step::Again(error.into())),
                created => created?,
            };
        }
        let Some(records) = &self.records else { return Ok(Step::Leave(Ended::Changed)) };
        Ok(match records.stage(mongo, client).await? {
            Staged::Done => Step::Commit(Ended::Stored),
            Staged::Changed => Step::Leave(Ended::Changed),
            Staged::Overtaken(fault) => Step::Again(fault),
        })
    }

    /// A record that is there says what became of the session.
    async fn left(&self, mongo: &Mongo, answer: Ended) -> Result<Step<Ended>, Fault> {
        if !matches!(answer, Ended::RecordExists) {
            return Ok(Step::Leave(answer));
        }
        Ok(match find(mongo, self.session).await? {
            SessionStatus::Committed => Step::Leave(Ended::Stored),
            SessionStatus::Tombstone => Step::Leave(Ended::TooLate),
            SessionStatus::Nothing => {
                Step::Again(Fault::Answer("a record is there and is not found".to_owned()))
            }
        })
    }
}

#[async_trait]
impl SettleSessions for Mongo {
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError> {
        self.call(format!("looking for session {session}"), find(self, session)).await
    }

    async fn bury(&self, session: SessionId, now: Timestamp) -> Result<SessionStatus, StoreError> {
        self.call(format!("giving session {session} up"), bury(self, session, now)).await
    }
}

/// Linearizable, since a record that was just met as a taken key must be found: a majority may not have it yet,
/// and this waits until it has.
async fn find(mongo: &Mongo, session: SessionId) -> Result<SessionStatus, Fault> {
    let stored = mongo
        .collection(collections::SESSION)
        .await?
        .find_one(doc! { record::ID: session.key() })
        .projection(doc! { record::STATE: 1 })
        .read_concern(ReadConcern::linearizable())
        .await?;
    stored.as_ref().map_or(Ok(SessionStatus::Nothing), found)
}

/// The first record of a session stays: this writes a tombstone or nothing, and answers with what is there.
async fn bury(mongo: &Mongo, session: SessionId, now: Timestamp) -> Result<SessionStatus, Fault> {
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
    stored.as_ref().map_or_else(|| Err(Fault::Answer("it has no document".to_owned())), found)
}

fn found(stored: &Document) -> Result<SessionStatus, Fault> {
    match stored.get(record::STATE).and_then(Bson::as_str) {
        Some(COMMITTED) => Ok(SessionStatus::Committed),
        Some(TOMBSTONE) => Ok(SessionStatus::Tombstone),
        _ => Err(Fault::foreign(
            collections::SESSION,
            stored.get(record::ID),
            "a session's record",
            "its State is neither committed nor tombstone",
        )),
    }
}
