//! Transactional sessions: the record with its messages, and the data, in one transaction.

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{SessionId, StoreError};
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, TRANSIENT_TRANSACTION_ERROR, UNKNOWN_TRANSACTION_COMMIT_RESULT};
use mongodb::options::{ReadConcern, ReturnDocument};
use outbox::session::Found;
use outbox::{CommitSession, Committed, Entry, SessionRecord, SettleSessions, View};

use crate::fault::{DUPLICATE_KEY, Fault, is_code};
use crate::names::{collections, record};
use crate::records::{Plan, Staged};
use crate::value::{Key, date, nanos};
use crate::{Mongo, entry, views};

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

/// How often a transaction is begun. In its own record and in its view it meets others once or twice in all; in a
/// record that many sessions read or write it may meet one each time, and one of two that meet goes on. Besides, after
/// a pause the first connection may be dead. Without a bound a failure that lasts would spin.
const MAX_TRANSACTIONS: u32 = 9;
/// How long to wait after the first transaction that met another; twice as long each time, 1.3 s in all. A transaction
/// takes some milliseconds until a majority has confirmed it, and whoever meets it is refused at once.
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// How often a transaction is asked to commit, each time twice by the driver. Giving up has a price: it is
/// unknown whether it is committed; while it is not, whoever writes the same record waits until the server gives the
/// transaction up (`transactionLifetimeLimitSeconds`, 60 s).
const MAX_COMMITS: usize = 3;

#[async_trait]
impl CommitSession for Mongo {
    async fn commit(&self, session: &SessionRecord) -> Result<Committed, StoreError> {
        let doing = format!("committing session {}", session.id);
        self.call(doing, commit(self, session)).await
    }
}

/// What a transaction stores.
struct Staging<'a> {
    record: Option<Document>,
    views: &'a [View],
    /// None when what the session has read contradicts itself.
    records: Option<Plan>,
}

/// How one transaction ended.
enum Ended {
    Stored,
    /// The session has a record already.
    RecordExists,
    /// What the session has read does not hold any more.
    Changed,
    /// It is aborted; the next one may go better.
    Aborted(Fault),
}

async fn commit(mongo: &Mongo, session: &SessionRecord) -> Result<Committed, Fault> {
    let staging = Staging {
        record: committed(session)?,
        views: &session.views,
        records: Plan::of(&session.reads, &session.writes),
    };
    if staging.is_empty() {
        return Ok(Committed::Stored);
    }
    let mut client = mongo.client().start_session().await?;
    let mut failure = Fault::Answer("a record is there and is not found".to_owned());
    for earlier in 0..MAX_TRANSACTIONS {
        if earlier > 0 {
            tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(earlier - 1)).await;
        }
        match transaction(mongo, &mut client, &staging).await? {
            Ended::Stored => return Ok(Committed::Stored),
            Ended::Changed => return Ok(Committed::Changed),
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
    staging: &Staging<'_>,
) -> Result<Ended, Fault> {
    client.start_transaction().await?;
    let ended = match staging.stage(mongo, client).await {
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

impl Staging<'_> {
    fn is_empty(&self) -> bool {
        self.record.is_none() && self.views.is_empty() && self.records.as_ref().is_some_and(Plan::is_empty)
    }

    /// The session's record first: a session that is stored is found so before what it has read is looked at, which
    /// need not hold any more.
    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Ended, Fault> {
        if let Some(record) = &self.record {
            let sessions = mongo.collection(collections::SESSION);
            match sessions.insert_one(record).session(&mut *client).await {
                Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Ended::RecordExists),
                inserted => inserted?,
            };
        }
        for view in self.views {
            let (filter, update) = views::create(view)?;
            let views = mongo.collection(collections::VIEW);
            match views.update_one(filter, update).upsert(true).session(&mut *client).await {
                // Between this transaction's snapshot and its write the saga was faster.
                Err(error) if is_code(&error, DUPLICATE_KEY) => return Ok(Ended::Aborted(error.into())),
                created => created?,
            };
        }
        let Some(records) = &self.records else { return Ok(Ended::Changed) };
        Ok(match records.stage(mongo, client).await? {
            Staged::Done => Ended::Stored,
            Staged::Changed => Ended::Changed,
            Staged::Overtaken(fault) => Ended::Aborted(fault),
        })
    }
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
