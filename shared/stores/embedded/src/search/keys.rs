//! The keys that find studies of a project which may be the same work.

use imports::duplicates::Fields;
use imports::{Candidate, FileId, FileRef, ProjectId, SearchId, StudyRef};
use references::Reference;
use rusqlite::{Connection, OptionalExtension, params};
use serde::Deserialize;

use crate::fault::Fault;
use crate::search::key_sort::{KeyEntry, KeySorter};
use crate::search::parse_attempts::{self, StudiesState};
use crate::value::{from_json, limit, parse, uint};

/// Ordered by the numbers of their files, so that the studies stored first are first.
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

/// The number of a file's project; it has one from now on.
fn project_of(db: &Connection, source: i64) -> rusqlite::Result<i64> {
    let known = "SELECT project.seq FROM source JOIN project USING (project_id) WHERE source.seq = ?1";
    let known = db.prepare_cached(known)?.query_row([source], |row| row.get(0)).optional()?;
    if let Some(known) = known {
        return Ok(known);
    }
    let sql = "INSERT INTO project (project_id) SELECT project_id FROM source WHERE seq = ?1 RETURNING seq";
    db.prepare_cached(sql)?.query_row([source], |row| row.get(0))
}

/// The maximum number of keys inserted in one transaction, since other writes wait for it.
pub(crate) const INSERT_BATCH: usize = 100_000;

/// The stored studies of a file, at the time when their keys are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedSource {
    state: StudiesState,
    /// The number of the file; none if it has no studies.
    number: Option<i64>,
}

impl KeyedSource {
    fn of(db: &Connection, file: FileRef) -> Result<Self, Fault> {
        let state = parse_attempts::studies_state(db, file)?;
        let number = match state {
            StudiesState::Stored { .. } => source_with_project(db, file.search_id, file.file_id)?,
            StudiesState::Clearing | StudiesState::Refused => None,
        };
        Ok(Self { state, number })
    }

    /// Returns `true` if the studies are the same as when their keys were read. Keys of deleted studies would stay.
    pub(crate) fn is_unchanged(&self, now: StudiesState) -> bool {
        matches!(now, StudiesState::Stored { .. }) && now == self.state
    }

    pub(crate) fn insert(&self, db: &Connection, entries: &[KeyEntry]) -> rusqlite::Result<()> {
        self.number.map_or(Ok(()), |number| insert(db, number, entries))
    }
}

/// The progress of reading the keys of a file. Its studies may have been stored long before: none is compared until the
/// file was read to its end.
#[derive(Debug)]
pub(crate) struct KeyReading {
    pub(crate) source: KeyedSource,
    /// The last record that was read.
    after: i64,
    pub(crate) is_complete: bool,
    /// The keys that were read.
    pub(crate) sorter: KeySorter,
}

impl KeyReading {
    pub(crate) fn begin(db: &Connection, file: FileRef) -> Result<Self, Fault> {
        let source = KeyedSource::of(db, file)?;
        Ok(Self { is_complete: source.number.is_none(), source, after: 0, sorter: KeySorter::default() })
    }

    /// Reads keys until the sorter is full or all of them are read.
    pub(crate) fn read_some(&mut self, db: &Connection) -> Result<(), Fault> {
        let sql = "SELECT record, keys FROM study WHERE source = ?1 AND record > ?2 ORDER BY record";
        let mut studies = db.prepare_cached(sql)?;
        let mut studies = studies.query(params![self.source.number, self.after])?;
        while let Some(study) = studies.next()? {
            let record = study.get(0)?;
            let bytes = study.get_ref(1)?.as_blob_or_null().map_err(rusqlite::Error::from)?;
            stored(bytes.unwrap_or_default()).for_each(|key| self.sorter.push(KeyEntry { key, record }));
            self.after = record;
            if self.sorter.is_full() {
                return Ok(());
            }
        }
        self.is_complete = true;
        Ok(())
    }
}

/// Inserts keys of a file's studies.
fn insert(db: &Connection, source: i64, entries: &[KeyEntry]) -> rusqlite::Result<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let project = project_of(db, source)?;
    let sql =
        "INSERT INTO study_key (project, key, source, record) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
    let mut statement = db.prepare_cached(sql)?;
    for KeyEntry { key, record } in entries {
        statement.execute(params![project, key, source, record])?;
    }
    Ok(())
}

/// The number of a file that has studies.
fn source_with_project(db: &Connection, search: SearchId, file: FileId) -> rusqlite::Result<Option<i64>> {
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
            insert(&db, *source, &entries)?;
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

    /// Reads all keys of a file.
    fn read(db: &Connection, file: FileRef) -> KeyReading {
        let mut reading = KeyReading::begin(db, file).unwrap();
        while !reading.is_complete {
            reading.read_some(db).unwrap();
        }
        reading
    }

    #[test]
    fn keys_are_inserted_once_in_any_parts() {
        let (db, search, file) = with_a_file();
        let mut expected: Vec<(i64, i64)> =
            (0..10).flat_map(|record| [(-record, record), (record % 3, record)]).collect();
        for record in 0..10_i64 {
            let keys = [-record, record % 3].map(i64::to_le_bytes).concat();
            let sql = "INSERT INTO study (source, record, study, keys) VALUES (1, ?1, '', ?2)";
            db.execute(sql, params![record + 1, keys]).unwrap();
        }
        for part in [3, 100] {
            let KeyReading { source, sorter, .. } = read(&db, FileRef::new(search, file));
            let mut keys = sorter.merge().unwrap();
            while !keys.is_empty() {
                source.insert(&db, &keys.take(part).unwrap()).unwrap();
            }
        }
        let mut found = db.prepare("SELECT key, record - 1 FROM study_key").unwrap();
        let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        let mut found = found.collect::<rusqlite::Result<Vec<(i64, i64)>>>().unwrap();
        expected.sort_unstable();
        expected.dedup();
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
