//! Transactional sessions: the record, its messages and its data in one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{SessionId, StoreError};
use outbox::session::{SessionStatus, WorkVerdict};
use outbox::{CommitOutcome, CommitSession, Owner, SessionRecord, SettleSessions};
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::nanos;
use crate::{records, views};

const COMMITTED: &str = "committed";
const TOMBSTONE: &str = "tombstone";

#[async_trait]
impl CommitSession for Store {
    async fn commit(&self, session: &SessionRecord) -> Result<CommitOutcome, StoreError> {
        let doing = format!("committing session {}", session.id);
        let session = session.clone();
        self.change(Call::SessionCommit, doing, move |db| commit(db, &session)).await
    }
}

fn commit(db: &Connection, session: &SessionRecord) -> Result<CommitOutcome, Fault> {
    commit_with(db, session, None)
}

/// Further work in the transaction of a session.
type Work<'a> = dyn Fn(&Connection) -> Result<WorkVerdict, Fault> + 'a;

/// Commits a session with further work. After any outcome other than [`CommitOutcome::Stored`], the caller rolls back
/// the writes of the work.
pub(crate) fn commit_with(
    db: &Connection,
    session: &SessionRecord,
    work: Option<&Work<'_>>,
) -> Result<CommitOutcome, Fault> {
    // The session is checked before the reads, because a repeated commit may have changed the records that it had read.
    match find(db, session.id)? {
        SessionStatus::Tombstone => return Ok(CommitOutcome::TooLate),
        SessionStatus::Committed => return Ok(CommitOutcome::Stored),
        SessionStatus::Nothing => {}
    }
    // The reads are checked before any write. The result is valid until the end of the transaction, and a refusal has
    // no effect.
    for read in &session.reads {
        if !records::holds(db, read)? {
            return Ok(CommitOutcome::Changed);
        }
    }
    if let Some(work) = work
        && work(db)? == WorkVerdict::Refuse
    {
        return Ok(CommitOutcome::Refused);
    }
    if session.is_change() || work.is_some() {
        put(db, session.id, COMMITTED, session.committed_at)?;
    }
    crate::outbox::add(db, Owner::Session(session.id), &session.entries)?;
    session.views.iter().try_for_each(|view| views::create(db, view))?;
    session.writes.iter().try_for_each(|write| records::write(db, write))?;
    Ok(CommitOutcome::Stored)
}

#[async_trait]
impl SettleSessions for Store {
    async fn find(&self, session: SessionId) -> Result<SessionStatus, StoreError> {
        let doing = format!("looking for session {session}");
        self.look(Call::SessionFind, doing, move |db| find(db, session)).await
    }

    async fn abandon(&self, session: SessionId, now: Timestamp) -> Result<SessionStatus, StoreError> {
        let doing = format!("giving session {session} up");
        let work = move |db: &Connection| {
            put(db, session, TOMBSTONE, now)?;
            find(db, session)
        };
        self.change(Call::SessionAbandon, doing, work).await
    }
}

/// The first record of a session is kept.
fn put(db: &Connection, session: SessionId, state: &str, at: Timestamp) -> Result<(), Fault> {
    db.prepare_cached("INSERT INTO session VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")?.execute(params![
        session.to_string(),
        state,
        nanos(at)
    ])?;
    Ok(())
}

fn find(db: &Connection, session: SessionId) -> Result<SessionStatus, Fault> {
    let state = db
        .prepare_cached("SELECT state FROM session WHERE session_id = ?1")?
        .query_row([session.to_string()], |row| row.get::<_, String>(0))
        .optional()?;
    match state.as_deref() {
        None => Ok(SessionStatus::Nothing),
        Some(COMMITTED) => Ok(SessionStatus::Committed),
        Some(TOMBSTONE) => Ok(SessionStatus::Tombstone),
        Some(other) => Err(Fault::Malformed { what: "state of a session", text: other.to_owned() }),
    }
}
