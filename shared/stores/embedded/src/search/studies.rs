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
use crate::search::keys;
use crate::search::parse_attempts;
use crate::search::shared_keys::{self, KeyedPage};
use crate::search::study_rows::{self, New, Page};
use crate::search::words;
use crate::value::{from_json, json};

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
        let file = Arc::new(file.clone());
        // Other writes run in between: no transaction covers more than a part.
        let (mut after, mut project) = (Some(0), None);
        while let Some(from) = after {
            let file = Arc::clone(&file);
            let work = move |db: &Connection| {
                let next = finish_some(db, &file, from)?;
                Ok((next, shared_keys::project(db, FileRef::new(file.search_id, file.file_id))?))
            };
            (after, project) = self.change(Call::StudiesFinish, doing.clone(), work).await?;
        }
        if let Some(project) = project {
            self.shared_keys().listed(project, FileRef::new(file.search_id, file.file_id));
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
        let records = records.to_vec();
        let work = move |db: &Connection| study_rows::identities_of(db, search, file, &records);
        self.look(Call::StudiesIdentities, doing, work).await
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

/// Inserts the keys of a file's studies after a record, or lists the file once all are inserted. Returns the last
/// record if there may be more.
fn finish_some(db: &Connection, file: &ParsedFile, after: i64) -> Result<Option<i64>, Fault> {
    if is_listed(db, file)? {
        // A worker that resumes marking finishes the file again, and no more studies of it can have been stored.
        return Ok(None);
    }
    let next = keys::insert_some(db, file.search_id, file.file_id, after, keys::INSERT_BATCH)?;
    if next.is_none() {
        let sql = "INSERT INTO parsed_file (search_id, file_id, position, file) SELECT ?1, ?2, ?3, ?4 WHERE NOT EXISTS (
                SELECT 1 FROM reading WHERE search_id = ?1 AND file_id = ?2
                    AND place ->> '$.refused' IS NOT NULL
            )";
        let (search, file_id) = (file.search_id.to_string(), file.file_id.to_string());
        db.prepare_cached(sql)?.execute(params![search, file_id, file.position, json(file)?])?;
    }
    Ok(next)
}

/// Returns `true` if a file was completely read.
fn is_listed(db: &Connection, file: &ParsedFile) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM parsed_file WHERE search_id = ?1 AND file_id = ?2)";
    let file = params![file.search_id.to_string(), file.file_id.to_string()];
    db.prepare_cached(sql)?.query_row(file, |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use testing::sample::search;

    use super::*;
    use crate::search::keys::tests::with_a_file;

    #[test]
    fn listed_file_is_not_inserted_again() {
        let (db, search, file) = with_a_file();
        let sql = "INSERT INTO study (source, record, study, keys) VALUES (1, 1, '', ?1)";
        db.execute(sql, [7_i64.to_le_bytes()]).unwrap();
        let parsed = search::parsed(search, file, 0);
        let keys = |db: &Connection| {
            db.query_row("SELECT count(*) FROM study_key", [], |row| row.get::<_, i64>(0)).unwrap()
        };

        assert_eq!(finish_some(&db, &parsed, 0).unwrap(), None);
        assert_eq!(keys(&db), 1);

        // They are not inserted a second time, so they stay absent.
        db.execute("DELETE FROM study_key", []).unwrap();
        assert_eq!(finish_some(&db, &parsed, 0).unwrap(), None);
        assert_eq!(keys(&db), 0);
    }
}
