//! The attempts at reading files.

use async_trait::async_trait;
use imports::reading::{Place, Reading, TrackReading};
use imports::{FileId, SearchId};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, json};

const BEGIN: &str = "INSERT INTO reading VALUES (?1, ?2, 1, NULL)
    ON CONFLICT (search_id, file_id) DO UPDATE SET begun = begun + 1";
const REACH: &str = "UPDATE reading SET place = ?3 WHERE search_id = ?1 AND file_id = ?2
    AND (?3 ->> '$.end' IS NOT NULL OR place ->> '$.end' IS NULL)";

#[async_trait]
impl TrackReading for Store {
    async fn begin(&self, search: SearchId, file: FileId) -> Result<Reading, StoreError> {
        let doing = format!("beginning to read file {file} of search {search}");
        let work = move |db: &Connection| {
            let before = reading(db, search, file)?;
            db.prepare_cached(BEGIN)?.execute(params![search.to_string(), file.to_string()])?;
            Ok(before.unwrap_or_default())
        };
        self.change(Call::ReadingBegin, doing, work).await
    }

    async fn reach(&self, search: SearchId, file: FileId, place: &Place) -> Result<(), StoreError> {
        let doing = format!("remembering how far file {file} of search {search} is read");
        let place = place.clone();
        let work = move |db: &Connection| {
            let place = json(&place)?;
            db.prepare_cached(REACH)?.execute(params![search.to_string(), file.to_string(), place])?;
            Ok(())
        };
        self.change(Call::ReadingReach, doing, work).await
    }

    async fn pause(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let sql = "UPDATE reading SET begun = 0 WHERE search_id = ?1 AND file_id = ?2";
        let doing = format!("ending an attempt at file {file} of search {search}");
        let work = move |db: &Connection| {
            db.prepare_cached(sql)?.execute(params![search.to_string(), file.to_string()])?;
            Ok(())
        };
        self.change(Call::ReadingPause, doing, work).await
    }
}

fn reading(db: &Connection, search: SearchId, file: FileId) -> Result<Option<Reading>, Fault> {
    let sql = "SELECT begun, place FROM reading WHERE search_id = ?1 AND file_id = ?2";
    let row = db
        .prepare_cached(sql)?
        .query_row(params![search.to_string(), file.to_string()], |row| {
            Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?))
        })
        .optional()?;
    let Some((begun, place)) = row else { return Ok(None) };
    Ok(Some(Reading { begun, place: place.as_deref().map(from_json).transpose()? }))
}
