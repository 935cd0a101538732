//! The reading progress of the files of an import.

use async_trait::async_trait;
use imports::{FileId, Progress, ReadProgress, ReportProgress, SearchId};
use messages::StoreError;
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{int, parse, uint};

#[async_trait]
impl ReportProgress for Store {
    async fn report(&self, search: SearchId, file: FileId, progress: Progress) -> Result<(), StoreError> {
        let doing = format!("reporting the progress of file {file} of search {search}");
        let work = move |db: &Connection| {
            db.prepare_cached("INSERT OR REPLACE INTO progress VALUES (?1, ?2, ?3, ?4)")?.execute(
                params![search.to_string(), file.to_string(), int(progress.records), int(progress.bytes)],
            )?;
            Ok(())
        };
        self.change(Call::ProgressReport, doing, work).await
    }
}

#[async_trait]
impl ReadProgress for Store {
    async fn progress(&self, search: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        let doing = format!("reading the progress of search {search}");
        self.look(Call::ProgressRead, doing, move |db| progress(db, search)).await
    }
}

fn progress(db: &Connection, search: SearchId) -> Result<Vec<(FileId, Progress)>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT file_id, records, bytes FROM progress WHERE search_id = ?1 ORDER BY file_id",
    )?;
    let mut rows = statement.query([search.to_string()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let progress = Progress { records: uint(row.get(1)?), bytes: uint(row.get(2)?) };
        found.push((parse("file id", &row.get::<_, String>(0)?)?, progress));
    }
    Ok(found)
}
