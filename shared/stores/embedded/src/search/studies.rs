//! Studies and quarantined records, each once.

use std::sync::Arc;

use async_trait::async_trait;
use imports::words::{BucketRange, WordPart};
use imports::{
    DuplicateCounts, FileFence, FileRef, Identity, ParsedFile, PreparedStudy, QuarantinedRecord, ReadStudies,
    ReadingStatus, StoredFile, Study, StudyKeys, StudyRef, WriteBatching, WriteStudies,
};
use imports::{FileId, SearchId, Selection};
use messages::StoreError;
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::search::cpu_pool;
use crate::search::file_keys::{INSERT_BATCH, KeyReading, KeyedSource};
use crate::search::key_sort::{KeyEntry, SortedKeys};
use crate::search::packed::Unpacker;
use crate::search::parse_attempts::{self, StudiesState};
use crate::search::shared_keys::{self, KeyedPage, MIN_KEYS, SharedKeySearch};
use crate::search::study_rows::{self, New, Page};
use crate::search::words;
use crate::value::{from_json, json};

/// The maximum size of the stored texts that are read at a time to compare studies, plus one study.
const IDENTITY_BYTES: usize = 1 << 20;

#[async_trait]
impl WriteStudies for Store {
    /// Writes overlap with preparing the studies of the next calls.
    fn batching(&self) -> WriteBatching {
        WriteBatching { records: 500, calls: 8 }
    }

    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError> {
        let doing = || format!("making study {} of file {} ready", study.record, study.file_id);
        New::study(&study).map(PreparedStudy::new).map_err(|fault| fault.while_doing(doing()))
    }

    async fn store_prepared(
        &self,
        file: &FileFence,
        studies: Vec<PreparedStudy>,
        quarantined: Vec<QuarantinedRecord>,
    ) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        let studies = studies.into_iter().map(PreparedStudy::into_inner).collect::<Result<Vec<New>, _>>()?;
        let quarantined = quarantined.iter().map(New::quarantined).collect::<Result<Vec<_>, _>>();
        let quarantined = quarantined.map_err(|fault| fault.while_doing(doing.clone()))?;
        let file = *file;
        let work = move |db: &Connection| {
            if !parse_attempts::holds(db, &file)? {
                return Ok(false);
            }
            study_rows::insert_studies(db, &studies)?;
            study_rows::insert_quarantined(db, &quarantined)?;
            Ok(true)
        };
        // A power failure undoes it together with the next checkpoint or the end; then the file is read again from an
        // earlier checkpoint.
        let is_held = self.change_in_passing(Call::StudiesStore, doing.clone(), work).await?;
        if is_held { Ok(()) } else { Err(FileFence::overtaken(doing)) }
    }

    async fn discard(&self, file: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError> {
        let doing = format!("discarding file {} of search {}", file.file_id, file.search_id);
        let (file, then) = (*file, then.cloned());
        let raise = move |db: &Connection| parse_attempts::raise(db, &file, then.as_ref());
        let Some(raised) = self.change(Call::StudiesDiscard, doing.clone(), raise).await? else {
            return Err(FileFence::overtaken(doing));
        };
        self.clear(Call::StudiesDiscard, &doing, raised).await?;
        Ok(raised)
    }

    async fn remove(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("removing file {file} of search {search}");
        let refused = refused.clone();
        let raise = move |db: &Connection| parse_attempts::remove(db, search, file, &refused);
        let raised = self.change(Call::StudiesRemove, doing.clone(), raise).await?;
        self.clear(Call::StudiesRemove, &doing, raised).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let doing = format!("remembering that file {} was read", file.file_id);
        let (of, file) = (FileRef::new(file.search_id, file.file_id), Arc::new(file.clone()));
        let reading = self.read_keys(&doing, of).await?;
        let source = reading.source;
        let failed = |error| self.threads().refused_by_disk(StoreError::unavailable(&doing, error));
        let is_large = reading.sorter.len() >= MIN_KEYS;
        let mut shared = is_large.then(|| self.shared_keys().search(source.project, of));
        let first = move || reading.sorter.merge().and_then(next_part);
        let mut keys = cpu_pool::begin(first).await.flatten().map_err(failed)?;
        let listed = loop {
            let UninsertedKeys { part, left } = keys;
            let (file, is_last) = (Arc::clone(&file), left.is_empty());
            let work = move |db: &Connection| {
                let is_held = finish_some(db, &file, &source, &part, &mut shared, is_last)?;
                Ok((is_held, shared_keys::project(db, of)?, shared))
            };
            if is_last {
                let (is_held, project, shared) =
                    self.change(Call::StudiesFinish, doing.clone(), work).await?;
                if !is_held {
                    return Err(FileFence::overtaken(doing));
                }
                break project.map(|project| (project, shared));
            }
            // Other writes run in between.
            let next = cpu_pool::begin(move || next_part(left));
            let is_held;
            (is_held, _, shared) = self.change_in_passing(Call::StudiesFinish, doing.clone(), work).await?;
            if !is_held {
                return Err(FileFence::overtaken(doing));
            }
            keys = next.await.flatten().map_err(failed)?;
        };
        if let Some((project, shared)) = listed {
            self.shared_keys().listed(project, of, shared);
        }
        Ok(())
    }

    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("withdrawing file {file} of search {search}");
        let refused = refused.clone();
        let work = move |db: &Connection| parse_attempts::withdraw(db, search, file, &refused);
        self.change(Call::StudiesWithdraw, doing, work).await
    }
}

#[async_trait]
impl ReadStudies for Store {
    async fn select(
        &self,
        search: SearchId,
        file: FileId,
        Selection { marked, after, limit, bytes }: Selection,
    ) -> Result<Vec<Study>, StoreError> {
        let doing = format!("reading the studies of file {file} of search {search}");
        let page = Page { search, file, after, limit };
        self.look(Call::StudiesRead, doing, move |db| page.studies(db, marked, bytes)).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        let doing = format!("reading the quarantined records of file {file} of search {search}");
        let page = Page { search, file, after, limit };
        self.look(Call::StudiesQuarantined, doing, move |db| page.quarantined(db)).await
    }

    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        let doing = format!("reading the keys of the studies of file {file} of search {search}");
        let page = Page { search, file, after, limit };
        let work = move |db: &Connection| {
            let studies = page.keyed(db)?;
            let more = studies.len() == limit;
            let file = FileRef::new(search, file);
            let project = shared_keys::project(db, file)?;
            Ok(KeyedPage { file, project, studies, more })
        };
        let page = self.look(Call::StudiesKeyed, doing, work).await?;
        self.shared_keys().leave_out(self.threads(), page).await
    }

    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError> {
        let doing = format!("reading what some studies of file {file} of search {search} are recognised by");
        let (mut identities, mut left) = (Vec::new(), records);
        while !left.is_empty() {
            let some = left.to_vec();
            let work =
                move |db: &Connection| study_rows::identities_of(db, search, file, &some, IDENTITY_BYTES);
            let page = self.look(Call::StudiesIdentities, doing.clone(), work).await?;
            // Decoding them here leaves the thread of the database free for other reads.
            let mut unpacker = Unpacker::default();
            let read = page.found.into_iter().map(|stored| stored.read(&mut unpacker));
            for identity in read {
                identities.push(identity.map_err(|fault| fault.while_doing(doing.clone()))?);
            }
            left = left.get(page.looked_up..).unwrap_or_default();
        }
        Ok(identities)
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        let doing = format!("reading which files of search {search} were read");
        let work = move |db: &Connection| {
            let sql = "SELECT file FROM parsed_file WHERE search_id = ?1 ORDER BY position";
            let mut statement = db.prepare_cached(sql)?;
            let texts = statement.query_map([search.to_string()], |row| row.get::<_, String>(0))?;
            texts.map(|text| from_json(&text?)).collect()
        };
        self.look(Call::StudiesParsed, doing, work).await
    }

    async fn stored_files(
        &self,
        after: Option<FileRef>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let work = move |db: &Connection| study_rows::stored_files(db, after, limit);
        self.look(Call::StudiesFiles, "reading which files have studies".to_owned(), work).await
    }

    async fn marked(&self, search: SearchId, file: FileId) -> Result<DuplicateCounts, StoreError> {
        let doing = format!("counting the marks of file {file} of search {search}");
        self.look(Call::StudiesMarked, doing, move |db| study_rows::marked(db, search, file)).await
    }

    async fn studies_at(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        bytes: usize,
    ) -> Result<Vec<Study>, StoreError> {
        let doing = format!("reading some studies of file {file} of search {search}");
        let records = records.to_vec();
        let work = move |db: &Connection| study_rows::studies_at(db, search, file, &records, bytes);
        self.look(Call::StudiesRead, doing, work).await
    }

    async fn repeating(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        limit: usize,
    ) -> Result<Vec<(u64, StudyRef)>, StoreError> {
        let doing = format!("reading the duplicates of studies of file {file} of search {search}");
        let records = records.to_vec();
        let work = move |db: &Connection| study_rows::repeating(db, search, file, &records, limit);
        self.look(Call::StudiesRepeating, doing, work).await
    }

    async fn words(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        buckets: &[BucketRange],
    ) -> Result<Option<WordPart>, StoreError> {
        let doing = format!("reading words of file {file} of search {search}");
        let buckets = buckets.to_vec();
        let work = move |db: &Connection| words::words(db, search, file, after, &buckets);
        self.look(Call::WordsRead, doing, work).await
    }
}

impl Store {
    /// Reads the keys of a file; `None` if it is listed. A worker that resumes marking finishes the file again, and no
    /// more studies of it can have been stored.
    async fn read_keys(&self, doing: &str, file: FileRef) -> Result<KeyReading, StoreError> {
        let begin = move |db: &Connection| {
            let mut reading = KeyReading::begin(db, file)?;
            reading.is_complete |= is_listed(db, file)?;
            Ok(reading)
        };
        let mut reading = self.threads().read(doing.to_owned(), begin).await?;
        while !reading.is_complete {
            // Other reads run in between.
            let work = move |db: &Connection| {
                reading.read_some(db)?;
                Ok(reading)
            };
            reading = self.threads().read(doing.to_owned(), work).await?;
            if reading.sorter.is_full() {
                let (folder, name) = (self.folder().clone(), self.free_name());
                let spill = move || reading.sorter.spill(|| folder.scratch(name)).map(|()| reading);
                let spilled = cpu_pool::begin(spill).await.flatten();
                let failed = |error| self.threads().refused_by_disk(StoreError::unavailable(doing, error));
                reading = spilled.map_err(failed)?;
            }
        }
        Ok(reading)
    }
}

/// The next keys of a file to be inserted, and the keys after them.
struct UninsertedKeys {
    part: Vec<KeyEntry>,
    left: SortedKeys,
}

fn next_part(mut left: SortedKeys) -> std::io::Result<UninsertedKeys> {
    Ok(UninsertedKeys { part: left.take(INSERT_BATCH)?, left })
}

/// Inserts some keys of a file, and lists it with the last ones. Does nothing for a refused file. Returns `false` if the
/// studies were deleted after their keys were read, or are being deleted. Ends the search for shared keys if not all keys
/// are inserted by this worker.
fn finish_some(
    db: &Connection,
    file: &ParsedFile,
    source: &KeyedSource,
    keys: &[KeyEntry],
    shared: &mut Option<SharedKeySearch>,
    is_last: bool,
) -> Result<bool, Fault> {
    let of = FileRef::new(file.search_id, file.file_id);
    let state = parse_attempts::studies_state(db, of)?;
    if state == StudiesState::Refused || is_listed(db, of)? {
        *shared = None;
        return Ok(true);
    }
    if !source.is_unchanged(state) {
        return Ok(false);
    }
    source.insert(db, keys, shared.as_mut())?;
    if is_last {
        let sql = "INSERT INTO parsed_file (search_id, file_id, position, file) VALUES (?1, ?2, ?3, ?4)";
        let (search, file_id) = (file.search_id.to_string(), file.file_id.to_string());
        db.prepare_cached(sql)?.execute(params![search, file_id, file.position, json(file)?])?;
    }
    Ok(true)
}

/// Returns `true` if a file was completely read.
fn is_listed(db: &Connection, file: FileRef) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM parsed_file WHERE search_id = ?1 AND file_id = ?2)";
    let file = params![file.search_id.to_string(), file.file_id.to_string()];
    db.prepare_cached(sql)?.query_row(file, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use imports::parse_attempts::ReadingStatus;
    use testing::search;

    use super::*;
    use crate::search::keys::tests::with_a_file;

    /// Returns a database with a file of one study with one key.
    fn with_a_study() -> (Connection, ParsedFile) {
        let (db, search, file) = with_a_file();
        let sql = "INSERT INTO study (source, record, study, keys) VALUES (1, 1, '', ?1)";
        db.execute(sql, [7_i64.to_le_bytes()]).unwrap();
        (db, search::parsed(search, file, 0))
    }

    fn read(db: &Connection, file: &ParsedFile) -> (KeyedSource, Vec<KeyEntry>) {
        let mut reading = KeyReading::begin(db, FileRef::new(file.search_id, file.file_id)).unwrap();
        reading.read_some(db).unwrap();
        (reading.source, reading.sorter.merge().unwrap().take(9).unwrap())
    }

    fn count(db: &Connection, table: &str) -> i64 {
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn listed_file_is_not_inserted_again() {
        let (db, file) = with_a_study();
        let (source, keys) = read(&db, &file);
        assert!(finish_some(&db, &file, &source, &keys, &mut None, true).unwrap());
        assert_eq!((count(&db, "study_key"), count(&db, "parsed_file")), (1, 1));

        // The keys are not inserted a second time, so they stay absent.
        db.execute("DELETE FROM study_key", []).unwrap();
        assert!(finish_some(&db, &file, &source, &keys, &mut None, true).unwrap());
        assert_eq!(count(&db, "study_key"), 0);
    }

    #[test]
    fn keys_of_deleted_studies_are_not_inserted() {
        let (db, file) = with_a_study();
        let finish = |(source, keys): &(KeyedSource, Vec<KeyEntry>)| {
            finish_some(&db, &file, source, keys, &mut None, true).unwrap()
        };
        let before = read(&db, &file);
        let sql =
            "INSERT INTO reading (search_id, file_id, begun, fence, clearing) VALUES (?1, ?2, 1, ?3, ?4)
            ON CONFLICT DO UPDATE SET fence = excluded.fence, clearing = excluded.clearing";
        let (search, id) = (file.search_id.to_string(), file.file_id.to_string());
        let set =
            |fence, is_clearing: bool| db.execute(sql, params![search, id, fence, is_clearing]).unwrap();
        set(1, true);
        let during = KeyReading::begin(&db, FileRef::new(file.search_id, file.file_id)).unwrap();
        assert!(during.is_complete);
        assert!(!finish(&before) && !finish(&(during.source, Vec::new())));
        set(1, false);
        assert!(!finish(&before) && !finish(&(during.source, Vec::new())));
        assert_eq!((count(&db, "study_key"), count(&db, "parsed_file")), (0, 0));
        assert!(finish(&read(&db, &file)));
        assert_eq!((count(&db, "study_key"), count(&db, "parsed_file")), (1, 1));
    }

    /// Deleting a file that was refused before does not raise its fence again.
    #[test]
    fn keys_of_refused_file_are_not_inserted() {
        let (db, file) = with_a_study();
        let refused = ReadingStatus::refused("deleted", 0);
        parse_attempts::withdraw(&db, file.search_id, file.file_id, &refused).unwrap();
        let (source, keys) = read(&db, &file);
        let removed = parse_attempts::remove(&db, file.search_id, file.file_id, &refused).unwrap();
        while parse_attempts::clear_some(&db, &removed).unwrap() {}
        assert!(
            finish_some(&db, &file, &source, &[KeyEntry { key: 7, record: 1 }], &mut None, true).unwrap()
        );
        assert!(keys.is_empty());
        assert_eq!((count(&db, "study_key"), count(&db, "parsed_file")), (0, 0));
    }
}
