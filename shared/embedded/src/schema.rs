//! The tables, and how a file becomes one of ours.
//!
//! Times are nanoseconds since 1970, ids are text, and whatever nobody searches by is JSON: a person with the
//! `sqlite3` shell can read all of it.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::OpenError;

/// Marks a file as ours: "SIMP" in ASCII (`PRAGMA application_id`).
const APPLICATION_ID: i64 = 0x5349_4D50;

/// How long a connection waits for another process that holds the database. Only a checkpoint or a backup tool
/// can be in the way, and neither takes longer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// Statements kept prepared per connection; there are fewer.
const PREPARED: usize = 100;

/// The most that the write-ahead log keeps of the disk once it has been written back: 64 MiB.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// What the writing connection keeps of the database in memory, in KiB: the pages that imports under way touch.
const WRITER_CACHE_KIB: i64 = 32 * 1024;

/// Each step takes the schema from the version of its index to the next.
const MIGRATIONS: [&str; 5] = [
    include_str!("schema.sql"),
    include_str!("by_project.sql"),
    include_str!("duplicates.sql"),
    include_str!("records.sql"),
    include_str!("reading.sql"),
];

/// The version that this code reads and writes (`PRAGMA user_version`).
#[expect(clippy::cast_possible_truncation, reason = "there are a handful")]
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// A connection that writes; creates or upgrades the tables.
pub(crate) fn open_for_writing(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let mut db = Connection::open(path).map_err(failed)?;
    prepare(&db).map_err(failed)?;
    let version = check(&db, path)?;
    db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    // FULL: a commit is on the disk before it is answered. WAL with less may lose the last commits when the
    // machine loses power.
    db.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    db.pragma_update(None, "cache_size", -WRITER_CACHE_KIB).map_err(failed)?;
    // What a burst has left is given back to the file system.
    db.pragma_update(None, "journal_size_limit", LOG_BYTES).map_err(failed)?;
    if version < VERSION {
        migrate(&mut db, version).map_err(failed)?;
    }
    Ok(db)
}

/// A connection that reads; the tables must be there in this very version.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(path, flags).map_err(failed)?;
    prepare(&db).map_err(failed)?;
    match check(&db, path)? {
        VERSION => Ok(db),
        found => Err(OpenError::Older { path: path.to_owned(), found }),
    }
}

fn prepare(db: &Connection) -> rusqlite::Result<()> {
    db.busy_timeout(BUSY_TIMEOUT)?;
    db.set_prepared_statement_cache_capacity(PREPARED);
    // A plan stays what it was when its statement was prepared. Otherwise SQLite, as it is compiled here, prepares a
    // statement anew for each value bound to a column of an index; that took a tenth of all time, for no better plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(())
}

/// The version of a file that is ours or still empty.
fn check(db: &Connection, path: &Path) -> Result<u32, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
    let application = number("SELECT application_id FROM pragma_application_id")?;
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    if application != APPLICATION_ID && !(application == 0 && is_empty) {
        return Err(OpenError::NotOurs { path: path.to_owned() });
    }
    let found = number("SELECT user_version FROM pragma_user_version")?;
    match u32::try_from(found) {
        Ok(found) if found <= VERSION => Ok(found),
        _ => Err(OpenError::Newer { path: path.to_owned(), found }),
    }
}

/// All steps in one transaction: a crash leaves the old version or the new one.
fn migrate(db: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    for step in MIGRATIONS.iter().skip(from as usize) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

/// How SQLite would run a query; whatever its parameters are, the plan is the same.
pub(crate) fn explain(db: &Connection, query: &str) -> rusqlite::Result<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
    Ok(steps.collect::<Result<Vec<_>, _>>()?.join("; "))
}

/// Whether the file is no database at all.
pub(crate) fn is_foreign(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::NotADatabase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{outbox, queues, recover, studies, views};

    #[test]
    fn every_query_of_sweepers_and_queues_is_served_by_an_index() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        for (query, index) in [
            (outbox::DUE, "USING COVERING INDEX outbox_ready (owner=? AND ready_at<?)"),
            (outbox::CLAIM, "USING INDEX outbox_entry (owner=? AND owner_id=?)"),
            (queues::VISIBLE, "USING INDEX message_visible (queue=? AND visible_at<?)"),
            (outbox::PENDING, "USING INDEX outbox_entry (owner=? AND owner_id=?)"),
            (views::UNFINISHED, "USING INDEX job_unfinished"),
            (views::LIST, "USING INDEX job_by_project"),
            (studies::DUPLICATES, "USING INDEX study_duplicate (search_id=? AND file_id=?)"),
            (recover::PURGE_SAGAS, "USING INDEX saga_expiry (expires_at<?)"),
            (recover::PURGE_SESSIONS, "USING INDEX session_age (at<?)"),
        ] {
            let plan = explain(&db, query).unwrap();
            assert!(plan.contains(index), "{query}: {plan}");
            assert!(
                !plan.contains("SCAN outbox") && !plan.contains("TEMP B-TREE FOR ORDER BY"),
                "{query}: {plan}"
            );
        }
    }

    /// A power cut cannot be tried here; that the disk is waited for is read from the connection instead.
    #[test]
    fn the_writing_connection_waits_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let db = open_for_writing(&folder.path().join("any.sqlite")).unwrap();
        let setting =
            |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        const FULL: i64 = 2;
        assert_eq!(setting("synchronous").unwrap(), FULL.into());
        assert_eq!(setting("journal_mode").unwrap(), "wal".to_owned().into());
    }
}
