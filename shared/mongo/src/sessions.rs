//! Transactional sessions: the record with its messages, and the data, in one transaction.

use async_trait::async_trait;
use contracts::{SessionId, StoreError};
use imports::Write;
use jiff::Timestamp;
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{ReadConcern, ReturnDocument};
use outbox::session::Found;
use outbox::{CommitSession, Committed, Entry, SessionRecord, SettleSessions};

use crate::fault::{DUPLICATE_KEY, Fault, is_code};
use crate::names::{collections, record};
use crate::value::{Key, date, nanos};
use crate::{Mongo, entry, jobs};

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

/// How often a transaction is begun. It meets others only in its own record and in its job, each written once or
/// twice in all, and after a pause the first connection may be dead; without a bound a failure that lasts would
/// spin.
const MAX_TRANSACTIONS: usize = 5;

/// How often a transaction is asked to commit, each time twice by the driver. Giving up has a price: nobody knows
/// whether it is committed, and while it is not, whoever writes the same record waits until the server gives the
/// transaction up (`transactionLifetimeLimitSeconds`, 60 s).
const MAX_COMMITS: usize = 3;

#[async_trait]
impl CommitSession<Write> for Mongo {
    async fn commit(&self, session: &SessionRecord, writes: &[Write]) -> Result<Committed, StoreError> {
        let doing = format!("committing session {}", session.id);
        self.call(doing, commit(self, session, writes)).await
    }
}

/// How one transaction ended.
enum Ended {
    Stored,
    /// The session has a record already.
    RecordExists,
    /// It is aborted; the next one may go better.
    Aborted(Fault),
}

async fn commit(mongo: &Mongo, session: &SessionRecord, writes: &[Write]) -> Result<Committed, Fault> {
    if session.entries.is_empty() && writes.is_empty() {
        return Ok(Committed::Stored);
    }
    let record = committed(session)?;
    let mut client = mongo.client().start_session().await?;
    let mut failure = Fault::Answer("a record is there and is not found".to_owned());
    for _ in 0..MAX_TRANSACTIONS {
        match transaction(mongo, &mut client, record.as_ref(), writes).await? {
            Ended::Stored => return Ok(Committed::Stored),
            Ended::RecordExists => match find(mongo, session.id).await? {
                Found::Committed => return Ok(Committed::Stored),
                Found::Tombstone => return Ok(Committed::TooLate),
                Found::Nothing => {}
            },
            Ended::Aborted(fault) => failure = fault,
        }
    }
    Err(failure)
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

async fn transaction(
    mongo: &Mongo,
    client: &mut ClientSession,
    record: Option<&Document>,
    writes: &[Write],
) -> Result<Ended, Fault> {
    client.start_transaction().await?;
    let ended = match stage(mongo, client, record, writes).await {
        Ok(Ended::Stored) => finish(client).await.map(|()| Ended::Stored).map_err(Fault::from),
        other => {
            // The next transaction of this session, or in the end its age, aborts it too; this is sooner.
            let _ = client.abort_transaction().await;
            other
        }
    };
    match ended {
        Err(Fault::Driver(error)) if error.contains_label(TRANSIENT_TRANSACTION_ERROR) => {
            Ok(Ended::Aborted(Fault::Driver(error)))
        }
        ended => ended,
    }
}

async fn finish(client: &mut ClientSession) -> Result<(), Error> {
    let mut commits = 1;
    loop {
        match client.commit_transaction().await {
            Err(error)
                if commits < MAX_COMMITS && error.contains_label(UNKNOWN_TRANSACTION_COMMIT_RESULT) =>
            {
                commits += 1;
            }
            ended => return ended,
        }
    }
}

async fn stage(
    mongo: &Mongo,
    client: &mut ClientSession,
    record: Option<&Document>,
    writes: &[Write],
) -> Result<Ended, Fault> {
    if let Some(record) = record {
        let inserted = mongo.collection(collections::SESSION).insert_one(record).session(&mut *client).await;
        match inserted {
            Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Ended::RecordExists),
            inserted => inserted?,
        };
    }
    for write in writes {
        match write {
            Write::CreateJob(job) => {
                let (filter, update) = jobs::create(job)?;
                let jobs = mongo.collection(collections::JOB);
                match jobs.update_one(filter, update).upsert(true).session(&mut *client).await {
                    // Between this transaction's snapshot and its write the saga was faster.
                    Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Ended::Aborted(error.into())),
                    created => created?,
                };
            }
        }
    }
    Ok(Ended::Stored)
}

#[async_trait]
impl SettleSessions for Mongo {
    async fn find(&self, session: SessionId) -> Result<Found, StoreError> {
        self.call(format!("looking for session {session}"), find(self, session)).await
    }

    async fn bury(&self, session: SessionId, now: Timestamp) -> Result<Found, StoreError> {
        self.call(format!("giving session {session} up"), bury(self, session, now)).await
    }
}

/// Linearizable, since a record that was just met as a taken key must be found: a majority may not have it yet,
/// and this waits until it has.
async fn find(mongo: &Mongo, session: SessionId) -> Result<Found, Fault> {
    let stored = mongo
        .collection(collections::SESSION)
        .find_one(doc! { record::ID: session.key() })
        .projection(doc! { record::STATE: 1 })
        .read_concern(ReadConcern::linearizable())
        .await?;
    stored.as_ref().map_or(Ok(Found::Nothing), found)
}

/// The first record of a session stays: this writes a tombstone or nothing, and answers with what is there.
async fn bury(mongo: &Mongo, session: SessionId, now: Timestamp) -> Result<Found, Fault> {
    let stored = mongo
        .collection(collections::SESSION)
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

fn found(stored: &Document) -> Result<Found, Fault> {
    match stored.get(record::STATE).and_then(Bson::as_str) {
        Some(COMMITTED) => Ok(Found::Committed),
        Some(TOMBSTONE) => Ok(Found::Tombstone),
        _ => Err(Fault::foreign(
            collections::SESSION,
            stored.get(record::ID),
            "a session's record",
            "its State is neither committed nor tombstone",
        )),
    }
}
