//! Studies and quarantined records, each once.

use async_trait::async_trait;
use imports::{Fenced, Identity, Mark, ParsedFile, Place, Quarantined, ReadStudies, Study, WriteStudies};
use imports::{FileId, SearchId};
use messages::StoreError;
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::reading;
use crate::value::{from_json, int, json, limit, uint};

/// A row of either table: search, file, record and the rest as JSON.
type Row = (String, String, i64, String);

#[async_trait]
impl WriteStudies for Store {
    async fn store(
        &self,
        file: &Fenced,
        studies: &[Study],
        quarantined: &[Quarantined],
    ) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        let (file, refused) = (*file, Fenced::overtaken(doing.clone()));
        // Encoded here, so that the writing thread only writes.
        let encode = || -> Result<(Vec<Row>, Vec<Row>), Fault> {
            Ok((
                studies.iter().map(study_row).collect::<Result<_, _>>()?,
                quarantined.iter().map(quarantined_row).collect::<Result<_, _>>()?,
            ))
        };
        let (studies, quarantined) = encode().map_err(|fault| fault.while_doing(doing.clone()))?;
        let work = move |db: &Connection| {
            if !reading::holds(db, &file)? {
                return Ok(false);
            }
            insert(
                db,
                "INSERT INTO study (search_id, file_id, record, study) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                &studies,
            )?;
            insert(
                db,
                "INSERT INTO quarantine (search_id, file_id, record, quarantined) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                &quarantined,
            )?;
            Ok(true)
        };
        let is_held = self.change(Call::StudiesStore, doing, work).await?;
        if is_held { Ok(()) } else { Err(refused) }
    }

    async fn discard(&self, file: &Fenced, then: Option<&Place>) -> Result<Fenced, StoreError> {
        let doing = format!("discarding file {} of search {}", file.file_id, file.search_id);
        let (file, then, refused) = (*file, then.cloned(), Fenced::overtaken(doing.clone()));
        let work = move |db: &Connection| reading::take_back(db, &file, then.as_ref());
        let is_taken_back = self.change(Call::StudiesDiscard, doing, work).await?;
        if is_taken_back { Ok(Fenced { fence: file.fence + 1, ..file }) } else { Err(refused) }
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let doing = format!("remembering that file {} was read", file.file_id);
        let file = file.clone();
        let work = move |db: &Connection| {
            let sql = "INSERT INTO parsed_file VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
            let (search, file_id) = (file.search_id.to_string(), file.file_id.to_string());
            db.prepare_cached(sql)?.execute(params![search, file_id, file.position, json(&file)?])?;
            Ok(())
        };
        self.change(Call::StudiesFinish, doing, work).await
    }

    async fn mark(&self, marks: &[Mark]) -> Result<(), StoreError> {
        if marks.is_empty() {
            return Ok(());
        }
        let doing = format!("marking {} duplicates", marks.len());
        let marks = marks.to_vec();
        let work = move |db: &Connection| {
            let mut statement = db.prepare_cached(MARK)?;
            for Mark { search_id, file_id, record, duplicate } in &marks {
                let (place, earlier) = (int(*record), int(duplicate.record));
                let (search, file) = (search_id.to_string(), file_id.to_string());
                statement.execute(params![
                    search,
                    file,
                    place,
                    json(duplicate)?,
                    duplicate.position,
                    earlier,
                    json(&duplicate.reason)?
                ])?;
            }
            Ok(())
        };
        self.change(Call::StudiesMark, doing, work).await
    }
}

/// Only a mark of a later study is replaced, or a less reliable one. The names of reasons are in their order.
const MARK: &str = "UPDATE study SET duplicate = ?4, original_position = ?5, original_record = ?6
    WHERE search_id = ?1 AND file_id = ?2 AND record = ?3
      AND (duplicate IS NULL
        OR (original_position, original_record, duplicate -> '$.reason') > (?5, ?6, ?7))";

fn study_row(study: &Study) -> Result<Row, Fault> {
    Ok((study.search_id.to_string(), study.file_id.to_string(), int(study.record), json(study)?))
}

fn quarantined_row(record: &Quarantined) -> Result<Row, Fault> {
    Ok((record.search_id.to_string(), record.file_id.to_string(), int(record.record.number), json(record)?))
}

fn insert(db: &Connection, sql: &str, rows: &[Row]) -> Result<(), Fault> {
    let mut statement = db.prepare_cached(sql)?;
    for (search, file, record, text) in rows {
        statement.execute(params![search, file, record, text])?;
    }
    Ok(())
}

#[async_trait]
impl ReadStudies for Store {
    async fn studies(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Study>, StoreError> {
        let doing = format!("reading the studies of file {file} of search {search}");
        self.look(Call::StudiesRead, doing, move |db| studies(db, (search, file), after, limit)).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        let doing = format!("reading the quarantined records of file {file} of search {search}");
        let work = move |db: &Connection| {
            page(db, QUARANTINED, (search, file), after, limit)?
                .iter()
                .map(|(text, _)| from_json(text))
                .collect()
        };
        self.look(Call::StudiesQuarantined, doing, work).await
    }

    async fn identities(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Identity>, StoreError> {
        let doing = format!("reading what the studies of file {file} of search {search} are recognised by");
        let work = move |db: &Connection| {
            let studies = studies(db, (search, file), after, limit)?;
            Ok(studies.into_iter().map(|study| Identity::of(study.record, study.reference)).collect())
        };
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

    async fn duplicates(&self, search: SearchId, file: FileId) -> Result<u64, StoreError> {
        let doing = format!("counting the duplicates of file {file} of search {search}");
        let work = move |db: &Connection| {
            let key = params![search.to_string(), file.to_string()];
            Ok(uint(db.prepare_cached(DUPLICATES)?.query_row(key, |row| row.get(0))?))
        };
        self.look(Call::StudiesDuplicates, doing, work).await
    }
}

const STUDIES: &str = "SELECT study, duplicate FROM study
    WHERE search_id = ?1 AND file_id = ?2 AND record > ?3 ORDER BY record LIMIT ?4";
const QUARANTINED: &str = "SELECT quarantined, NULL FROM quarantine
    WHERE search_id = ?1 AND file_id = ?2 AND record > ?3 ORDER BY record LIMIT ?4";
pub(crate) const DUPLICATES: &str =
    "SELECT count(*) FROM study WHERE search_id = ?1 AND file_id = ?2 AND duplicate IS NOT NULL";

fn studies(db: &Connection, file: (SearchId, FileId), after: u64, count: usize) -> Result<Vec<Study>, Fault> {
    let rows = page(db, STUDIES, file, after, count)?;
    let decoded = rows.iter().map(|(text, duplicate)| {
        let duplicate = duplicate.as_deref().map(from_json).transpose()?;
        Ok(Study { duplicate, ..from_json(text)? })
    });
    decoded.collect()
}

fn page(
    db: &Connection,
    sql: &str,
    (search, file): (SearchId, FileId),
    after: u64,
    count: usize,
) -> Result<Vec<(String, Option<String>)>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let key = params![search.to_string(), file.to_string(), int(after), limit(count)];
    let rows = statement.query_map(key, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}
