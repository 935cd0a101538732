//! Studies and quarantined records, each once.

use async_trait::async_trait;
use contracts::{FileId, SearchId, StoreError};
use imports::{Quarantined, ReadStudies, Study, WriteStudies};
use rusqlite::{Connection, params};
use serde::de::DeserializeOwned;

use crate::Store;
use crate::fault::Fault;
use crate::value::{from_json, int, json, limit};

/// A row of either table: search, file, record and the rest as JSON.
type Row = (String, String, i64, String);

#[async_trait]
impl WriteStudies for Store {
    async fn store(&self, studies: &[Study], quarantined: &[Quarantined]) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        // Encoded here, so that the writing thread only writes.
        let encode = || -> Result<(Vec<Row>, Vec<Row>), Fault> {
            Ok((
                studies.iter().map(study_row).collect::<Result<_, _>>()?,
                quarantined.iter().map(quarantined_row).collect::<Result<_, _>>()?,
            ))
        };
        let (studies, quarantined) = encode().map_err(|fault| fault.while_doing(doing.clone()))?;
        let work = move |db: &Connection| {
            insert(
                db,
                "INSERT INTO study (search_id, file_id, record, study) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                &studies,
            )?;
            insert(
                db,
                "INSERT INTO quarantine (search_id, file_id, record, quarantined) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
                &quarantined,
            )
        };
        self.change("studies.store", doing, work).await
    }

    async fn discard(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let doing = format!("discarding file {file} of search {search}");
        let work = move |db: &Connection| {
            for table in ["study", "quarantine"] {
                let sql = format!("DELETE FROM {table} WHERE search_id = ?1 AND file_id = ?2");
                db.prepare_cached(&sql)?.execute(params![search.to_string(), file.to_string()])?;
            }
            Ok(())
        };
        self.change("studies.discard", doing, work).await
    }
}

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
        self.look("studies.read", doing, move |db| page(db, STUDIES, (search, file), after, limit)).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        let doing = format!("reading the quarantined records of file {file} of search {search}");
        self.look("studies.quarantined", doing, move |db| page(db, QUARANTINED, (search, file), 0, limit))
            .await
    }
}

const STUDIES: &str = "SELECT study FROM study
    WHERE search_id = ?1 AND file_id = ?2 AND record > ?3 ORDER BY record LIMIT ?4";
const QUARANTINED: &str = "SELECT quarantined FROM quarantine
    WHERE search_id = ?1 AND file_id = ?2 AND record > ?3 ORDER BY record LIMIT ?4";

fn page<T: DeserializeOwned>(
    db: &Connection,
    sql: &str,
    (search, file): (SearchId, FileId),
    after: u64,
    count: usize,
) -> Result<Vec<T>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let texts = statement
        .query_map(params![search.to_string(), file.to_string(), int(after), limit(count)], |row| {
            row.get::<_, String>(0)
        })?;
    texts.map(|text| from_json(&text?)).collect()
}
