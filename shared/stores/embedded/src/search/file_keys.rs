//! The keys of a file, as they are read and inserted when the file is complete.

use imports::FileRef;
use rusqlite::{Connection, params};

use crate::fault::Fault;
use crate::search::key_sort::{KeyEntry, KeySorter};
use crate::search::keys;
use crate::search::parse_attempts::{self, StudiesState};
use crate::search::shared_keys::SharedKeySearch;

/// The maximum number of keys inserted in one transaction, since other writes wait for it.
pub(crate) const INSERT_BATCH: usize = 100_000;

/// The stored studies of a file, at the time when their keys are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeyedSource {
    state: StudiesState,
    /// The number of the file; `None` if it has no studies.
    number: Option<i64>,
    /// The number of the project; `None` if no study of it had keys.
    pub(crate) project: Option<i64>,
}

impl KeyedSource {
    fn of(db: &Connection, file: FileRef) -> Result<Self, Fault> {
        let state = parse_attempts::studies_state(db, file)?;
        let number = match state {
            StudiesState::Stored { .. } => keys::source_with_project(db, file.search_id, file.file_id)?,
            StudiesState::Clearing | StudiesState::Refused => None,
        };
        let project = number.map(|number| keys::known_project_of(db, number)).transpose()?.flatten();
        Ok(Self { state, number, project })
    }

    /// Returns `true` if the studies are the same as when their keys were read. Keys of deleted studies would stay.
    pub(crate) fn is_unchanged(&self, now: StudiesState) -> bool {
        matches!(now, StudiesState::Stored { .. }) && now == self.state
    }

    /// Inserts keys, and finds the shared ones if they are in order.
    pub(crate) fn insert(
        &self,
        db: &Connection,
        entries: &[KeyEntry],
        shared: Option<&mut SharedKeySearch>,
    ) -> rusqlite::Result<()> {
        self.number.map_or(Ok(()), |number| keys::insert(db, number, entries, shared))
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
            keys::stored(bytes.unwrap_or_default())
                .for_each(|key| self.sorter.push(KeyEntry { key, record }));
            self.after = record;
            if self.sorter.is_full() {
                return Ok(());
            }
        }
        self.is_complete = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::keys::tests::with_a_file;

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
        expected.sort_unstable();
        expected.dedup();
        for part in [3, 100] {
            db.execute("DELETE FROM study_key", []).unwrap();
            let KeyReading { source, sorter, .. } = read(&db, FileRef::new(search, file));
            let mut keys = sorter.merge().unwrap();
            while !keys.is_empty() {
                source.insert(&db, &keys.take(part).unwrap(), None).unwrap();
            }
            let mut found = db.prepare("SELECT key, record - 1 FROM study_key ORDER BY 1, 2").unwrap();
            let found = found.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            let found = found.collect::<rusqlite::Result<Vec<(i64, i64)>>>().unwrap();
            assert_eq!(found, expected, "{part}");
        }
    }
}
