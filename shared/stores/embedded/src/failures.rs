//! Failures: dead-lettered messages and exhausted effects.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use rusqlite::types::Value;
use rusqlite::{Connection, ErrorCode, Params, Row, Rows, named_params, params};
use saga::KeepFailures;
use saga::failures::store::{AUDIT_RETENTION, MAX_GROUPS};
use saga::failures::{
    AuditEntry, CauseGroup, Causes, Change, Failure, FailureCursor, FailureId, Operation, OperationId,
    Selection,
};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, int, json, limit, nanos, timestamp, uint};

#[async_trait]
impl KeepFailures for Store {
    async fn failures(&self, ids: &[FailureId]) -> Result<Vec<Option<Failure>>, StoreError> {
        let ids = ids.to_vec();
        let work = move |db: &Connection| ids.iter().map(|id| one(db, *id)).collect();
        self.look(Call::FailuresRead, "reading failures".to_owned(), work).await
    }

    async fn change(&self, changes: &[Change]) -> Result<Vec<bool>, StoreError> {
        let changes = changes.to_vec();
        let work = move |db: &Connection| changes.iter().map(|one| change(db, one)).collect();
        Store::change(self, Call::FailuresChange, "changing failures".to_owned(), work).await
    }

    async fn select(
        &self,
        selection: &Selection,
        after: Option<FailureCursor>,
        limit: usize,
    ) -> Result<Vec<Failure>, StoreError> {
        let selection = selection.clone();
        let work = move |db: &Connection| select(db, &selection, after, limit);
        self.look(Call::FailuresSelect, "listing failures".to_owned(), work).await
    }

    async fn causes(&self, selection: &Selection) -> Result<Causes, StoreError> {
        let selection = selection.clone();
        let work = move |db: &Connection| causes(db, &selection);
        self.look(Call::FailuresGroup, "counting failures by cause".to_owned(), work).await
    }

    async fn operation(&self, id: OperationId) -> Result<Option<Operation>, StoreError> {
        let work =
            move |db: &Connection| operation(db, "SELECT * FROM operation WHERE id = ?1", [id.to_string()]);
        self.look(Call::OperationsRead, format!("reading operation {id}"), work).await
    }

    async fn operations(&self, max: usize) -> Result<Vec<Operation>, StoreError> {
        let work = move |db: &Connection| {
            listed(&mut db.prepare_cached(LATEST)?.query([])?, max, "an operation", read_operation)
        };
        self.look(Call::OperationsRead, "listing operations".to_owned(), work).await
    }

    async fn running(&self) -> Result<Option<Operation>, StoreError> {
        let work = |db: &Connection| operation(db, RUNNING, []);
        self.look(Call::OperationsRead, "looking for an operation that is running".to_owned(), work).await
    }

    async fn advance(&self, revision: u64, operation: &Operation) -> Result<bool, StoreError> {
        let (doing, operation) = (format!("storing operation {}", operation.id), operation.clone());
        let work = move |db: &Connection| advance(db, revision, &operation);
        Store::change(self, Call::OperationsAdvance, doing, work).await
    }

    async fn note(&self, entry: &AuditEntry) -> Result<(), StoreError> {
        let entry = entry.clone();
        let work = move |db: &Connection| {
            let note = "INSERT INTO act (at, act) VALUES (?1, ?2)";
            db.prepare_cached(note)?.execute(params![nanos(entry.at), json(&entry)?])?;
            Ok(())
        };
        Store::change(self, Call::ActsNote, "recording an audit entry".to_owned(), work).await
    }

    async fn audit_entries(&self, max: usize) -> Result<Vec<AuditEntry>, StoreError> {
        let work = move |db: &Connection| {
            let mut statement = db.prepare_cached("SELECT seq AS id, act FROM act ORDER BY seq DESC")?;
            listed(&mut statement.query([])?, max, "an audit entry", |row| {
                from_json(&row.get::<_, String>("act")?)
            })
        };
        self.look(Call::ActsRead, "reading audit entries".to_owned(), work).await
    }
}

fn one(db: &Connection, id: FailureId) -> Result<Option<Failure>, Fault> {
    let mut statement = db.prepare_cached("SELECT revision, failure FROM failure WHERE id = ?1")?;
    statement.query([id.to_string()])?.next()?.map(read_failure).transpose()
}

fn read_failure(row: &Row<'_>) -> Result<Failure, Fault> {
    let failure = from_json(&row.get::<_, String>("failure")?)?;
    Ok(Failure { revision: uint(row.get("revision")?), ..failure })
}

/// Returns the first `max` values that can be read. Each list has the order of an index, so no more rows are read than
/// needed. A limit in the statement would count unreadable rows too, and a page would look like the last one.
fn listed<T>(
    rows: &mut Rows<'_>,
    max: usize,
    what: &'static str,
    read: impl Fn(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut found = Vec::new();
    while found.len() < max
        && let Some(row) = rows.next()?
    {
        match read(row) {
            Ok(value) => found.push(value),
            Err(fault) if fault.is_of_value() => {
                let id: Value = row.get("id")?;
                tracing::error!(what, ?id, error = %fault, "a stored value cannot be read and is not listed");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(found)
}

fn change(db: &Connection, Change { id, revision, next }: &Change) -> Result<bool, Fault> {
    let changed = match next {
        None => db
            .prepare_cached("DELETE FROM failure WHERE id = ?1 AND revision = ?2")?
            .execute(params![id.to_string(), int(*revision)])?,
        Some(next) => {
            // No failure has revision 0, so the replacement of revision 0 creates it.
            let sql = if *revision == 0 { INSERT } else { UPDATE };
            db.prepare_cached(sql)?.execute(named_params! {
                ":id": id.to_string(),
                ":revision": int(*revision),
                ":standing": next.state.standing().name(),
                ":fingerprint": next.fingerprint,
                ":place": next.origin.place(),
                ":partition": next.partition.map(|partition| partition.to_string()),
                ":message": next.message,
                ":reason": next.reason,
                ":first_seen": nanos(next.first_seen),
                ":last_seen": nanos(next.last_seen),
                ":expires_at": next.expires_at.map(nanos),
                ":failure": json(next)?,
            })?
        }
    };
    Ok(changed == 1)
}

const INSERT: &str = "INSERT INTO failure (id, revision, standing, fingerprint, place, partition, message,
        reason, first_seen, last_seen, expires_at, failure)
    VALUES (:id, :revision + 1, :standing, :fingerprint, :place, :partition, :message,
        :reason, :first_seen, :last_seen, :expires_at, :failure)
    ON CONFLICT (id) DO NOTHING";
const UPDATE: &str = "UPDATE failure SET revision = revision + 1, standing = :standing,
        fingerprint = :fingerprint, place = :place, partition = :partition, message = :message, reason = :reason,
        first_seen = :first_seen, last_seen = :last_seen, expires_at = :expires_at, failure = :failure
    WHERE id = :id AND revision = :revision";

/// The conditions of a selection in addition to state and cause.
macro_rules! selected {
    ($what:literal, $cause:literal, $end:literal) => {
        concat!(
            "SELECT ",
            $what,
            " FROM failure WHERE standing = :standing AND ",
            $cause,
            " AND last_seen <= :until
            AND (:place IS NULL OR place = :place)
            AND (:partition IS NULL OR partition = :partition)
            AND (:ids IS NULL OR id IN (SELECT value FROM json_each(:ids))) ",
            $end
        )
    };
}

pub(crate) const SELECT: &str = selected!(
    "id, revision, failure",
    ":fingerprint IS NULL",
    "AND (last_seen, id) < (:last_seen, :id) ORDER BY last_seen DESC, id DESC"
);
pub(crate) const SELECT_CAUSE: &str = selected!(
    "id, revision, failure",
    "fingerprint = :fingerprint",
    "AND (last_seen, id) < (:last_seen, :id) ORDER BY last_seen DESC, id DESC"
);
pub(crate) const GROUPS: &str = selected!(
    "fingerprint, count(*) AS count, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
        max(reason) AS reason, json_group_array(DISTINCT message) AS messages,
        sum(count(*)) OVER () AS total, max(max(last_seen)) OVER () AS last",
    "(:fingerprint IS NULL OR fingerprint = :fingerprint)",
    "GROUP BY fingerprint ORDER BY count(*) DESC, fingerprint LIMIT :limit"
);

/// A selection as parameters.
struct SelectionParams {
    until: i64,
    partition: Option<String>,
    ids: Option<String>,
}

impl SelectionParams {
    fn of(selection: &Selection) -> Result<Self, Fault> {
        let ids = (!selection.ids.is_empty()).then(|| json(&selection.ids)).transpose()?;
        Ok(Self {
            until: selection.until.map_or(i64::MAX, nanos),
            partition: selection.partition.map(|partition| partition.to_string()),
            ids,
        })
    }
}

fn select(
    db: &Connection,
    selection: &Selection,
    after: Option<FailureCursor>,
    max: usize,
) -> Result<Vec<Failure>, Fault> {
    let bound = SelectionParams::of(selection)?;
    // Ids are hexadecimal, so all of them sort before this.
    let (last_seen, id) =
        after.map_or((i64::MAX, "~".to_owned()), |place| (nanos(place.last_seen), place.id.to_string()));
    let sql = if selection.fingerprint.is_some() { SELECT_CAUSE } else { SELECT };
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(named_params! {
        ":standing": selection.standing.name(),
        ":fingerprint": selection.fingerprint,
        ":place": selection.place,
        ":partition": bound.partition,
        ":until": bound.until,
        ":ids": bound.ids,
        ":last_seen": last_seen,
        ":id": id,
    })?;
    listed(&mut rows, max, "a failure", read_failure)
}

fn causes(db: &Connection, selection: &Selection) -> Result<Causes, Fault> {
    let bound = SelectionParams::of(selection)?;
    let mut statement = db.prepare_cached(GROUPS)?;
    let mut rows = statement.query(named_params! {
        ":standing": selection.standing.name(),
        ":fingerprint": selection.fingerprint,
        ":place": selection.place,
        ":partition": bound.partition,
        ":until": bound.until,
        ":ids": bound.ids,
        ":limit": limit(MAX_GROUPS),
    })?;
    let mut causes = Causes::default();
    while let Some(row) = rows.next()? {
        (causes.count, causes.last_seen) = (uint(row.get("total")?), Some(timestamp(row.get("last")?)));
        causes.groups.push(CauseGroup {
            fingerprint: row.get("fingerprint")?,
            reason: row.get("reason")?,
            messages: from_json(&row.get::<_, String>("messages")?)?,
            count: uint(row.get("count")?),
            first_seen: timestamp(row.get("first_seen")?),
            last_seen: timestamp(row.get("last_seen")?),
        });
    }
    Ok(causes)
}

pub(crate) const RUNNING: &str = "SELECT * FROM operation WHERE expires_at IS NULL";
const LATEST: &str = "SELECT * FROM operation ORDER BY begun_at DESC";

fn operation(db: &Connection, sql: &str, params: impl Params) -> Result<Option<Operation>, Fault> {
    db.prepare_cached(sql)?.query(params)?.next()?.map(read_operation).transpose()
}

fn read_operation(row: &Row<'_>) -> Result<Operation, Fault> {
    let operation: Operation = from_json(&row.get::<_, String>("operation")?)?;
    Ok(Operation { revision: uint(row.get("revision")?), ..operation })
}

fn advance(db: &Connection, revision: u64, operation: &Operation) -> Result<bool, Fault> {
    let sql = if revision == 0 {
        "INSERT INTO operation (id, revision, begun_at, expires_at, operation)
         VALUES (:id, :revision + 1, :begun_at, :expires_at, :operation)"
    } else {
        "UPDATE operation SET revision = revision + 1, begun_at = :begun_at, expires_at = :expires_at,
            operation = :operation
         WHERE id = :id AND revision = :revision"
    };
    let stored = db.prepare_cached(sql)?.execute(named_params! {
        ":id": operation.id.to_string(),
        ":revision": int(revision),
        ":begun_at": nanos(operation.begun_at),
        ":expires_at": operation.expires_at().map(nanos),
        ":operation": json(operation)?,
    });
    match stored {
        Ok(stored) => Ok(stored == 1),
        // The operation exists, or another one is running.
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Deletes closed failures, ended operations and old audit entries.
pub(crate) fn purge(db: &Connection, now: Timestamp) -> Result<usize, Fault> {
    let delete = |sql: &str, before: Timestamp| db.prepare_cached(sql)?.execute([nanos(before)]);
    let old = now.checked_sub(AUDIT_RETENTION).unwrap_or(Timestamp::MIN);
    delete("DELETE FROM operation WHERE expires_at <= ?1", now)?;
    delete("DELETE FROM act WHERE at <= ?1", old)?;
    Ok(delete("DELETE FROM failure WHERE expires_at <= ?1", now)?)
}
