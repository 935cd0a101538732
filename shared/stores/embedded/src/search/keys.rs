//! The keys that find studies of a project which may be the same work.

use imports::duplicates::Fields;
use imports::{Candidate, FileId, FileRef, ProjectId, SearchId, StudyRef};
use references::Reference;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use crate::fault::Fault;
use crate::search::key_sort::KeyEntry;
use crate::search::shared_keys::SharedKeySearch;
use crate::value::{from_json, limit, parse, uint};

/// The keys are ordered by the numbers of their files, so that the studies that were stored first come first.
pub(crate) const SHARING: &str = "SELECT study_key.source, study_key.record FROM study_key
    WHERE study_key.project = ?1 AND study_key.key = ?2 ORDER BY study_key.source, study_key.record LIMIT ?3";

/// The number of a project, if any of its studies has keys.
pub(crate) fn number_of(db: &Connection, project: ProjectId) -> rusqlite::Result<Option<i64>> {
    let known = "SELECT seq FROM project WHERE project_id = ?1";
    db.prepare_cached(known)?.query_row([project.to_string()], |row| row.get(0)).optional()
}

pub(crate) fn sharing(
    db: &Connection,
    project: i64,
    keys: impl Iterator<Item = u64>,
    max: usize,
) -> Result<Vec<Candidate>, Fault> {
    let mut statement = db.prepare_cached(SHARING)?;
    let mut sources = Sources::default();
    let mut found = Vec::new();
    for key in keys {
        let mut rows = statement.query(params![project, key.cast_signed(), limit(max)])?;
        while let Some(row) = rows.next()? {
            let FileRef { search_id, file_id } = sources.of(db, row.get(0)?)?;
            found.push(Candidate { key, at: StudyRef { search_id, file_id, record: uint(row.get(1)?) } });
        }
    }
    Ok(found)
}

/// Returns the files with these numbers.
#[derive(Default)]
struct Sources(std::collections::HashMap<i64, FileRef>);

impl Sources {
    fn of(&mut self, db: &Connection, source: i64) -> Result<FileRef, Fault> {
        if let Some(known) = self.0.get(&source) {
            return Ok(*known);
        }
        let sql = "SELECT search_id, file_id FROM source WHERE seq = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let (search, file) = db.prepare_cached(sql)?.query_row([source], row)?;
        let search = SearchId::from_uuid(parse("search id", &search)?);
        let found = FileRef::new(search, FileId::from_uuid(parse("file id", &file)?));
        self.0.insert(source, found);
        Ok(found)
    }
}

/// Keys as they are stored with their study.
pub(crate) fn bytes(reference: &Reference) -> Vec<u8> {
    Fields::new(reference).keys().into_iter().flat_map(u64::to_le_bytes).collect()
}

/// Keys that are stored with their study.
pub(crate) fn stored(bytes: &[u8]) -> impl Iterator<Item = i64> {
    bytes.as_chunks::<8>().0.iter().map(|key| i64::from_le_bytes(*key))
}

/// The number of a file's project, if any of its studies has keys.
pub(crate) fn known_project_of(db: &Connection, source: i64) -> rusqlite::Result<Option<i64>> {
    let known = "SELECT project.seq FROM source JOIN project USING (project_id) WHERE source.seq = ?1";
    db.prepare_cached(known)?.query_row([source], |row| row.get(0)).optional()
}

/// The number of a file's project; it has one from now on.
fn project_of(db: &Connection, source: i64) -> rusqlite::Result<i64> {
    if let Some(known) = known_project_of(db, source)? {
        return Ok(known);
    }
    let sql = "INSERT INTO project (project_id) SELECT project_id FROM source WHERE seq = ?1 RETURNING seq";
    db.prepare_cached(sql)?.query_row([source], |row| row.get(0))
}

/// Inserts keys of a file's studies, and finds the shared ones if they are in order.
pub(crate) fn insert(
    db: &Connection,
    source: i64,
    entries: &[KeyEntry],
    shared: Option<&mut SharedKeySearch>,
) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let project = project_of(db, source)?;
    if let Some(shared) = shared {
        shared.add(db, project, source, entries)?;
    }
    let sql =
        "INSERT INTO study_key (project, key, source, record) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let mut statement = db.prepare_cached(sql)?;
    for KeyEntry { key, record } in entries {
        statement.execute(params![project, key, source, record])?;
    }
    Ok(())
}

/// The number of a file that has studies.
pub(crate) fn source_with_project(
    db: &Connection,
    search: SearchId,
    file: FileId,
) -> rusqlite::Result<Option<i64>> {
    let known = "SELECT seq FROM source WHERE search_id = ?1 AND file_id = ?2 AND project_id IS NOT NULL";
    let file = params![search.to_string(), file.to_string()];
    db.prepare_cached(known)?.query_row(file, |row| row.get(0)).optional()
}

/// Deletes the keys of the first studies of a file.
pub(crate) fn remove(db: &Connection, search: SearchId, file: FileId, max: usize) -> Result<(), Fault> {
    let Some(source) = source_with_project(db, search, file)? else { return Ok(()) };
    let project = project_of(db, source)?;
    let sql = "DELETE FROM study_key WHERE project = ?1 AND key = ?2 AND source = ?3 AND record = ?4";
    let mut delete = db.prepare_cached(sql)?;
    let sql = "SELECT record, keys FROM study WHERE source = ?1 ORDER BY record LIMIT ?2";
    let mut studies = db.prepare_cached(sql)?;
    let mut studies = studies.query(params![source, limit(max)])?;
    while let Some(study) = studies.next()? {
        let (record, bytes): (i64, Option<Vec<u8>>) = (study.get(0)?, study.get(1)?);
        for key in stored(&bytes.unwrap_or_default()) {
            delete.execute(params![project, key, source, record])?;
        }
    }
    Ok(())
}

/// The part of a stored study that determines its keys.
#[derive(Deserialize)]
struct KeySource {
    reference: Reference,
}

/// Computes the keys of studies that an earlier version stored, in batches.
pub(crate) fn make_missing(db: &mut Connection) -> rusqlite::Result<()> {
    const BATCH: usize = 1_000;
    loop {
        let db = db.transaction()?;
        let missing = {
            let sql = "SELECT seq, source, record, study FROM study WHERE keys IS NULL ORDER BY seq LIMIT ?1";
            let mut missing = db.prepare_cached(sql)?;
            let mut rows = missing.query([limit(BATCH)])?;
            let mut missing: Vec<(i64, i64, i64, Vec<u8>)> = Vec::new();
            while let Some(row) = rows.next()? {
                // An unreadable study has no keys; reading it reports the error.
                let keys =
                    from_json::<KeySource>(row.get_ref(3)?.as_str()?).map(|study| bytes(&study.reference));
                missing.push((row.get(0)?, row.get(1)?, row.get(2)?, keys.unwrap_or_default()));
            }
            missing
        };
        for (seq, source, record, bytes) in &missing {
            let record = *record;
            let entries: Vec<_> = stored(bytes).map(|key| KeyEntry { key, record }).collect();
            insert(&db, *source, &entries, None)?;
            db.prepare_cached("UPDATE study SET keys = ?2 WHERE seq = ?1")?.execute(params![seq, bytes])?;
        }
        db.commit()?;
        if missing.len() < BATCH {
            return Ok(());
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::schema;

    /// Returns a database with one file, whose number is 1, and no studies.
    pub(crate) fn with_a_file() -> (Connection, SearchId, FileId) {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db, 0).unwrap();
        let (search, file) =
            (SearchId::from_uuid(uuid::Uuid::from_u128(1)), FileId::from_uuid(uuid::Uuid::from_u128(2)));
        let sql = "INSERT INTO source (search_id, file_id, project_id) VALUES (?1, ?2, 'p')";
        db.execute(sql, params![search.to_string(), file.to_string()]).unwrap();
        (db, search, file)
    }
}
