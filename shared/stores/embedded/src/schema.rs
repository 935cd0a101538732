//! Opening a database file: checking, creating and upgrading its tables.
//!
//! Times are nanoseconds since 1970, ids are text, and columns that no query uses are JSON. All of it is readable in
//! the `sqlite3` shell, except for the texts of studies, which are compressed.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::open_error::OpenError;
use crate::tables::{VERSION, steps};

/// The application id of these databases: "SIMP" in ASCII (`PRAGMA application_id`).
const APPLICATION_ID: i64 = 0x5349_4D50;

/// The time that a connection waits for another process that holds the database. Only a checkpoint or a backup tool
/// holds it, and neither takes longer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of cached prepared statements per connection; there are fewer statements.
const PREPARED: usize = 100;

/// The maximum size of the write-ahead log after a checkpoint: 64 MiB.
const LOG_BYTES: i64 = 64 * 1024 * 1024;

/// The page size of new files. A study takes about 1,000 bytes, and the unused part of a page is larger with SQLite's
/// default of 4 KiB, which holds three or four studies (decision 48). A file keeps its page size.
const PAGE_BYTES: i64 = 8 * 1024;

/// The page cache of the writing connection, in KiB: the pages that running imports touch.
const WRITER_CACHE_KIB: i64 = 4 * 1024;

/// Each connection belongs to one thread. Symbolic links to the database are not followed; SQLite never follows links
/// to its additional files.
const CAREFUL: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX.union(OpenFlags::SQLITE_OPEN_NOFOLLOW);

/// Opens a connection that writes. Upgrades the tables, and creates them if `may_begin` permits it.
pub(crate) fn open_for_writing(
    path: &Path,
    may_begin: impl FnOnce() -> Result<(), OpenError>,
) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | CAREFUL;
    let mut db = Connection::open_with_flags(path, flags).map_err(failed)?;
    prepare(&db).map_err(failed)?;
    let version = check(&db, path)?;
    if version == 0 {
        may_begin()?;
        db.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed)?;
    }
    db.pragma_update(None, "journal_mode", "WAL").map_err(failed)?;
    db.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
    db.pragma_update(None, "cache_size", -WRITER_CACHE_KIB).map_err(failed)?;
    // After a burst of writes, this limit returns the space of the log to the file system.
    db.pragma_update(None, "journal_size_limit", LOG_BYTES).map_err(failed)?;
    if version < VERSION {
        migrate(&mut db, version).map_err(failed)?;
    }
    #[cfg(feature = "search")]
    crate::search::keys::make_missing(&mut db).map_err(failed)?;
    // From here on the flusher thread flushes the log before a call is answered (`flusher`). SQLite still flushes
    // around checkpoints.
    db.pragma_update(None, "synchronous", "NORMAL").map_err(failed)?;
    Ok(db)
}

/// Opens a connection that reads. The tables must have exactly this version.
pub(crate) fn open_for_reading(path: &Path) -> Result<Connection, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | CAREFUL;
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
    // Keeps the plan that a statement was prepared with. Otherwise SQLite, as it is compiled here, prepares a statement
    // again for each value bound to an indexed column, which took a tenth of the total time for no better plan.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // The schema may be untrusted: it may only use the database's own tables (<https://www.sqlite.org/security.html>).
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    Ok(())
}

/// Returns the version of a database of this system; 0 for an empty file.
fn check(db: &Connection, path: &Path) -> Result<u32, OpenError> {
    let failed = |source| OpenError::sqlite(path, source);
    let number = |sql: &str| db.query_row(sql, [], |row| row.get::<_, i64>(0)).map_err(failed);
    let application = number("SELECT application_id FROM pragma_application_id")?;
    let is_empty = number("SELECT count(*) FROM sqlite_schema")? == 0;
    if application != APPLICATION_ID && !(application == 0 && is_empty) {
        return Err(OpenError::NotOurs { path: path.to_owned() });
    }
    if let Some((kind, name)) = code(db).map_err(failed)? {
        return Err(OpenError::Programmed { path: path.to_owned(), kind, name });
    }
    let found = number("SELECT user_version FROM pragma_user_version")?;
    let version = match u32::try_from(found) {
        Ok(found) if found <= VERSION => found,
        _ => return Err(OpenError::Newer { path: path.to_owned(), found }),
    };
    match missing(db, version, is_empty).map_err(failed)? {
        None => Ok(version),
        Some(what) => {
            let why = format!("its schema version is {version}, and {what}");
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            Err(failed(rusqlite::Error::SqliteFailure(code, Some(why))))
        }
    }
}

/// Returns the type and name of the first trigger, view or virtual table: code of another program, which later
/// statements would run. Reading the schema does not run it.
pub(crate) fn code(db: &Connection) -> rusqlite::Result<Option<(String, String)>> {
    let sql = "SELECT type, name FROM sqlite_schema WHERE type NOT IN ('table', 'index') \
               UNION ALL SELECT 'virtual table', name FROM sqlite_schema WHERE type = 'table' AND rootpage = 0 LIMIT 1";
    db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).optional()
}

/// Describes why a file is not a database of this version: a missing column, or tables without a version. Additional
/// tables and columns are ignored.
fn missing(db: &Connection, version: u32, is_empty: bool) -> rusqlite::Result<Option<String>> {
    if version == 0 {
        return Ok((!is_empty).then(|| "it has tables nevertheless".to_owned()));
    }
    let mut like_it = Connection::open_in_memory()?;
    let transaction = like_it.transaction()?;
    steps(&transaction, 0, version)?;
    let found = columns(db)?;
    let missing = columns(&transaction)?.into_iter().find(|column| !found.contains(column));
    Ok(missing.map(|(table, column)| format!("table {table} has no column {column}")))
}

/// Returns every column of every table.
fn columns(db: &Connection) -> rusqlite::Result<BTreeSet<(String, String)>> {
    let sql =
        "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table'";
    db.prepare(sql)?.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}

/// Runs all steps in one transaction: a crash leaves either the old or the new version.
pub(crate) fn migrate(db: &mut Connection, from: u32) -> rusqlite::Result<()> {
    let transaction = db.transaction()?;
    steps(&transaction, from, VERSION)?;
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.commit()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::{keys, shared_keys, study_rows, words};
    use crate::tables::explain;
    use crate::{failures, fair_queueing, ledger, outbox, processed, records, recover, views};

    #[test]
    fn sweep_and_queue_queries_use_indexes() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, 0).unwrap();
        for (query, index) in [
            (outbox::DUE, "USING COVERING INDEX outbox_ready (owner=? AND ready_at<?)"),
            (outbox::CLAIM, "USING INDEX outbox_entry (owner=? AND owner_id=?)"),
            (fair_queueing::IN_TURN, "USING INDEX message_turn (queue=? AND turn<?)"),
            (
                fair_queueing::IN_TURN,
                "held USING COVERING INDEX message_group (queue=? AND held=? AND search_id=?)",
            ),
            (fair_queueing::WAITING, "USING INDEX message_group (queue=? AND held=? AND search_id=?)"),
            (fair_queueing::FIRST, "USING COVERING INDEX message_group (queue=? AND held=? AND search_id=?)"),
            (fair_queueing::OVERDUE, "USING COVERING INDEX message_group (queue=? AND held=?)"),
            (outbox::PENDING, "USING INDEX outbox_entry (owner=? AND owner_id=?)"),
            (outbox::POISONED, "USING COVERING INDEX outbox_poisoned (owner=? AND owner_id>?)"),
            (failures::SELECT, "USING INDEX failure_standing (standing=? AND"),
            (failures::SELECT_CAUSE, "USING INDEX failure_cause (standing=? AND fingerprint=?"),
            (failures::RUNNING, "USING INDEX operation_running"),
            (views::UNFINISHED, "USING INDEX job_age (ended=? AND"),
            (views::ENDED, "USING INDEX job_age (ended=? AND"),
            (views::UNFINISHED_IN, "USING INDEX job_open_age (project_id=? AND"),
            (views::ENDED_IN, "USING INDEX job_by_project (project_id=? AND"),
            (views::UNFINISHED_OF, "USING INDEX job_open"),
            (views::COUNT_UNFINISHED_OF, "USING COVERING INDEX job_open"),
            (views::LIST, "USING INDEX job_by_project"),
            (views::FURTHER, "SEARCH further_list USING PRIMARY KEY (list=? AND (created_at,search_id)<"),
            (
                views::FURTHER_UNFINISHED,
                "SEARCH further_list USING PRIMARY KEY (list=? AND (created_at,search_id)>",
            ),
            (
                views::FURTHER_ENDED,
                "SEARCH further_list USING PRIMARY KEY (list=? AND (created_at,search_id)<",
            ),
            (views::OPEN_IN_ORDER, "USING INDEX job_open (project_id=?"),
            (views::WRITTEN_IN_ORDER, "USING INDEX job_changed (changed_in=?"),
            (views::LAST_WRITTEN, "USING COVERING INDEX job_changed (changed_in=?)"),
            (views::WRITE, "USING COVERING INDEX job_changed (changed_in=?)"),
            (study_rows::MARKS, "SEARCH mark USING PRIMARY KEY (source=?)"),
            (keys::SHARING, "SEARCH study_key USING PRIMARY KEY (project=? AND key=?)"),
            (shared_keys::COUNT, "SEARCH study_key USING PRIMARY KEY (project=? AND key>? AND key<?)"),
            (shared_keys::PASS, "SEARCH study_key USING PRIMARY KEY (project=? AND key>? AND key<?)"),
            (
                shared_keys::PROJECT,
                "SEARCH project USING COVERING INDEX sqlite_autoindex_project_1 (project_id=?)",
            ),
            (
                shared_keys::IN_OTHER_FILES,
                "SEARCH study_key USING PRIMARY KEY (project=? AND key=? AND source<?)",
            ),
            (
                shared_keys::IN_OTHER_FILES,
                "SEARCH study_key USING PRIMARY KEY (project=? AND key=? AND source>?)",
            ),
            (shared_keys::LAST, "SEARCH study USING COVERING INDEX sqlite_autoindex_study_1 (source=?)"),
            (
                study_rows::STUDIES,
                "SEARCH study USING INDEX sqlite_autoindex_study_1 (source=? AND record>?)",
            ),
            (study_rows::MARKED, "SEARCH mark USING PRIMARY KEY (source=? AND record>?)"),
            (study_rows::MARKED, "SEARCH study USING INDEX sqlite_autoindex_study_1 (source=? AND record=?)"),
            (study_rows::KEYED, "SEARCH study USING INDEX sqlite_autoindex_study_1 (source=? AND record>?)"),
            (
                study_rows::QUARANTINED,
                "SEARCH quarantine USING INDEX sqlite_autoindex_quarantine_1 (source=? AND record>?)",
            ),
            (
                study_rows::STUDY_AT,
                "SEARCH study USING INDEX sqlite_autoindex_study_1 (source=? AND record=?)",
            ),
            (
                study_rows::REPEATING,
                "SEARCH mark USING INDEX mark_original (original=? AND original_record=?)",
            ),
            (words::UNINDEXED, "SEARCH parsed_file USING INDEX parsed_file_unindexed"),
            (words::PART, "SEARCH word USING PRIMARY KEY (source=? AND last<?)"),
            (words::PART, "SEARCH word USING PRIMARY KEY (source=? AND last>?)"),
            (words::BUCKET, "SEARCH word USING PRIMARY KEY (source=? AND last=? AND bucket=?)"),
            (words::BUCKETS, "SEARCH word USING PRIMARY KEY (source=? AND last=? AND bucket>? AND bucket<?)"),
            (recover::PURGE_SAGAS, "USING INDEX saga_expiry (expires_at<?)"),
            (recover::PURGE_SESSIONS, "USING INDEX session_age (at<?)"),
            (records::PURGE, "USING INDEX record_expiry (expires_at<?)"),
            (ledger::PURGE, "USING INDEX ledger_expiry (expires_at<?)"),
            (processed::PURGE, "USING COVERING INDEX processed_expiry (expires_at<?)"),
        ] {
            let plan = explain(&db, query).unwrap();
            assert!(plan.contains(index), "{query}: {plan}");
            assert!(
                !plan.contains("SCAN outbox") && !plan.contains("TEMP B-TREE FOR ORDER BY"),
                "{query}: {plan}"
            );
        }
    }

    #[test]
    fn only_new_database_has_larger_pages() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let page_of = |name: &str| {
            let db = open_for_writing(&folder.join(name), || Ok(())).unwrap();
            db.pragma_query_value(None, "page_size", |row| row.get::<_, i64>(0)).unwrap()
        };
        assert_eq!(page_of("new"), PAGE_BYTES);
        let mut old = Connection::open(folder.join("old")).unwrap();
        old.pragma_update(None, "page_size", 4096).unwrap();
        migrate(&mut old, 0).unwrap();
        assert_eq!(page_of("old"), 4096);
    }

    /// A test cannot cut the power. It reads from the connection that the log is flushed around checkpoints; the tests
    /// of `db_threads` check that answers wait for the disk.
    #[test]
    fn writer_flushes_around_checkpoints() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("any.sqlite");
        let db = open_for_writing(&path, || Ok(())).unwrap();
        let setting =
            |name: &str| db.pragma_query_value(None, name, |row| row.get::<_, rusqlite::types::Value>(0));
        const NORMAL: i64 = 1;
        assert_eq!(setting("synchronous").unwrap(), NORMAL.into());
        assert_eq!(setting("journal_mode").unwrap(), "wal".to_owned().into());
    }
}
