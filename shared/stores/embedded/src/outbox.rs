//! The outbox entries of sagas and of transactional sessions, one row each.

use std::collections::BTreeSet;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::store::some_of;
use messages::{MessageId, StoreError};
use outbox::{
    ClaimedEntries, Entry, EntryResult, InspectOutbox, OutboxRecord, Owner, Settlement, SweepOutbox,
    Unreadable, UnreadableAction,
};
use rusqlite::{Connection, Row, named_params, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::tables::explain;
use crate::value::{from_json, json, limit, nanos, parse, timestamp};

/// The outboxes of all records of one kind.
#[derive(Clone)]
pub struct Outbox {
    store: Store,
    of: &'static str,
}

const SAGA: &str = "saga";
const SESSION: &str = "session";

impl Store {
    /// The outboxes of all sagas.
    pub fn saga_outbox(&self) -> Outbox {
        Outbox { store: self.clone(), of: SAGA }
    }

    /// The outboxes of all committed sessions.
    pub fn session_outbox(&self) -> Outbox {
        Outbox { store: self.clone(), of: SESSION }
    }
}

#[async_trait]
impl SweepOutbox for Outbox {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
        let of = self.of;
        let doing = format!("looking for due {of} entries");
        self.store.look(Call::OutboxDue, doing, move |db| due(db, of, now, limit)).await
    }

    async fn claim_due(
        &self,
        owners: &[Owner],
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<ClaimedEntries>, StoreError> {
        let doing = format!("claiming the outbox of {}", some_of(owners.iter()));
        let owners = owners.to_vec();
        let work = move |db: &Connection| {
            owners.iter().map(|owner| Ok(Ok(claim_due(db, *owner, now, until)?))).collect()
        };
        self.store.change_in_passing(Call::OutboxClaim, doing, work).await
    }

    async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
        let settlements = settlements.to_vec();
        let doing = format!("settling the outbox of {}", some_of(settlements.iter().map(|(owner, _)| owner)));
        let work = move |db: &Connection| {
            settlements.iter().try_for_each(|(owner, settlements)| settle(db, *owner, settlements))
        };
        self.store.change_in_passing(Call::OutboxSettle, doing, work).await
    }

    async fn resolve_unreadable(&self, place: &str, treatment: &UnreadableAction) -> Result<(), StoreError> {
        let (of, place, treatment) = (self.of, place.to_owned(), treatment.clone());
        let doing = format!("treating {of} entry {place}, which cannot be read");
        self.store
            .change(Call::OutboxTreat, doing, move |db| resolve_unreadable(db, of, &place, &treatment))
            .await
    }
}

#[async_trait]
impl InspectOutbox for Outbox {
    async fn pending(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let of = self.of;
        let after = after.unwrap_or_default().to_owned();
        let doing = format!("listing the outboxes of every {of}");
        self.store.look(Call::OutboxPending, doing, move |db| listed(db, PENDING, of, &after, limit)).await
    }

    async fn poisoned(&self, after: Option<&str>, limit: usize) -> Result<Vec<OutboxRecord>, StoreError> {
        let of = self.of;
        let after = after.unwrap_or_default().to_owned();
        let doing = format!("listing poisoned entries in the outboxes of every {of}");
        let work = move |db: &Connection| listed(db, POISONED, of, &after, limit);
        self.store.look(Call::OutboxPoisoned, doing, work).await
    }

    async fn entries_of(&self, owner: Owner) -> Result<Vec<EntryResult>, StoreError> {
        let doing = format!("reading the outbox of {owner}");
        self.store.look(Call::OutboxRead, doing, move |db| of_record(db, owner)).await
    }

    async fn plan(&self) -> Result<String, StoreError> {
        let doing = "explaining the query of due entries".to_owned();
        self.store.look(Call::OutboxPlan, doing, |db| Ok(explain(db, DUE)?)).await
    }
}

pub(crate) const PENDING: &str = "SELECT * FROM outbox WHERE owner = ?1 AND owner_id IN
    (SELECT DISTINCT owner_id FROM outbox WHERE owner = ?1 AND owner_id > ?2 ORDER BY owner_id LIMIT ?3)
    ORDER BY owner_id, seq";

/// Corresponds to the query above, for exhausted entries only.
pub(crate) const POISONED: &str = "SELECT * FROM outbox WHERE owner = ?1 AND poisoned = 1 AND owner_id IN
    (SELECT DISTINCT owner_id FROM outbox WHERE owner = ?1 AND poisoned = 1 AND owner_id > ?2
     ORDER BY owner_id LIMIT ?3)
    ORDER BY owner_id, seq";

fn listed(
    db: &Connection,
    sql: &str,
    of: &'static str,
    after: &str,
    count: usize,
) -> Result<Vec<OutboxRecord>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params![of, after, limit(count)])?;
    let mut found: Vec<OutboxRecord> = Vec::new();
    while let Some(row) = rows.next()? {
        let id: String = row.get("owner_id")?;
        let owner = owner(of, &id);
        let entry = match &owner {
            Ok(_) => stored(row)?,
            Err(fault) => Err(unreadable(row, fault)?),
        };
        match found.last_mut() {
            Some(last) if last.id == id => last.entries.push(entry),
            _ => found.push(OutboxRecord { id, owner: owner.ok(), entries: vec![entry] }),
        }
    }
    Ok(found)
}

pub(crate) fn key(owner: Owner) -> (&'static str, String) {
    match owner {
        Owner::Saga(id) => (SAGA, id.to_string()),
        Owner::Session(id) => (SESSION, id.to_string()),
    }
}

pub(crate) fn owner(kind: &str, id: &str) -> Result<Owner, Fault> {
    match kind {
        SAGA => Ok(Owner::Saga(parse("partition key", id)?)),
        SESSION => Ok(Owner::Session(parse("session id", id)?)),
        _ => Err(Fault::Malformed { what: "kind of record", text: kind.to_owned() }),
    }
}

/// The query of [`SweepOutbox::due`]; a test checks its plan.
pub(crate) const DUE: &str =
    "SELECT owner_id, seq FROM outbox WHERE owner = ?1 AND ready_at <= ?2 ORDER BY ready_at";

fn due(
    db: &Connection,
    of: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<Result<Owner, Unreadable>>, Fault> {
    let mut statement = db.prepare_cached(DUE)?;
    let mut rows = statement.query(params![of, nanos(now)])?;
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    // The entries are read in the order of waiting, and reading stops as soon as enough were found. A long queue
    // therefore costs no more.
    while found.len() < limit
        && let Some(row) = rows.next()?
    {
        match owner(of, &row.get::<_, String>("owner_id")?) {
            Ok(owner) if seen.insert(owner) => found.push(Ok(owner)),
            Ok(_) => {}
            Err(fault) => found.push(Err(unreadable(row, &fault)?)),
        }
    }
    Ok(found)
}

/// Without the hint SQLite would scan the ready entries of all records, which may be many.
pub(crate) const CLAIM: &str = "UPDATE outbox INDEXED BY outbox_entry
    SET claimed_until = :until, ready_at = max(:until, due_at, next_attempt_at)
    WHERE owner = :owner AND owner_id = :id AND (ready_at <= :now OR claimed_until = :until)
    RETURNING *";

fn claim_due(
    db: &Connection,
    owner: Owner,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<EntryResult>, Fault> {
    let (kind, id) = key(owner);
    let mut statement = db.prepare_cached(CLAIM)?;
    let mut rows = statement.query(named_params! {
        ":owner": kind, ":id": id, ":now": nanos(now), ":until": nanos(until),
    })?;
    let mut claimed = Vec::new();
    while let Some(row) = rows.next()? {
        claimed.push((row.get::<_, i64>("seq")?, stored(row)?));
    }
    // RETURNING promises no order.
    claimed.sort_by_key(|(seq, _)| *seq);
    Ok(claimed.into_iter().map(|(_, entry)| entry).collect())
}

/// An unreadable entry is identified by its row number. Row numbers are reused, so the row may belong to another entry
/// by now.
fn resolve_unreadable(
    db: &Connection,
    of: &'static str,
    place: &str,
    treatment: &UnreadableAction,
) -> Result<(), Fault> {
    let seq: i64 = parse("number of an outbox entry", place)?;
    if !is_unreadable(db, of, seq)? {
        return Ok(());
    }
    match treatment {
        UnreadableAction::Poison(why) => db
            .prepare_cached(
                "UPDATE outbox SET poisoned = 1, error = ?3, ready_at = NULL WHERE owner = ?1 AND seq = ?2",
            )?
            .execute(params![of, seq, why])?,
        UnreadableAction::Requeue(now) => db
            .prepare_cached(
                "UPDATE outbox SET poisoned = 0, claimed_until = NULL, ready_at = ?3
                WHERE owner = ?1 AND seq = ?2 AND ready_at IS NULL",
            )?
            .execute(params![of, seq, nanos(*now)])?,
        UnreadableAction::Delete => db
            .prepare_cached("DELETE FROM outbox WHERE owner = ?1 AND seq = ?2")?
            .execute(params![of, seq])?,
    };
    Ok(())
}

fn is_unreadable(db: &Connection, of: &'static str, seq: i64) -> Result<bool, Fault> {
    let mut statement = db.prepare_cached("SELECT * FROM outbox WHERE owner = ?1 AND seq = ?2")?;
    let mut rows = statement.query(params![of, seq])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    Ok(owner(of, &row.get::<_, String>("owner_id")?).is_err() || stored(row)?.is_err())
}

/// Settles entries whose claim is still the one each settlement names.
pub(crate) fn settle(db: &Connection, owner: Owner, settlements: &[Settlement]) -> Result<(), Fault> {
    let (kind, id) = key(owner);
    for settlement in settlements {
        let claim = settlement.claim.map(nanos);
        match &settlement.keep {
            None => {
                db.prepare_cached(
                    "DELETE FROM outbox
                     WHERE owner = ?1 AND owner_id = ?2 AND entry_id = ?3 AND claimed_until IS ?4",
                )?
                .execute(params![kind, id, settlement.id.to_string(), claim])?;
            }
            Some(entry) => keep(db, owner, settlement.id, claim, entry)?,
        }
    }
    Ok(())
}

const KEEP: &str = "UPDATE outbox SET due_at = :due_at, attempts = :attempts,
    next_attempt_at = :next_attempt_at, claimed_until = :claimed_until, poisoned = :poisoned, error = :error,
    requeued = :requeued, ready_at = :ready_at
    WHERE owner = :owner AND owner_id = :owner_id AND entry_id = :entry_id AND claimed_until IS :claim";

fn keep(
    db: &Connection,
    owner: Owner,
    id: MessageId,
    claim: Option<i64>,
    entry: &Entry,
) -> Result<(), Fault> {
    let (kind, owner_id) = key(owner);
    db.prepare_cached(KEEP)?.execute(named_params! {
        ":due_at": nanos(entry.due_at),
        ":attempts": entry.attempts,
        ":next_attempt_at": nanos(entry.next_attempt_at),
        ":claimed_until": entry.claimed_until.map(nanos),
        ":poisoned": entry.poisoned,
        ":error": entry.error,
        ":requeued": entry.requeued,
        ":ready_at": entry.ready_at().map(nanos),
        ":owner": kind,
        ":owner_id": owner_id,
        ":entry_id": id.to_string(),
        ":claim": claim,
    })?;
    Ok(())
}

const ADD: &str = "INSERT OR REPLACE INTO outbox
    (owner, owner_id, entry_id, kind, payload, due_at, attempts, next_attempt_at, claimed_until, poisoned, error,
     requeued, ready_at)
    VALUES (:owner, :owner_id, :entry_id, :kind, :payload, :due_at, :attempts, :next_attempt_at, :claimed_until,
     :poisoned, :error, :requeued, :ready_at)";

/// Adds entries at the end of an outbox.
pub(crate) fn add(db: &Connection, owner: Owner, entries: &[Entry]) -> Result<(), Fault> {
    let (kind, id) = key(owner);
    let mut statement = db.prepare_cached(ADD)?;
    for entry in entries {
        statement.execute(named_params! {
            ":owner": kind,
            ":owner_id": id,
            ":entry_id": entry.id.to_string(),
            ":kind": json(&entry.kind)?,
            ":payload": entry.payload,
            ":due_at": nanos(entry.due_at),
            ":attempts": entry.attempts,
            ":next_attempt_at": nanos(entry.next_attempt_at),
            ":claimed_until": entry.claimed_until.map(nanos),
            ":poisoned": entry.poisoned,
            ":error": entry.error,
            ":requeued": entry.requeued,
            ":ready_at": entry.ready_at().map(nanos),
        })?;
    }
    Ok(())
}

/// Removes entries regardless of their claims.
pub(crate) fn cancel(db: &Connection, owner: Owner, ids: &[MessageId]) -> Result<(), Fault> {
    let (kind, id) = key(owner);
    let mut statement =
        db.prepare_cached("DELETE FROM outbox WHERE owner = ?1 AND owner_id = ?2 AND entry_id = ?3")?;
    for entry in ids {
        statement.execute(params![kind, id, entry.to_string()])?;
    }
    Ok(())
}

/// Returns the readable entries of a record's outbox in the order of their addition. Unreadable entries are left to the
/// sweep and to operators: a writer names the entries that it changes.
pub(crate) fn entries(db: &Connection, owner: Owner) -> Result<Vec<Entry>, Fault> {
    Ok(of_record(db, owner)?.into_iter().flatten().collect())
}

/// Returns the entries of a record's outbox in the order of their addition.
fn of_record(db: &Connection, owner: Owner) -> Result<Vec<EntryResult>, Fault> {
    let (kind, id) = key(owner);
    let mut statement =
        db.prepare_cached("SELECT * FROM outbox WHERE owner = ?1 AND owner_id = ?2 ORDER BY seq")?;
    let mut rows = statement.query(params![kind, id])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(stored(row)?);
    }
    Ok(entries)
}

fn stored(row: &Row<'_>) -> Result<EntryResult, Fault> {
    match entry(row) {
        Ok(entry) => Ok(Ok(entry)),
        Err(fault) if fault.is_of_value() => Ok(Err(unreadable(row, &fault)?)),
        Err(fault) => Err(fault),
    }
}

fn unreadable(row: &Row<'_>, fault: &Fault) -> Result<Unreadable, Fault> {
    Ok(Unreadable { place: row.get::<_, i64>("seq")?.to_string(), why: fault.to_string() })
}

fn entry(row: &Row<'_>) -> Result<Entry, Fault> {
    let time = |column| row.get::<_, i64>(column).map(timestamp);
    Ok(Entry {
        id: parse("message id", &row.get::<_, String>("entry_id")?)?,
        kind: from_json(&row.get::<_, String>("kind")?)?,
        payload: row.get("payload")?,
        due_at: time("due_at")?,
        attempts: row.get("attempts")?,
        next_attempt_at: time("next_attempt_at")?,
        claimed_until: row.get::<_, Option<i64>>("claimed_until")?.map(timestamp),
        poisoned: row.get("poisoned")?,
        error: row.get("error")?,
        requeued: row.get("requeued")?,
    })
}
