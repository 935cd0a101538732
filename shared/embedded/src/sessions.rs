//! Transactional sessions: the record, its messages and its data in one transaction.

use async_trait::async_trait;
use contracts::{SessionId, StoreError};
use imports::Write;
use jiff::Timestamp;
use outbox::session::Found;
use outbox::{CommitSession, Committed, Owner, SessionRecord, SettleSessions};
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::value::nanos;

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

#[async_trait]
impl CommitSession<Write> for Store {
    async fn commit(&self, record: &SessionRecord, writes: &[Write]) -> Result<Committed, StoreError> {
        let doing = format!("committing session {}", record.id);
        let (record, writes) = (record.clone(), writes.to_vec());
        self.change("session.commit", doing, move |db| commit(db, &record, &writes)).await
    }
}

fn commit(db: &Connection, record: &SessionRecord, writes: &[Write]) -> Result<Committed, Fault> {
    match find(db, record.id)? {
        Found::Tombstone => return Ok(Committed::TooLate),
        Found::Committed => return Ok(Committed::Stored),
        Found::Nothing => {}
    }
    if !record.entries.is_empty() {
        put(db, record.id, COMMITTED, record.committed_at)?;
        crate::outbox::add(db, Owner::Session(record.id), &record.entries)?;
    }
    for write in writes {
        match write {
            Write::CreateJob(job) => crate::jobs::create(db, job)?,
        }
    }
    Ok(Committed::Stored)
}

#[async_trait]
impl SettleSessions for Store {
    async fn find(&self, session: SessionId) -> Result<Found, StoreError> {
        let doing = format!("looking for session {session}");
        self.look("session.find", doing, move |db| find(db, session)).await
    }

    async fn bury(&self, session: SessionId, now: Timestamp) -> Result<Found, StoreError> {
        let doing = format!("giving session {session} up");
        let work = move |db: &Connection| {
            put(db, session, TOMBSTONE, now)?;
            find(db, session)
        };
        self.change("session.bury", doing, work).await
    }
}

/// The first record of a session stays.
fn put(db: &Connection, session: SessionId, state: &str, at: Timestamp) -> Result<(), Fault> {
    db.prepare_cached("INSERT INTO session VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?.execute(params![
        session.to_string(),
        state,
        nanos(at)
    ])?;
    Ok(())
}

fn find(db: &Connection, session: SessionId) -> Result<Found, Fault> {
    let state = db
        .prepare_cached("SELECT state FROM session WHERE session_id = ?1")?
        .query_row([session.to_string()], |row| row.get::<_, String>(0))
        .optional()?;
    match state.as_deref() {
        None => Ok(Found::Nothing),
        Some(COMMITTED) => Ok(Found::Committed),
        Some(TOMBSTONE) => Ok(Found::Tombstone),
        Some(other) => Err(Fault::Malformed { what: "state of a session", text: other.to_owned() }),
    }
}
