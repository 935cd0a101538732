//! The attempts at reading files, and the fences that keep overtaken ones from storing more.

use async_trait::async_trait;
use imports::reading::{Fenced, Place, Reading, TrackReading};
use imports::{FileId, SearchId};
use messages::StoreError;
use rusqlite::{Connection, OptionalExtension, params};

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::rows;
use crate::value::{from_json, int, json, uint};

const BEGIN: &str = "INSERT INTO reading (search_id, file_id, begun, reader) VALUES (?1, ?2, 1, ?3)
    ON CONFLICT (search_id, file_id) DO UPDATE SET begun = begun + 1, reader = excluded.reader";
const REACH: &str = "UPDATE reading SET place = ?4 WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3
    AND (?4 ->> '$.end' IS NOT NULL OR place ->> '$.end' IS NULL)";
const PAUSE: &str = "UPDATE reading SET begun = 0 WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3";
const FORGET_PLACE: &str = "UPDATE reading SET place = NULL
    WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3 AND place ->> '$.end' IS NULL";
const RAISE: &str =
    "UPDATE reading SET fence = fence + 1 WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3";

#[async_trait]
impl TrackReading for Store {
    async fn begin(&self, search: SearchId, file: FileId, reader: u32) -> Result<Reading, StoreError> {
        let doing = format!("beginning to read file {file} of search {search}");
        let work = move |db: &Connection| {
            if let Some((fence, last)) = last_reader(db, search, file)?
                && last.is_some_and(|last| last != reader)
            {
                let held = Fenced { search_id: search, file_id: file, fence };
                // Not when it was read to its end: then it is not read again.
                if take_back(db, &held)? {
                    forget_attempts(db, &Fenced { fence: fence + 1, ..held })?;
                }
            }
            let before = reading(db, search, file)?;
            db.prepare_cached(BEGIN)?.execute(params![search.to_string(), file.to_string(), reader])?;
            Ok(before.unwrap_or_default())
        };
        self.change(Call::ReadingBegin, doing, work).await
    }

    async fn reach(&self, file: &Fenced, place: &Place) -> Result<(), StoreError> {
        let Fenced { search_id, file_id, fence } = *file;
        let doing = format!("remembering how far file {file_id} of search {search_id} is read");
        let (place, file, refused) = (place.clone(), *file, Fenced::overtaken(doing.clone()));
        let work = move |db: &Connection| {
            let place = json(&place)?;
            let key = params![search_id.to_string(), file_id.to_string(), int(fence), place];
            db.prepare_cached(REACH)?.execute(key)?;
            holds(db, &file)
        };
        let is_held = self.change(Call::ReadingReach, doing, work).await?;
        if is_held { Ok(()) } else { Err(refused) }
    }

    async fn pause(&self, file: &Fenced) -> Result<(), StoreError> {
        let doing = format!("ending an attempt at file {} of search {}", file.file_id, file.search_id);
        let file = *file;
        self.change(Call::ReadingPause, doing, move |db| forget_attempts(db, &file)).await
    }
}

fn forget_attempts(db: &Connection, file: &Fenced) -> Result<(), Fault> {
    let key = params![file.search_id.to_string(), file.file_id.to_string(), int(file.fence)];
    db.prepare_cached(PAUSE)?.execute(key)?;
    Ok(())
}

/// Whether the file still has this fence.
pub(crate) fn holds(db: &Connection, file: &Fenced) -> Result<bool, Fault> {
    let sql = "SELECT count(*) FROM reading WHERE search_id = ?1 AND file_id = ?2 AND fence = ?3";
    let key = params![file.search_id.to_string(), file.file_id.to_string(), int(file.fence)];
    Ok(db.prepare_cached(sql)?.query_row(key, |row| row.get::<_, i64>(0))? > 0)
}

/// Removes what is stored of a file, and raises its fence; false when it has another, or was read to its end.
fn take_back(db: &Connection, file: &Fenced) -> Result<bool, Fault> {
    loop {
        if let Some(is_taken_back) = take_some_back(db, file)? {
            return Ok(is_taken_back);
        }
    }
}

/// Does a part of that, and no more of it than others may wait for; none while there is more to be done. The fence is
/// raised with the last part, since until then somebody with the same one may store more.
pub(crate) fn take_some_back(db: &Connection, file: &Fenced) -> Result<Option<bool>, Fault> {
    let (search, file_id) = (file.search_id.to_string(), file.file_id.to_string());
    // First of all the place: whoever goes on after a crash begins anew.
    if db.prepare_cached(FORGET_PLACE)?.execute(params![search, file_id, int(file.fence)])? == 0 {
        return Ok(Some(false));
    }
    if rows::discard_some(db, file.search_id, file.file_id)? {
        return Ok(None);
    }
    db.prepare_cached(RAISE)?.execute(params![search, file_id, int(file.fence)])?;
    Ok(Some(true))
}

fn last_reader(db: &Connection, search: SearchId, file: FileId) -> Result<Option<(u64, Option<u32>)>, Fault> {
    let sql = "SELECT fence, reader FROM reading WHERE search_id = ?1 AND file_id = ?2";
    let key = params![search.to_string(), file.to_string()];
    let row = db.prepare_cached(sql)?.query_row(key, |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(row.map(|(fence, reader)| (uint(fence), reader)))
}

fn reading(db: &Connection, search: SearchId, file: FileId) -> Result<Option<Reading>, Fault> {
    let sql = "SELECT begun, place, fence FROM reading WHERE search_id = ?1 AND file_id = ?2";
    let key = params![search.to_string(), file.to_string()];
    let row = db
        .prepare_cached(sql)?
        .query_row(key, |row| Ok((row.get::<_, u32>(0)?, row.get::<_, Option<String>>(1)?, row.get(2)?)))
        .optional()?;
    let Some((begun, place, fence)) = row else { return Ok(None) };
    Ok(Some(Reading { begun, place: place.as_deref().map(from_json).transpose()?, fence: uint(fence) }))
}
