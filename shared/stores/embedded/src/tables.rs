//! The versions of the tables, as SQL.

use rusqlite::Connection;

/// Each step takes the schema from the version of its index to the next.
const MIGRATIONS: [&str; 22] = [
    include_str!("schema.sql"),
    include_str!("by_project.sql"),
    include_str!("duplicates.sql"),
    include_str!("records.sql"),
    include_str!("reading.sql"),
    include_str!("turns.sql"),
    include_str!("exact_uploads.sql"),
    include_str!("fences.sql"),
    include_str!("open_by_project.sql"),
    include_str!("compact.sql"),
    include_str!("bytes.sql"),
    include_str!("failures.sql"),
    include_str!("changes.sql"),
    include_str!("tiers.sql"),
    include_str!("keys.sql"),
    include_str!("packed.sql"),
    include_str!("dictionary.sql"),
    include_str!("tables.sql"),
    include_str!("words.sql"),
    include_str!("originals.sql"),
    include_str!("further_lists.sql"),
    include_str!("expiring_records.sql"),
];

/// The version that this code reads and writes (`PRAGMA user_version`).
#[expect(clippy::cast_possible_truncation, reason = "there are a handful")]
pub(crate) const VERSION: u32 = MIGRATIONS.len() as u32;

/// Upgrades the tables from one version to another.
pub(crate) fn steps(db: &Connection, from: u32, to: u32) -> rusqlite::Result<()> {
    MIGRATIONS.iter().take(to as usize).skip(from as usize).try_for_each(|step| db.execute_batch(step))
}

/// Returns SQLite's plan of a query. The plan does not depend on the query's parameters.
pub(crate) fn explain(db: &Connection, query: &str) -> rusqlite::Result<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
    let steps = statement.raw_query().mapped(|row| row.get::<_, String>("detail"));
    Ok(steps.collect::<Result<Vec<_>, _>>()?.join("; "))
}
